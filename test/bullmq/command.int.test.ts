// The engine of whoa.config.ts, as `whoa serve` and `whoa worker` use it, on a real Redis.
import { expect, onTestFinished, test } from 'vitest';
import { createHome } from '../command/terminal.ts';
import { isNight } from '../night.ts';
import { startRedis } from '../servers/redis.ts';
import { createFleet, end, POLL, readReadiness } from './fleet.ts';

test('a task that the server creates runs when BullMQ hands it out, and a cancel stops it', async () => {
  const { serve, worker, queue, statusIs, isEmpty } = await createFleet();
  const server = await serve();
  const quick = await server.create('hello');
  await expect.poll(() => queue.getJobCountByTypes('wait'), POLL).toBe(1);
  const working = await worker();
  await statusIs(quick, 'success');
  const slow = await server.create('slow');
  await working.waitFor({ type: 'task-start', id: slow });
  await isEmpty();
  expect((await server.ask(`/v1/tasks/${slow}/cancel`, { mode: 'now' })).status).toBe(202);
  await statusIs(slow, 'cancelled');
  expect((await server.ask(`/v1/tasks/${slow}/cancel`, { mode: 'now' })).status).toBe(409);
  expect([await end(working), await end(server)]).toEqual([0, 0]);
});

test('a task that is cancelled while its job waits never starts', async () => {
  const { serve, worker, store, statusIs, isEmpty } = await createFleet();
  const server = await serve();
  const [removed, stale] = [await server.create('one'), await server.create('two')];
  expect((await server.ask(`/v1/tasks/${removed}/cancel`, {})).status).toBe(202);
  await store.cancel({ tenant: 'local', id: stale });
  const working = await worker();
  await isEmpty();
  for (const id of [removed, stale]) await statusIs(id, 'cancelled');
  expect(working.lines.filter(({ type }) => type === 'task-start')).toEqual([]);
});

test('SIGTERM returns the task, which is offered again, and the next worker resumes it', async () => {
  const { serve, worker, queue, get } = await createFleet();
  const server = await serve();
  const first = await worker();
  const id = await server.create('slow');
  await first.waitFor({ type: 'task-start', id });
  expect(await end(first)).toBe(0);
  await expect.poll(() => queue.getJobCountByTypes('wait'), POLL).toBeGreaterThan(0);
  expect(await get(id)).toMatchObject({ status: 'init', attempts: 0, crashes: 0 });
  const second = await worker();
  await second.waitFor({ type: 'task-start', id });
  expect((await server.ask(`/v1/tasks/${id}/cancel`, { mode: 'now' })).status).toBe(202);
  await second.waitFor({ type: 'task-end', id, status: 'cancelled' });
});

test.runIf(isNight)('a server with --work runs what BullMQ hands out, too', async () => {
  const { serve, statusIs, isEmpty } = await createFleet();
  const server = await serve('engine', ['--work', '--sandbox', 'none']);
  const id = await server.create('hello');
  await statusIs(id, 'success');
  await isEmpty();
  expect(await end(server)).toBe(0);
});

const TAKEN_BACK = 'writer: taken from the engine bullmq bull:whoa:; workers take its tasks from the store\n';

test.runIf(isNight)('a fleet moves from no engine to an engine and back, and waiting tasks still run', async () => {
  const { home, serve, worker, queue, statusIs, isEmpty } = await createFleet();
  const plain = await serve('plain');
  const before = await plain.create('before the engine');
  expect(await queue.getJobCountByTypes('wait')).toBe(0);
  const behind = await worker('engine');
  await statusIs(before, 'success');
  // A server that does not have the engine yet: its tasks are found.
  const held = await plain.create('slow');
  await behind.waitFor({ type: 'task-start', id: held });
  const engine = await serve('engine');
  expect(await end(behind)).toBe(0);
  const waiting = await engine.create('before the way back');
  await expect.poll(() => queue.getJobCountByTypes('wait'), POLL).toBeGreaterThan(0);
  expect(await end(engine)).toBe(0);
  const listed = home.whoa(['engine', '--config', 'plain.config.ts']);
  expect(listed.stdout).toBe('writer: delivered by the engine bullmq bull:whoa:\n');
  const direct = await worker('plain');
  const off = home.whoa(['engine', 'off', 'writer', '--config', 'plain.config.ts']);
  expect(off).toMatchObject({ status: 0, stdout: TAKEN_BACK });
  await statusIs(waiting, 'success');
  await direct.waitFor({ type: 'task-start', id: held });
  expect(await end(direct)).toBe(0);
  // What is left in the queue starts nothing twice.
  const again = await worker('engine');
  await again.waitFor({ type: 'task-start', id: held });
  await isEmpty();
  expect(again.lines.filter(({ type }) => type === 'task-start')).toHaveLength(1);
});

test('without its Redis the engine starts, waits and ends, and catches up when the Redis is back', async () => {
  const own = await startRedis({ appendfsync: 'none' });
  onTestFinished(() => own[Symbol.asyncDispose]());
  const { home, serve, worker, get, statusIs } = await createFleet({ queueUrl: own.url });
  await own.kill('SIGKILL');
  const [server, working] = await Promise.all([serve(), worker()]);
  await working.waitFor({ type: 'engine-error' });
  expect(await readReadiness(working)).toBe(503);
  const early = await server.create('while the queue is away');
  await own.start();
  await statusIs(early, 'success');
  await expect.poll(() => readReadiness(working), POLL).toBe(200);

  const slow = await server.create('slow');
  await working.waitFor({ type: 'task-start', id: slow });
  await own.kill('SIGKILL');
  await expect.poll(() => readReadiness(working), POLL).toBe(503);
  const late = await server.create('in the middle');
  // A running task does not depend on the queue: a cancel stops it.
  expect((await server.ask(`/v1/tasks/${slow}/cancel`, { mode: 'now' })).status).toBe(202);
  await statusIs(slow, 'cancelled');
  expect((await get(late)).status).toBe('init');
  await own.start();
  await statusIs(late, 'success');

  const held = await server.create('slow');
  await working.waitFor({ type: 'task-start', id: held });
  await own.kill('SIGKILL');
  expect([await end(working), await end(server)]).toEqual([0, 0]);

  // Back to the workers: once. A misspelled agent is not taken back, and no success.
  const off = ['engine', 'off', 'writer', '--config', 'plain.config.ts'];
  expect(home.whoa(off)).toMatchObject({ status: 0, stdout: TAKEN_BACK });
  const again = home.whoa([...off, 'nobody']);
  expect(again).toMatchObject({ status: 1, stdout: '' });
  for (const name of ['writer', 'nobody']) expect(again.stderr).toContain(`${name}: no engine delivers this agent`);
  expect(await get(held)).toMatchObject({ status: 'init', crashes: 0 });
});

test.each([
  ["engine: 'bullmq'", [], "engine: expected bullmq({ connection: 'redis://…' }) from '@whoa/bullmq'"],
  ['engine: bullmq({})', [], "bullmq.connection: expected 'redis://host:6379', or connection options of BullMQ"],
  ["engine: bullmq({ connection: 'redis://x' })", ['--agent', 'a'], "--agent: the configuration's engine delivers"],
])('a worker with %s %j is rejected with what to write', (field, args, message) => {
  const config = `import { bullmq } from '@whoa/bullmq';
    export default { store: 'postgres://127.0.0.1:1/whoa', agents: { a() {}, b() {} }, ${field} };`;
  const home = createHome({ 'whoa.config.ts': config });
  onTestFinished(() => home[Symbol.dispose]());
  const { status, stderr } = home.whoa(['worker', '--config', 'whoa.config.ts', ...args]);
  expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining(message) as string });
});
