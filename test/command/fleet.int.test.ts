// A server and workers as separate processes, on one Postgres.
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { FollowEvent, TaskRecord } from '@whoa/tasks';
import { createPostgresStore } from '@whoa/tasks/internal';
import { expect, type TestContext, test } from 'vitest';
import { isNight } from '../night.ts';
import { until } from '../promises/fixture.ts';
import { borrowPostgres } from '../servers/borrow.ts';
import { measureSlowness } from '../slowness.ts';
import { startCommand } from './process.ts';
import { createHome, type Home } from './terminal.ts';

const TOKEN = 'a-token-for-the-tests-of-the-command';
const SLOW = [['Let me see. ', { call: 'bash', input: { command: 'echo begun $$; sleep 300' } }], ['All is well.']];
const WORK = ['--sandbox', 'none', '--yes', '--model', 'scripted:script.json'];

/** How long after the end of a dead worker's lease another one has its task. */
const TAKEOVER_TIMEOUT_MS = 2_000;

/** Leases take 15 s to end, so the tests run in parallel. */
type OnEnd = TestContext['onTestFinished'];

interface Fleet extends Home {
  readonly storeUrl: string;
  readonly onEnd: OnEnd;
}

/** A home whose configuration has a separate Postgres. */
async function fleet(onEnd: OnEnd, agents = ''): Promise<Fleet> {
  const postgres = await borrowPostgres();
  onEnd(() => postgres[Symbol.asyncDispose]());
  const config = `
    import { createAgent, defineConfig, defineTool } from 'whoa';
    import { createScriptedModel } from '@whoa/core/testing';
    export default defineConfig({ store: { backend: 'postgres', url: '${postgres.url}' }, ${agents} });
  `;
  const home = createHome({ 'script.json': JSON.stringify(SLOW), 'config/whoa/whoa.config.ts': config });
  onEnd(() => home[Symbol.dispose]());
  return { ...home, storeUrl: postgres.url, onEnd };
}

/** When a task's lease expires, by the store's clock. */
async function readLeaseEnd({ storeUrl }: Fleet, id: string): Promise<number> {
  await using store = createPostgresStore({ url: storeUrl });
  const observer = { worker: 'observer', session: 'observer', claim: 'observer', leaseMs: 15_000 };
  const answer = await store.claim(id, observer);
  if (answer.result !== 'held') throw new Error(`nobody has it: ${answer.result}`);
  return answer.until;
}

async function serve(home: Fleet, args: readonly string[] = [], env = { WHOA_TOKEN: TOKEN }) {
  const server = startCommand(home, ['serve', '--port', '0', ...args], env);
  const { url } = (await server.waitFor({ type: 'listening' })) as { url: string };
  const ask = (path: string, body?: object, headers = { authorization: `Bearer ${TOKEN}` }): Promise<Response> =>
    fetch(url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
  const create = async (agent = 'assistant'): Promise<string> => {
    const response = await ask('/v1/tasks', { agent, input: 'Is all well?' });
    expect(response.status).toBe(201);
    return ((await response.json()) as { task: TaskRecord }).task.id;
  };
  const get = async (id: string): Promise<TaskRecord> => (await (await ask(`/v1/tasks/${id}`)).json()) as TaskRecord;
  return { server, url, ask, create, get };
}

async function work(home: Fleet, args: readonly string[] = WORK, env: Record<string, string> = {}) {
  const worker = startCommand(home, ['worker', ...args], env);
  await worker.waitFor({ type: 'working' });
  return worker;
}

/** Reads events until one matches. */
async function follow(response: Response, isIt: (seen: FollowEvent) => boolean): Promise<FollowEvent> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body!) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    for (const [, data] of text.matchAll(/^data: (.*)\n\n/gm)) {
      const seen = JSON.parse(data!) as FollowEvent;
      if (isIt(seen)) return seen;
    }
  }
  throw new Error(`it was not seen in ${text}`);
}

const isGone = (pid: number): boolean => !existsSync(`/proc/${pid}`);

/** The process of the running call, by its output: the command is printed before it runs. */
async function readShellPid(response: Response): Promise<number> {
  const started = /begun (\d+)/;
  const seen = await follow(response, (one) => started.test(JSON.stringify(one)));
  return Number(started.exec(JSON.stringify(seen))![1]);
}

test.concurrent('created over HTTP, taken over when its worker is killed, stopped over HTTP, and nothing is left', async ({
  onTestFinished,
}) => {
  const home = await fleet(onTestFinished);
  const { ask, create, get, server } = await serve(home);
  expect((await ask('/v1/tasks', undefined, { authorization: 'Bearer another' })).status).toBe(401);
  const first = await work(home);
  const id = await create();
  const shell = await readShellPid(await ask(`/v1/tasks/${id}/events`));
  const second = await work(home);
  first.kill('SIGKILL');
  await first.closed;
  const leaseEndsAt = await readLeaseEnd(home, id);
  const taken = await follow(await ask(`/v1/tasks/${id}/events`), (one) => one.type === 'entry' && one.epoch > 1);
  // Both are times of the store, so delays on a busy machine do not count.
  expect((taken as { at: number }).at - leaseEndsAt).toBeLessThan(TAKEOVER_TIMEOUT_MS * measureSlowness());
  await second.waitFor({ type: 'task-start', id });
  await until(() => isGone(shell));
  expect(await get(id)).toMatchObject({ status: 'running', crashes: 1 });
  const cancel = await ask(`/v1/tasks/${id}/cancel`, { mode: 'now', reason: 'lunch' });
  expect([cancel.status, ((await cancel.json()) as { result: string }).result]).toEqual([202, 'accepted']);
  const end = await follow(await ask(`/v1/tasks/${id}/events`), ({ type }) => type === 'end');
  expect(end).toMatchObject({
    task: { status: 'cancelled', outcome: { reason: { message: 'lunch', by: 'operator', via: 'http' } } },
  });
  for (const running of [second, server]) running.kill('SIGTERM');
  expect(await Promise.all([second.closed, server.closed])).toEqual([
    [0, null],
    [0, null],
  ]);
});

test
  .runIf(isNight)
  .concurrent(
    'an AG-UI run is answered by a worker, stopped at another server, and is cancelled at both',
    async ({ onTestFinished }) => {
      const home = await fleet(onTestFinished);
      const [one, other] = [await serve(home), await serve(home)];
      await work(home);
      const message = { id: 'u1', role: 'user', content: 'Is all well?' };
      const running = await one.ask('/api/ag-ui', { threadId: 't', runId: 'r1', messages: [message] });
      const [task] = ((await (await one.ask('/v1/tasks')).json()) as { tasks: TaskRecord[] }).tasks;
      const shell = await readShellPid(await other.ask(`/v1/tasks/${task!.id}/events`));
      const stop = await other.ask('/api/ag-ui/t/stop', { runId: 'r1', reason: 'lunch' });
      expect(await stop.json()).toEqual({ result: 'accepted' });
      expect(await running.text()).toMatch(/Let me see\. .*"RUN_FINISHED".*"cancelled".*lunch/s);
      expect(await one.get(task!.id)).toMatchObject({ status: 'cancelled', outcome: { reason: { via: 'ag-ui' } } });
      await until(() => isGone(shell));
      expect((await one.ask('/api/ag-ui/t/connect', undefined, { authorization: 'Bearer another' })).status).toBe(401);
    },
  );

test
  .runIf(isNight)
  .concurrent(
    'a worker that is stopped lets the call finish, returns the task, and exits',
    async ({ onTestFinished }) => {
      const home = await fleet(onTestFinished);
      home.folder.write(
        'script.json',
        JSON.stringify([[{ call: 'bash', input: { command: 'echo begun $$; sleep 1; echo over' } }]]),
      );
      const { ask, create, get } = await serve(home);
      const worker = await work(home, [...WORK, '--health-port', '0', '--concurrency', '1']);
      const { health } = worker.lines.find(({ type }) => type === 'working') as { health: string };
      const status = async (path: string): Promise<number> => (await fetch(`${health}${path}`)).status;
      expect([await status('/healthz'), await status('/readyz'), await status('/')]).toEqual([200, 200, 404]);
      const [id, waiting] = [await create(), await create()];
      await readShellPid(await ask(`/v1/tasks/${id}/events`));
      worker.kill('SIGTERM');
      expect(await worker.closed).toEqual([0, null]);
      expect(worker.lines.at(-1)).toMatchObject({ type: 'task-left', id, status: 'released' });
      expect(await get(id)).toMatchObject({ status: 'init', stage: 'ready', crashes: 0, attempts: 0 });
      expect(await get(waiting)).toMatchObject({ status: 'init', epoch: 0 });
      const journal = await follow(await ask(`/v1/tasks/${id}/events`), (one) =>
        JSON.stringify(one).includes('call-end'),
      );
      expect(journal).toMatchObject({ event: { result: { state: 'finished' } } });
    },
  );

test.runIf(isNight).concurrent('a worker that gets two signals ends immediately', async ({ onTestFinished }) => {
  const home = await fleet(onTestFinished);
  const { ask, create } = await serve(home);
  const worker = await work(home);
  const shell = await readShellPid(await ask(`/v1/tasks/${await create()}/events`));
  worker.kill('SIGTERM');
  worker.kill('SIGTERM');
  // The kernel merges signals that come too close together.
  const again = setInterval(() => worker.kill('SIGINT'), 200);
  expect((await worker.closed)[0]).toBe(130);
  clearInterval(again);
  await until(() => isGone(shell));
});

const BLOCKER = `agents: { blocker: createAgent({
  name: 'blocker',
  model: createScriptedModel([(request) => request.messages.some(({ role }) => role === 'tool') ? ['Done.'] : [{ call: 'think' }]]),
  tools: [defineTool({
    name: 'think', description: 'Thinks.', effects: 'read', replay: 'safe',
    inputSchema: { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } },
    inputJsonSchema: { type: 'object' },
    execute: () => { while (process.env.BLOCKS === '1'); return Promise.resolve({ content: 'thought' }); },
  })],
}) },`;

test.concurrent('a worker whose event loop is blocked is killed, and another finishes its task', async ({
  onTestFinished,
}) => {
  const home = await fleet(onTestFinished, BLOCKER);
  const { create, get } = await serve(home);
  const blocked = await work(home, ['--watchdog', '5'], { BLOCKS: '1' });
  const id = await create('blocker');
  expect(await blocked.closed).toEqual([null, 'SIGKILL']);
  expect(blocked.errors()).toContain('event loop was blocked');
  const other = await work(home, []);
  await other.waitFor({ type: 'task-end', id, status: 'success' });
  expect(await get(id)).toMatchObject({ outcome: { answer: 'Done.' }, crashes: 1 });
});

test.concurrent('a server without a configured token creates one, shows it once, and accepts no other', async ({
  onTestFinished,
}) => {
  const home = await fleet(onTestFinished);
  const server = startCommand(home, ['serve', '--port', '0'], {});
  const { url, token } = (await server.waitFor({ type: 'listening' })) as { url: string; token: string };
  const statusWith = async (headers: Record<string, string>): Promise<number> =>
    (await fetch(`${url}/v1/tasks`, { headers })).status;
  expect(token).toMatch(/^whoa_[\w-]{43}$/);
  expect(await statusWith({ authorization: `Bearer ${token}` })).toBe(200);
  expect(await statusWith({})).toBe(401);
  expect((await fetch(`${url}/api/chat/c/messages`)).status).toBe(401);
});

test.concurrent('a file of hashed tokens defines users and their rights', async ({ onTestFinished }) => {
  const home = await fleet(onTestFinished);
  const sha256 = createHash('sha256').update(TOKEN).digest('hex');
  home.folder.write('tokens.json', JSON.stringify([{ sha256, tenant: 'acme', name: 'ann', rights: ['read'] }]));
  const { ask } = await serve(home, ['--token-file', 'tokens.json'], { WHOA_TOKEN: 'not-this-one-but-long-enough' });
  expect((await ask('/v1/tasks')).status).toBe(200);
  expect((await ask('/v1/tasks', { agent: 'assistant', input: 'x' })).status).toBe(403);
  expect((await ask('/v1/tasks?tenant=local')).status).toBe(403);
});
