import { createAccess, createConsoleHandler, createLogin, createTaskApi, USER_RIGHTS } from '@whoa/server';
import { type Command, EXIT, readArguments, readCount, type Use } from '../command.ts';
import { loadConfig } from '../config/load.ts';
import { listenAt } from '../serve/listen-at.ts';
import type { System } from '../system.ts';
import { LOCAL_TENANT, openSharedStore } from '../tasks/local-tasks.ts';
import { userName, waitForEnd } from '../terminal/interrupts.ts';
import { openBrowser } from '../terminal/open-browser.ts';
import { Screen } from '../terminal/screen.ts';

const help = `whoa console [options]

Opens a page on this machine that shows your tasks: their output, a timeline, the stop report. You can stop and steer them there, and
answer their questions. Nothing else has to run. It uses your configuration's store, by default the file that all terminals share.
Other machines cannot reach the page.

  --open         open the page in your browser
  --port PORT    defaults to a free port
  --config FILE  the configuration file
  --json         print one JSON object per line`;

const OPTIONS = {
  open: { type: 'boolean', default: false },
  port: { type: 'string', default: '0' },
  config: { type: 'string' },
} as const;
const MAX_PORT = 65_535;
const CODE_MS = 600_000;

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values } = readArguments(args, OPTIONS);
  const port = readCount('--port', values.port, { min: 0, max: MAX_PORT });
  const config = await loadConfig(values.config, system);
  const screen = own(new Screen(system, values));
  const ended = waitForEnd(own);
  const store = own(openSharedStore(config, 'console', system.env));
  const login = createLogin({ codeTtlMs: CODE_MS });
  const api = createTaskApi({ store, login, access: createAccess({ authenticate: login.authenticate }) });
  const page = createConsoleHandler();
  const fetch = (request: Request): Promise<Response> =>
    (new URL(request.url).pathname.startsWith(page.path) ? page : api).fetch(request);
  const { url } = own(await listenAt({ fetch }, { port }));
  // Put the code in the fragment: servers and logs never see it.
  const code = login.createCode({
    tenant: LOCAL_TENANT,
    name: userName(),
    rights: [...USER_RIGHTS, 'operate', 'halt'],
  });
  const address = `${url}${page.path}/#code=${code}`;
  screen.data({ type: 'listening', url: address });
  screen.line(`Open ${address}\nThe address works once, for 10 minutes. Ctrl-C ends the page, not your tasks.`);
  if (values.open) openBrowser(address);
  await ended;
  return EXIT.success;
}
