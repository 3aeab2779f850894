// Features that BullMQ adds, through `whoa serve` and `whoa worker`: rate limit, priority, schedules, flows, pause, dashboard.
import { FlowProducer } from 'bullmq';
import { expect, onTestFinished, test } from 'vitest';
import { isNight } from '../night.ts';
import { createFleet, POLL } from './fleet.ts';

test.runIf(isNight)('a rate limit holds over two workers', async () => {
  const [max, duration, count] = [2, 500, 10];
  const { serve, worker, ticketIs } = await createFleet({ options: `limiter: { max: ${max}, duration: ${duration} }` });
  const server = await serve();
  const ids = await Promise.all(Array.from({ length: count }, (_, n) => server.create(`task ${n}`)));
  await Promise.all([worker(), worker()]);
  const tickets = await Promise.all(ids.map((id) => ticketIs(id, 'completed')));
  const times = tickets.map(({ processedOn }) => processedOn!).toSorted((one, other) => one - other);
  // One window to spare, for a machine that is so busy that a request is answered long after it was sent.
  expect(times.at(-1)! - times[0]!).toBeGreaterThan((count / max - 2) * duration);
  for (const { returnvalue } of tickets) expect(returnvalue).toEqual({ status: 'success' });
});

test('a higher priority starts first, and a task that is not due waits', async () => {
  const { serve, worker, ticketIs, get } = await createFleet();
  const server = await serve();
  const ids: Record<string, string> = {};
  for (const priority of [-5, 0, 7]) ids[priority] = await server.create(`priority ${priority}`, { priority });
  const later = await server.create('tomorrow', { notBefore: Date.now() + 86_400_000 });
  const working = await worker('engine', ['--concurrency', '1']);
  for (const id of Object.values(ids)) await ticketIs(id, 'completed');
  const started = working.lines.filter(({ type }) => type === 'task-start').map(({ id }) => id);
  expect(started).toEqual([ids[7], ids[0], ids[-5]]);
  expect(await (await ticketIs(later, 'delayed')).getState()).toBe('delayed');
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

test.runIf(isNight)('the children of a flow are tasks that end before their parent starts', async () => {
  const { worker, queue, store, get } = await createFleet();
  await worker();
  const flows = new FlowProducer({ connection: queue.opts.connection });
  onTestFinished(() => flows.close());
  const job = (input: string) => ({
    name: 'writer',
    queueName: queue.name,
    data: { task: { tenant: 'local', agent: 'writer', input } },
  });
  await flows.add({ ...job('the summary'), children: [job('chapter 1'), job('chapter 2')] });
  const ended = async () => (await store.list({ tenant: 'local', status: 'success' })).tasks;
  await expect.poll(async () => (await ended()).length, POLL).toBe(3);
  const byCreation = (await ended()).toSorted((one, other) => one.createdAt - other.createdAt);
  expect((await get(byCreation.at(-1)!.id)).inputs).toEqual(['the summary']);
});

test('a dashboard can read counts and jobs, and pause, retry and remove them', async () => {
  const { serve, worker, queue, get, statusIs, ticketIs } = await createFleet();
  const server = await serve();
  await queue.pause();
  const [first, second] = [await server.create('one'), await server.create('two')];
  expect(await queue.getJobCounts('prioritized', 'completed')).toEqual({ prioritized: 2, completed: 0 });
  const working = await worker();
  await expect.poll(() => queue.getWorkersCount(), POLL).toBe(1);
  expect(await queue.getJobCounts('prioritized', 'completed')).toEqual({ prioritized: 2, completed: 0 });
  // A removed ticket does not remove its task: it gets another one.
  await queue.remove(second);
  await expect.poll(() => queue.getJobState(second), POLL).toBe('prioritized');
  await queue.resume();
  for (const id of [first, second]) await statusIs(id, 'success');
  await (await ticketIs(first, 'completed')).retry('completed');
  await expect.poll(async () => (await queue.getJob(first))?.attemptsStarted, POLL).toBe(2);
  await ticketIs(first, 'completed');
  expect(working.lines.filter(({ type, id }) => type === 'task-start' && id === first)).toHaveLength(1);
  expect((await get(first)).epoch).toBe(1);
  const [shown] = await queue.getJobs(['completed']);
  expect(shown).toMatchObject({ name: 'writer', data: { tenant: 'local' }, returnvalue: { status: 'success' } });
});
