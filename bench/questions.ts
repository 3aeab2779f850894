// The cost of tasks that wait for people, and how soon an answer takes effect:
// npm run bench -- questions [10000 20] [--json]
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createTaskStore, type TaskStore } from '@whoa/tasks';
import { percentile, report } from './measure/measure.ts';
import { AskingWorker, createParked, createTask, waitForQuestion } from './stores/asking-worker.ts';
import type { BenchCase } from './stores/bare.ts';
import { startPostgresCase } from './stores/postgres.ts';

const { positionals } = parseArgs({ options: { json: { type: 'boolean' } }, allowPositionals: true });
/** How many tasks are parked, and for how many seconds they are watched. */
const [MANY = 10_000, WINDOW_SECONDS = 20] = positionals.map(Number).filter((count) => !Number.isNaN(count));
const WINDOW_MS = WINDOW_SECONDS * 1_000;
const SOME = 500;
const SAMPLES = 100;
const WARM_UP = 20;
const MAX_TASK_BYTES = 2_048;
/** Twice: an idle connection to Postgres reports its last transactions up to 10 s later. */
const QUIET_MS = 8_000;

await compareStarts();
await compareCosts();
await compareAnswers();

/**
 * One slot, and tasks that wait for people: from create to start of another task, compared with a fleet without them,
 * in turns.
 */
async function compareStarts(): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const open = async (parked: number) => {
    const one = stack.use(await startPostgresCase());
    const store = stack.use(createTaskStore(one.config));
    const options = { config: one.config, agent: 'asks', concurrency: 1, parkAfterMs: 0 };
    const worker = stack.use(await AskingWorker.start(options));
    await createParked(store, worker, { agent: 'asks', count: parked });
    return { name: one.name, store, worker, samples: [] as number[] };
  };
  const [ours, bare] = [await open(SOME), await open(0)];
  for (let i = -WARM_UP; i < SAMPLES; i++) {
    for (const { store, worker, samples } of [ours, bare]) {
      await wait(3 + Math.random() * 5);
      const ms = await timeToStart(store, worker);
      if (i >= 0) samples.push(ms);
    }
  }
  for (const [title, share, goal] of [
    ['p50', 0.5, { atMost: 1.5 }],
    ['p95', 0.95, { atMost: 3 }],
  ] as const) {
    const figures = { ours: percentile(ours.samples, share), bare: percentile(bare.samples, share) };
    const more = { unit: 'ms', waiting: SOME, slots: 1, samples: SAMPLES };
    report({ name: `create to start ${ours.name} beside waiting tasks ${title}`, ...figures, goal, more });
  }
}

async function timeToStart(store: TaskStore, worker: AskingWorker): Promise<number> {
  const from = process.hrtime.bigint();
  const { id } = await createTask(store, 'brief');
  return toMs((await worker.waitForStart(id)) - from);
}

/** The cost of many parked tasks for a server each second, and the space of each. */
async function compareCosts(): Promise<void> {
  await using one = await startPostgresCase();
  await using store = createTaskStore(one.config);
  await using worker = await AskingWorker.start({ config: one.config, agent: 'asks', concurrency: 50, parkAfterMs: 0 });
  // Connects, and creates the schema if needed.
  await createParked(store, worker, { agent: 'asks', count: 1 });
  const idle = await countCommands(one);
  const before = await one.taskBytes();
  await createParked(store, worker, { agent: 'asks', count: MANY });
  const parked = await countCommands(one);
  const bytes = ((await one.taskBytes()) - before) / MANY;
  // Two small numbers: one more than the other is no growth.
  const figures = { ours: parked + 1, bare: idle + 1 };
  const more = { parked: MANY, windowMs: WINDOW_MS };
  report({ name: `parked ${one.name} commands`, ...figures, goal: { atMost: 1.1 }, more });
  const size = { ours: bytes, bare: MAX_TASK_BYTES, goal: { atMost: 1 } };
  report({ name: `parked ${one.name} size`, ...size, more: { unit: 'bytes', parked: MANY } });
}

async function countCommands(one: BenchCase): Promise<number> {
  await wait(QUIET_MS);
  // The cleanup after starting the tasks is not part of their waiting.
  await one.tidy?.();
  await wait(QUIET_MS);
  const before = await one.commands();
  await wait(WINDOW_MS);
  return (await one.commands()) - before;
}

/**
 * From a yes to the start of the call, with the worker that asked and after a park. Compared with the minimum: a write
 * that notifies another process, its read, and a take.
 */
async function compareAnswers(): Promise<void> {
  await using one = await startPostgresCase();
  await using store = createTaskStore(one.config);
  const { config } = one;
  const notifier = 'bare-answer';
  await using holding = await AskingWorker.start({
    config,
    agent: 'holds',
    concurrency: 4,
    parkAfterMs: null,
    notifier,
  });
  await using parking = await AskingWorker.start({ config, agent: 'parks', concurrency: 4, parkAfterMs: 0 });
  const samples = { held: [] as number[], parked: [] as number[], bare: [] as number[] };
  const take = createTaker(store);
  for (let i = -WARM_UP; i < SAMPLES; i++) {
    const started = holding.waitForStart(`bare-${i + WARM_UP + 1}`);
    const from = process.hrtime.bigint();
    await one.bare.writeAndRing(notifier);
    const bare = toMs((await started) - from) + (await timeTake(store, take));
    const held = await timeAnswer(store, holding, { agent: 'holds', stage: 'held' });
    const parked = await timeAnswer(store, parking, { agent: 'parks', stage: 'parked' });
    for (const [name, ms] of Object.entries({ bare, held, parked })) {
      if (i >= 0) samples[name as keyof typeof samples].push(ms);
    }
  }
  const bare = percentile(samples.bare, 0.5);
  for (const [name, atMost] of [
    ['held', 2],
    ['parked', 4],
  ] as const) {
    const ours = percentile(samples[name], 0.5);
    const more = { unit: 'ms', p95: percentile(samples[name], 0.95), samples: SAMPLES };
    report({ name: `yes to start ${one.name} ${name} p50`, ours, bare, goal: { atMost }, more });
  }
}

async function timeAnswer(
  store: TaskStore,
  worker: AskingWorker,
  { agent, stage }: { readonly agent: string; readonly stage: 'held' | 'parked' },
): Promise<number> {
  const ref = await createTask(store, agent);
  const question = await waitForQuestion(store, ref, stage);
  await wait(3 + Math.random() * 5);
  const from = process.hrtime.bigint();
  const started = worker.waitForStart(ref.id);
  await store.answer({ tenant: ref.tenant, id: question }, { value: { decision: 'yes' }, by: 'ann' });
  return toMs((await started) - from);
}

type Taker = () => ReturnType<TaskStore['take']>;

/** A worker that only takes, one task at a time. */
function createTaker(store: TaskStore): Taker {
  let takeNumber = 0;
  const about = { session: 'bare-session', worker: 'bare', leaseMs: 600_000, agents: ['bare'], limit: 1 };
  return () => store.take({ ...about, takeNumber: ++takeNumber, claim: `bare-claim-${takeNumber}` });
}

async function timeTake(store: TaskStore, take: Taker): Promise<number> {
  await createTask(store, 'bare');
  await wait(3 + Math.random() * 5);
  const from = process.hrtime.bigint();
  const taken = await take();
  const ms = toMs(process.hrtime.bigint() - from);
  if (taken.result !== 'taken' || taken.tasks.length !== 1) throw new Error(`take: ${taken.result}`);
  await store.finish(taken.tasks[0]!.claim, { status: 'success' });
  return ms;
}

function toMs(ns: bigint): number {
  return Number(ns) / 1e6;
}
