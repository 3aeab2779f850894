import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAccess, createConsoleHandler, createLogin, createTaskApi, USER_RIGHTS } from '@whoa/server';
import { createMemoryStore, createRunner } from '@whoa/tasks';
import { createContainment } from '@whoa/tools';
import { type Command, EXIT, readArguments, readCount, type Use } from '../command.ts';
import { createDemoAgent } from '../demo/demo-agent.ts';
import { FIRST_MESSAGE } from '../demo/script.ts';
import { listenAt } from '../serve/listen-at.ts';
import type { System } from '../system.ts';
import { userName, waitForEnd } from '../terminal/interrupts.ts';
import { openBrowser } from '../terminal/open-browser.ts';
import { Screen } from '../terminal/screen.ts';

const help = `whoa demo [options]

Starts a page on this machine with a working agent and a Stop button. It needs no API key: the agent's text is
scripted, but its processes are real. Nothing is stored, and other machines cannot reach the page.

  --open        open the page in your browser
  --port PORT   defaults to a free port
  --json        print one JSON object per line`;

const OPTIONS = { open: { type: 'boolean', default: false }, port: { type: 'string', default: '0' } } as const;
const MAX_PORT = 65_535;
const CODE_MS = 600_000;
const NAME = 'demo';

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values } = readArguments(args, OPTIONS);
  const port = readCount('--port', values.port, { min: 0, max: MAX_PORT });
  const screen = own(new Screen(system, values));
  const ended = waitForEnd(own);
  const folder = mkdtempSync(join(tmpdir(), `whoa-demo-${process.pid}-`));
  own({ [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) });
  const containment = own(createContainment({ sandbox: { kind: 'none' } }));
  const store = own(createMemoryStore());
  const login = createLogin({ codeTtlMs: CODE_MS });
  const runner = own(createRunner({ store, agents: { [NAME]: createDemoAgent({ containment, cwd: folder }) } }));
  await runner.serve();
  await store.create({ tenant: NAME, agent: NAME, conversation: NAME, input: FIRST_MESSAGE });
  const access = createAccess({ authenticate: login.authenticate });
  const api = createTaskApi({ store, login, access, agents: [NAME] });
  const page = createConsoleHandler();
  const fetch = (request: Request): Promise<Response> =>
    (new URL(request.url).pathname.startsWith(page.path) ? page : api).fetch(request);
  const { url } = own(await listenAt({ fetch }, { port }));
  // Put the code in the fragment: servers and logs never see it.
  const code = login.createCode({ tenant: NAME, name: userName(), rights: USER_RIGHTS });
  const address = `${url}${page.path}/conversations/${NAME}#code=${code}`;
  screen.data({ type: 'listening', url: address });
  screen.line(`Open ${address}\nThe address works once, for 10 minutes. Ctrl-C ends the demo.`);
  if (values.open) openBrowser(address);
  await ended;
  return EXIT.success;
}
