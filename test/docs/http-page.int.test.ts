// The shell of docs/guides/workers/http.md is run against a server, as a reader would.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { createAgent, sleep } from '@whoa/core';
import { createAccess, createTaskApi, createToken, createTokenAuthenticator, listen, USER_RIGHTS } from '@whoa/server';
import { createMemoryStore, createRunner } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../tasks/child.ts';
import { findBlocks } from './pages.ts';

test('the commands of the HTTP page start a task, stop it and show how it ended', async () => {
  const [commands] = findBlocks('docs/guides/workers/http.md').filter(({ language }) => language === 'sh');
  const store = createMemoryStore();
  const { token, sha256 } = createToken();
  const authenticate = createTokenAuthenticator([{ sha256, tenant: 'acme', name: 'ann', rights: USER_RIGHTS }]);
  const server = await listen(createTaskApi({ store, access: createAccess({ authenticate }), agents: ['assistant'] }));
  const agent = createAgent({
    name: 'assistant',
    planner: {
      next: (_history, { token: stop }) => sleep(3_600_000, { clock: stop.clock, token: stop }) as Promise<never>,
    },
  });
  const runner = createRunner({ store, agents: { assistant: agent } });
  const serving = runner.serve();
  const folder = temporaryFolder();
  try {
    const shell = spawn('sh', ['-euc', commands!.text], {
      cwd: folder.path,
      env: { ...process.env, URL: server.url, TOKEN: token },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [output] = await Promise.all([text(shell.stdout), once(shell, 'close')]);
    expect(output).toMatch(/"result":"accepted"/);
    expect(output).toMatch(/event: end\ndata: .*"status":"cancelled".*that is enough/);
    expect(output).not.toContain(token);
  } finally {
    folder[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
    await runner[Symbol.asyncDispose]();
    await serving;
    await store[Symbol.asyncDispose]();
  }
});
