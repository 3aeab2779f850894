// BullMQ in front of the ledger, compared with its built-in loop, in turns on the same server: trivial tasks, tasks of 10 ms,
// what waiting tasks cost Redis, and how long small tenants wait beside a large one.
// npm run bench -- engine [COUNT] [trivial] [short] [delayed] [fair] [--json]
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createBullmqEngine } from '@whoa/bullmq';
import { createRunner, createTaskStore, type TaskContext } from '@whoa/tasks';
import { Queue } from 'bullmq';
import { ask, startRedis } from '../test/servers/redis.ts';
import { percentile, report } from './measure/measure.ts';
import { toConnection } from './queues/bullmq.ts';
import type { QueueName } from './queues/queues.ts';
import { type Cost, Team } from './queues/team.ts';
import { repeat } from './stores/operations.ts';
import { startPostgresCase } from './stores/postgres.ts';

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const { positionals } = parseArgs({ options: { json: { type: 'boolean' } }, allowPositionals: true });
const COUNT = Number(positionals.find((word) => /^\d+$/.test(word)) ?? 2_000);
const OUTSTANDING = 256;
const DELAYED = 20_000;
const IDLE_SECONDS = 10;
const HOUR_MS = 3_600_000;
/** One tenant has so many waiting, and the others one each. */
const LARGE = 5_000;
const SMALL = 50;
const SIDES = ['whoa', 'behind-bullmq', 'behind-bullmq-jobs'] as const satisfies readonly QueueName[];

type Side = (typeof SIDES)[number];
type Measured = Cost & { readonly postgresMs: number; readonly redisMs: number };

await using redis = await startRedis({ appendfsync: 'everysec' });
await using one = await startPostgresCase();
const storeUrl = (one.config as { readonly url: string }).url;

const PARTS = {
  trivial: () => compare('trivial tasks', { concurrency: 64, sleepMs: 0, goal: 0.6 }),
  short: () => compare('tasks of 10 ms', { concurrency: 16, sleepMs: 10, goal: 0.8 }),
  delayed: measureDelayed,
  fair: measureFairness,
} as const;
const wanted = positionals.filter((word) => Object.hasOwn(PARTS, word));
for (const [name, run] of Object.entries(PARTS)) if (wanted.length === 0 || wanted.includes(name)) await run();

async function compare(
  title: string,
  { goal, ...work }: { readonly concurrency: number; readonly sleepMs: number; readonly goal: number },
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const teams = new Map<Side, Team>();
  const costs = new Map<Side, Measured[]>(SIDES.map((side) => [side, []]));
  for (const side of SIDES) {
    teams.set(side, stack.use(await Team.start(side, side === 'whoa' ? storeUrl : `${storeUrl} ${redis.url}`, work)));
  }
  for (const team of teams.values()) await team.run(COUNT / 2, { outstanding: OUTSTANDING });
  for (let round = 0; round < ROUNDS; round++) {
    for (const [side, team] of teams) costs.get(side)!.push(await measure(team));
  }
  const median = (side: Side, of: keyof Measured): number =>
    percentile(
      costs.get(side)!.map((cost) => cost[of]),
      0.5,
    );
  for (const side of SIDES.slice(1)) {
    const [ours, bare] = [median(side, 'perSecond'), median('whoa', 'perSecond')];
    const ms = (of: keyof Measured): string => `${median(side, of).toFixed(3)} beside ${median('whoa', of).toFixed(3)}`;
    const more = {
      unit: 'tasks/s',
      workerMs: ms('workerMs'),
      redisMs: ms('redisMs'),
      outstanding: OUTSTANDING,
      count: COUNT,
      rounds: ROUNDS,
    };
    report({ name: `${title}, ${side} beside the built-in loop`, ours, bare, goal: { atLeast: goal }, more });
    report({
      name: `${title}, ${side}: Postgres`,
      ours: median(side, 'postgresMs'),
      bare: median('whoa', 'postgresMs'),
      goal: { atMost: 1.15 },
      more: { unit: 'ms of CPU per task' },
    });
  }
}

async function measure(team: Team): Promise<Measured> {
  const before = [await one.cpuSeconds(), await redisSeconds()] as const;
  const cost = await team.run(COUNT, { outstanding: OUTSTANDING });
  const [postgres, queue] = [await one.cpuSeconds(), await redisSeconds()];
  const perTask = (seconds: number): number => (seconds * 1_000) / COUNT;
  return { ...cost, postgresMs: perTask(postgres - before[0]), redisMs: perTask(queue - before[1]) };
}

/** Two workers that are idle while many tasks wait for their time. */
async function measureDelayed(): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const agent = 'delayed';
  const store = stack.use(createTaskStore(storeUrl));
  for (let i = 0; i < 2; i++) {
    const queue = new Queue(agent, { connection: toConnection(redis.url) });
    stack.defer(() => queue.close());
    const engine = stack.use(createBullmqEngine({ store, queue, agents: [agent] }));
    await engine.serve(createRunner({ store, agents: { [agent]: () => Promise.resolve('done') } }));
  }
  await repeat(DELAYED, 64, async () => {
    const { result } = await store.create({ tenant: 'bench', agent, input: 'x', notBefore: Date.now() + HOUR_MS });
    if (result !== 'created') throw new Error(`create: ${result}`);
  });
  await wait(1_000);
  const before = await redisCommands();
  await wait(IDLE_SECONDS * 1_000);
  const ours = ((await redisCommands()) - before) / IDLE_SECONDS;
  const more = { unit: 'commands/s', workers: 2 };
  report({ name: `Redis, ${DELAYED} delayed tasks`, ours, bare: 1, goal: { atMost: 10 }, more });
}

/** Small tenants beside a large one, with the built-in loop and behind BullMQ. */
async function measureFairness(): Promise<void> {
  const bare = await runFairly('fair', false);
  const ours = await runFairly('fair-behind', true);
  const more = { unit: 'ms', p50: ours.p50, 'p50 built-in': bare.p50, waiting: LARGE, tenants: SMALL };
  const name = `p95 of what small tenants wait beside ${LARGE} tasks of another`;
  report({ name, ours: ours.p95, bare: bare.p95, goal: { atMost: 2 }, more });
  const share = {
    name: 'tasks of the large tenant that start meanwhile, a second',
    ours: ours.large,
    bare: bare.large,
  };
  report({ ...share, goal: { atLeast: 0.5 } });
}

async function runFairly(agent: string, isBehind: boolean) {
  await using stack = new AsyncDisposableStack();
  const store = stack.use(createTaskStore(storeUrl));
  const create = async (tenant: string): Promise<string> => {
    const receipt = await store.create({ tenant, agent, input: 'x' });
    if (receipt.result !== 'created') throw new Error(`create: ${receipt.result}`);
    return receipt.task.id;
  };
  const starts = new Map<string, number>();
  let large = 0;
  const work = async ({ task: { id, tenant } }: TaskContext): Promise<string> => {
    if (tenant === 'large') large++;
    else starts.set(id, performance.now());
    await wait(10);
    return 'done';
  };
  const runner = stack.use(createRunner({ store, agents: { [agent]: work } }));
  await repeat(LARGE, 64, () => create('large'));
  if (isBehind) {
    const queue = new Queue(agent, { connection: toConnection(redis.url) });
    stack.defer(() => queue.close());
    const engine = stack.use(createBullmqEngine({ store, queue, agents: [agent] }));
    await engine.serve(runner, { concurrency: 16 });
  } else await runner.serve({ concurrency: 16 });
  while (large < 100) await wait(10);
  const [from, before] = [performance.now(), large];
  const created = new Map<string, number>();
  for (let i = 0; i < SMALL; i++) {
    await wait(Math.random() * 80);
    const at = performance.now();
    created.set(await create(`small-${i}`), at);
  }
  const perSecond = ((large - before) * 1_000) / (performance.now() - from);
  while (starts.size < SMALL) await wait(10);
  const waits = [...created].map(([id, at]) => Math.max(0, starts.get(id)! - at));
  return { p50: percentile(waits, 0.5), p95: percentile(waits, 0.95), large: perSecond };
}

async function redisSeconds(): Promise<number> {
  const info = await ask(redis.port, 'INFO', 'cpu');
  const read = (field: string): number => Number(new RegExp(`^${field}:([\\d.]+)`, 'm').exec(info)?.[1]);
  return read('used_cpu_user') + read('used_cpu_sys');
}

async function redisCommands(): Promise<number> {
  return Number(/^total_commands_processed:(\d+)/m.exec(await ask(redis.port, 'INFO', 'stats'))?.[1]);
}
