// Features that BullMQ adds, through `whoa serve` and `whoa worker`: rate limit, priority, schedules, pause, dashboard.
import { expect, test } from 'vitest';
import { isNight } from '../night.ts';
import { createFleet, POLL } from './fleet.ts';

test.runIf(isNight)('a rate limit holds over two workers', async () => {
  const [max, duration, count] = [2, 500, 10];
  const { serve, worker, get, statusIs } = await createFleet({
    options: `limiter: { max: ${max}, duration: ${duration} }`,
  });
  const server = await serve();
  const ids = await Promise.all(Array.from({ length: count }, (_, n) => server.create(`task ${n}`)));
  await Promise.all([worker(), worker()]);
  for (const id of ids) await statusIs(id, 'success');
  const times = (await Promise.all(ids.map(async (id) => (await get(id)).startedAt!))).toSorted((a, b) => a - b);
  // One window to spare, for a machine that is so busy that a request is answered long after it was sent.
  expect(times.at(-1)! - times[0]!).toBeGreaterThan((count / max - 2) * duration);
});

test('a higher priority starts first, and a task that is not due waits', async () => {
  const { serve, worker, queue, statusIs, get } = await createFleet({ options: "order: 'jobs'" });
  const server = await serve();
  const ids: Record<string, string> = {};
  for (const priority of [-5, 0, 7]) ids[priority] = await server.create(`priority ${priority}`, { priority });
  const later = await server.create('tomorrow', { notBefore: Date.now() + 86_400_000 });
  const working = await worker('engine', ['--concurrency', '1']);
  for (const id of Object.values(ids)) await statusIs(id, 'success');
  const started = working.lines.filter(({ type }) => type === 'task-start').map(({ id }) => id);
  expect(started).toEqual([ids[7], ids[0], ids[-5]]);
  expect(await queue.getJobState(later)).toBe('delayed');
  expect((await get(later)).status).toBe('init');
});

test('a schedule creates a task each time, and a cancel stops one of them', async () => {
  const { serve, worker, queue, store, statusIs } = await createFleet();
  const server = await serve();
  const working = await worker();
  const schedule = (name: string, every: number, input: string) => {
    const task = { tenant: 'local', agent: 'writer', input };
    return queue.upsertJobScheduler(name, { every }, { name: 'writer', data: { task } });
  };
  await schedule('night', 3_600_000, 'slow');
  const { id } = (await working.waitFor({ type: 'task-start' })) as { id: string };
  expect((await server.ask(`/v1/tasks/${id}/cancel`, { mode: 'now' })).status).toBe(202);
  await statusIs(id, 'cancelled');
  await schedule('report', 300, 'the report');
  const ended = async () => (await store.list({ tenant: 'local', status: 'success' })).tasks.length;
  await expect.poll(ended, POLL).toBeGreaterThan(2);
  expect((await queue.getJobSchedulers()).map(({ key }) => key).toSorted()).toEqual(['night', 'report']);
  expect(await queue.removeJobScheduler('report')).toBe(true);
});

test('a dashboard can read counts and jobs, and pause and remove them', async () => {
  const { serve, worker, queue, get, statusIs, isEmpty } = await createFleet({ options: "order: 'jobs'" });
  const server = await serve();
  await queue.pause();
  const [first, second] = [await server.create('one'), await server.create('two')];
  await expect.poll(() => queue.getJobState(second), POLL).toBe('prioritized');
  const [shown] = await queue.getJobs(['prioritized']);
  expect(shown).toMatchObject({ name: 'writer', data: { agent: 'writer', tenant: 'local' } });
  const working = await worker();
  await expect.poll(() => queue.getWorkersCount(), POLL).toBe(1);
  // A removed job does not remove its task: it is offered once more.
  await queue.remove(second);
  await expect.poll(() => queue.getJobState(second), POLL).toBe('prioritized');
  expect(working.lines.filter(({ type }) => type === 'task-start')).toEqual([]);
  await queue.resume();
  for (const id of [first, second]) await statusIs(id, 'success');
  await isEmpty();
  for (const id of [first, second]) expect((await get(id)).epoch).toBe(1);
});
