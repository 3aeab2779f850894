// Server time of every operation on a store with 1,000 ended tasks and on one with many, in turns. Tasks are created by the
// store's own operations. For every ten ended tasks one is live, and every tenant has a hundred:
// npm run bench -- store-scale [1000000] [--json]
import { parseArgs } from 'node:util';
import { createTaskStore, readFleetLoad, type TaskStore } from '@whoa/tasks';
import type { ClaimRef } from '@whoa/tasks/store';
import { percentile, report } from './measure/measure.ts';
import { repeat } from './stores/operations.ts';
import { startTimedPostgres, type TimedServer } from './stores/timed-servers.ts';

const { positionals } = parseArgs({ options: { json: { type: 'boolean' } }, allowPositionals: true });
const FEW = 1_000;
const MANY = Number(positionals.find((word) => /^\d+$/.test(word)) ?? 200_000);
const PER_TENANT = 100;
const LIVE_SHARE = 0.1;
const SAMPLES = 300;
const WARM_UP = 50;
const CONCURRENCY = 400;
const BATCH = 100;
const LEASE_MS = 36_000_000;

/** One side of the comparison: a server, its store, and the tasks that were taken from it last. */
interface Side {
  readonly server: TimedServer;
  readonly store: TaskStore;
  readonly count: number;
  readonly taken: { readonly by: ClaimRef; readonly tenant: string }[];
  takes: number;
}

const toTenant = ({ count }: Side, index: number): string => `tenant-${index % (count / PER_TENANT)}`;

function create(side: Side, index: number): Promise<unknown> {
  return side.store.create({
    tenant: toTenant(side, index),
    agent: 'bench',
    input: 'a question of some forty characters',
  });
}

async function take(side: Side, limit: number): Promise<void> {
  const number = ++side.takes;
  const request = {
    session: 'bench',
    worker: 'w',
    leaseMs: LEASE_MS,
    takeNumber: number,
    claim: `claim ${number}`,
  };
  const answer = await side.store.take({ ...request, agents: ['bench'], limit });
  if (answer.result !== 'taken') throw new Error(answer.result);
  side.taken.push(...answer.tasks.map(({ claim: by, task: { tenant } }) => ({ by, tenant })));
}

const finish = ({ store, taken }: Side, index: number): Promise<unknown> =>
  store.finish(taken[index]!.by, { status: 'success', answer: 'done' });

/** Most of them have ended; of the live ones, half are held. */
async function fill(side: Side): Promise<void> {
  const { store, taken, count } = side;
  const waiting = (count * LIVE_SHARE) / 2;
  const moved = count + waiting;
  await repeat(waiting, CONCURRENCY, (i) => create(side, i));
  for (let made = 0; made < moved; made += BATCH) {
    await repeat(BATCH, BATCH, (i) => create(side, made + i));
    await take(side, BATCH);
    if (taken.length !== BATCH) throw new Error(`took ${taken.length} of ${BATCH}`);
    if (made < count) await repeat(BATCH, BATCH, (i) => finish(side, i));
    taken.length = 0;
    if (made % 20_000 === 0 && made > 0) console.error(`${store.name}: ${made} of ${moved}`);
  }
}

interface Operation {
  readonly samples?: number;
  /** How much more it may cost than with few tasks. */
  readonly atMost?: number;
  readonly run: (side: Side, index: number) => Promise<unknown>;
}

const OPERATIONS: Readonly<Record<string, Operation>> = {
  create: { samples: 2 * SAMPLES, run: create },
  take: { samples: 2 * SAMPLES, run: (side) => take(side, 1) },
  append: {
    run: ({ store, taken }, i) =>
      store.append(taken[i]!.by, { after: 0, events: [{ type: 'text', text: 'a hundred and some bytes' }] }),
  },
  finish: { run: finish },
  cancel: {
    run({ store, taken }, i) {
      const { by, tenant } = taken[SAMPLES + i]!;
      return store.cancel({ tenant, id: by.id });
    },
  },
  list: { run: (side, i) => side.store.list({ tenant: toTenant(side, i), limit: 10 }) },
  counts: { run: (side, i) => side.store.counts({ tenant: toTenant(side, i) }) },
  queues: { run: ({ store }) => store.queues({ limit: 10 }) },
  workers: { run: ({ store }) => store.workers() },
  sweep: { run: ({ store }) => store.sweep({ limit: BATCH }) },
  // A longer list has longer pages.
  'whole fleet': { samples: 3, atMost: Infinity, run: ({ store }) => readFleetLoad(store) },
};

async function measure(
  name: string,
  sides: readonly [few: Side, many: Side],
  { run, samples = SAMPLES, atMost = 1.2 }: Operation,
): Promise<void> {
  for (const { server } of sides) await server.forget();
  for (let i = 0; i < samples; i++) for (const side of sides) await run(side, i);
  const [few = [], many = []] = await Promise.all(sides.map(({ server }) => server.steps()));
  const share = (value: number): string => value.toFixed(3);
  report({
    name: `${sides[1].store.name} ${name} at scale`,
    ours: percentile(many, 0.5),
    bare: percentile(few, 0.5),
    goal: { atMost },
    more: {
      unit: 'ms of the server, median of its steps',
      steps: many.length,
      p95: share(percentile(many, 0.95)),
      p95Few: share(percentile(few, 0.95)),
      p99: share(percentile(many, 0.99)),
      longest: share(Math.max(...many)),
    },
  });
}

await using stack = new AsyncDisposableStack();
const open = async (count: number): Promise<Side> => {
  const server = stack.use(await startTimedPostgres());
  return { server, store: stack.use(createTaskStore(server.config)), count, taken: [], takes: 0 };
};
const sides = [await open(FEW), await open(MANY)] as const;
const before = await sides[1].server.bytes();
for (const side of sides) await fill(side);
const bytes = Math.round(((await sides[1].server.bytes()) - before) / MANY);
console.error(`${sides[1].store.name}: ${MANY} ended, ${MANY * LIVE_SHARE} live, ${bytes} bytes for each ended one`);
for (let i = 0; i < WARM_UP; i++) for (const side of sides) await create(side, i);
for (const [name, operation] of Object.entries(OPERATIONS)) await measure(name, sides, operation);
// From now on everything that has ended is past its retention.
const short = sides.map((side) => ({
  ...side,
  store: stack.use(createTaskStore({ ...side.server.config, retentionMs: 1 })),
}));
for (const { store } of short) await store.tenants();
const sweep: Operation = { samples: 30, run: ({ store }) => store.sweep({ limit: 20 }) };
await measure('retention', [short[0]!, short[1]!], sweep);
