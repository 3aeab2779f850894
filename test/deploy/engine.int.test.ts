// A server and a worker of deploy/compose.yaml with ENGINE_URL, as plain processes: BullMQ delivers.
import { join } from 'node:path';
import { createTaskStore, type TaskRecord } from '@whoa/tasks';
import { Queue } from 'bullmq';
import { expect, onTestFinished, test } from 'vitest';
import { type RunningCommand, startCommand } from '../command/process.ts';
import { createHome } from '../command/terminal.ts';
import { ROOT } from '../docs/pages.ts';
import { borrowPostgres, borrowRedis } from '../servers/borrow.ts';
import { interpolate, readCompose, type Service } from './deployment.ts';

const TOKEN = 'a-token-for-the-tests-of-the-engine';
const POLL = { timeout: 60_000, interval: 20 };
const { services } = readCompose();

test('with ENGINE_URL, the server offers each task to BullMQ, and the worker runs what BullMQ hands out', async () => {
  const redis = await borrowRedis();
  onTestFinished(() => redis[Symbol.asyncDispose]());
  const store = await borrowPostgres();
  onTestFinished(() => store[Symbol.asyncDispose]());
  const home = createHome({ 'script.json': JSON.stringify([['done'], ['Once ', { waitMs: 600_000 }]]) });
  onTestFinished(() => home[Symbol.dispose]());
  const queue = new Queue('whoa', { connection: { host: '127.0.0.1', port: redis.port } });
  onTestFinished(() => queue.close());
  const tasks = createTaskStore(store.url);
  onTestFinished(() => tasks[Symbol.asyncDispose]());
  const start = ({ command, environment }: Service): RunningCommand => {
    const args = command.map((arg) => {
      if (arg === '/app/whoa.config.ts') return join(ROOT, 'deploy/whoa.config.ts');
      return /^\d{4}$/.test(arg) ? '0' : arg;
    });
    const variables = { STORE_URL: store.url, ENGINE_URL: redis.url, WHOA_TOKEN: TOKEN, STORE_PASSWORD: 'not used' };
    const env = Object.entries(environment).map(([name, value]) => [name, interpolate(value, variables)]);
    return startCommand(home, args, {
      ...(Object.fromEntries(env) as Record<string, string>),
      WHOA_MODEL: 'scripted:script.json',
    });
  };
  const [server, worker] = [start(services.server), start(services.worker)];
  const { url } = (await server.waitFor({ type: 'listening' })) as { url: string };
  await worker.waitFor({ type: 'working' });
  const ask = (path: string, body: object): Promise<Response> =>
    fetch(`${url}/v1/tasks${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const create = async (): Promise<string> => {
    const response = await ask('', { agent: 'assistant', input: 'Tell me a story' });
    return ((await response.json()) as { task: TaskRecord }).task.id;
  };
  const statusIs = async (id: string, status: string): Promise<void> => {
    await expect.poll(async () => (await tasks.get({ tenant: 'local', id }))?.status, POLL).toBe(status);
  };
  // Nothing starts that BullMQ does not hand out.
  await queue.pause();
  const quick = await create();
  await expect.poll(() => queue.getJobCountByTypes('wait'), POLL).toBe(1);
  expect((await tasks.get({ tenant: 'local', id: quick }))?.status).toBe('init');
  await queue.resume();
  await statusIs(quick, 'success');
  const slow = await create();
  await worker.waitFor({ type: 'task-start', id: slow });
  expect((await ask(`/${slow}/cancel`, { mode: 'now' })).status).toBe(202);
  await statusIs(slow, 'cancelled');
});
