// The programs of docs/choose.md that need other processes are run as a reader would: workers on a real Postgres, BullMQ on a real Redis, an agent under an editor.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { client, methods, ndJsonStream } from '@agentclientprotocol/sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BorrowedServer, borrowPostgres, borrowRedis } from '../servers/borrow.ts';
import { temporaryFolder } from '../tasks/child.ts';
import { findBlocks, ROOT } from './pages.ts';

const folder = temporaryFolder();
let [redis, postgres]: BorrowedServer[] = [];

beforeAll(async () => {
  [redis, postgres] = await Promise.all([borrowRedis(), borrowPostgres()]);
  symlinkSync(join(ROOT, 'node_modules'), join(folder.path, 'node_modules'));
  writeFileSync(join(folder.path, 'package.json'), '{ "private": true, "type": "module" }');
  for (const { text: program } of findBlocks('docs/choose.md')) {
    const [, name] = /^\/\/ ([\w-]+\.ts)\n/.exec(program) ?? [];
    if (name !== undefined) writeFileSync(join(folder.path, name), program);
  }
});
afterAll(async () => {
  for (const server of [redis, postgres]) await server?.[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

function start(program: string, stdin: 'ignore' | 'pipe' = 'ignore'): ChildProcess {
  return spawn(process.execPath, ['--no-warnings', '--conditions=@whoa/source', program], {
    cwd: folder.path,
    env: { ...process.env, STORE_URL: postgres!.url, ENGINE_URL: redis!.url },
    stdio: [stdin, 'pipe', 'inherit'],
  });
}

async function startWorker(program: string): Promise<AsyncDisposable> {
  const child = start(program);
  const [line] = (await once(child.stdout!, 'data')) as [Buffer];
  expect(line.toString()).toBe('ready\n');
  return {
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      expect(await once(child, 'close')).toEqual([0, null]);
    },
  };
}

const runWebServer = (): Promise<string> => text(start('web.ts').stdout!);

test('a web server stops tasks of the fleet’s workers, and the workers exit on SIGTERM', async () => {
  await using workers = new AsyncDisposableStack();
  workers.use(await startWorker('worker.ts'));
  workers.use(await startWorker('worker.ts'));
  expect(await runWebServer()).toBe("cancelled 'Once upon a time '\n");
}, 60_000);

test('the same web server stops tasks of a worker behind BullMQ, and the worker exits on SIGTERM', async () => {
  await using workers = new AsyncDisposableStack();
  workers.use(await startWorker('bullmq-worker.ts'));
  expect(await runWebServer()).toBe("cancelled 'Once upon a time '\n");
}, 60_000);

test('an editor cancels a prompt of the agent, and the agent exits with the editor', async () => {
  const child = start('editor-agent.ts', 'pipe');
  const said = Promise.withResolvers<void>();
  const { agent } = client({ name: 'editor' })
    .onNotification(methods.client.session.update, ({ params: { update } }) => {
      if (update.sessionUpdate === 'agent_message_chunk') said.resolve();
    })
    .connect(ndJsonStream(Writable.toWeb(child.stdin!), Readable.toWeb(child.stdout!) as ReadableStream<Uint8Array>));
  await agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd: folder.path, mcpServers: [] });
  const answered = agent.request(methods.agent.session.prompt, {
    sessionId,
    prompt: [{ type: 'text', text: 'Tell me a story' }],
  });
  await said.promise;
  await agent.notify(methods.agent.session.cancel, { sessionId });
  expect((await answered).stopReason).toBe('cancelled');
  child.stdin!.end();
  expect(await once(child, 'close')).toEqual([0, null]);
}, 60_000);
