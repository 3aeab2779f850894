// The cost of a change to the rules: the server's time for each operation, for this build and another, in turns on one server.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { TaskRecord, TaskStore } from '@whoa/tasks';
import { percentile, report } from '../measure/measure.ts';
import { claimOne, OPERATIONS, repeat } from './operations.ts';

const ROUNDS = 5;
const CLIENTS = [1, 8, 64];
const COUNT = Number(process.env['BENCH_COUNT'] ?? 256);
const PART = 8;
const TENANT = 'bench';

let made = 0;

async function create(store: TaskStore, more: object = {}, policy: 'queue' | 'replace' = 'queue'): Promise<string> {
  const task = { tenant: TENANT, agent: 'bench', input: 'a question of some forty characters', ...more };
  return ((await store.create(task, { policy })) as { task: TaskRecord }).task.id;
}

async function createHeld(store: TaskStore, more?: object): Promise<string> {
  const id = await create(store, more);
  await claimOne(store, id);
  return id;
}

/** A setup that runs once per measurement, and the operation to measure. */
export interface RuleCase {
  readonly prepare?: (store: TaskStore) => Promise<string>;
  readonly run: (store: TaskStore, made: string) => Promise<unknown>;
  /** How often in a round, if that is something else than usual. */
  readonly count?: number;
  readonly part?: number;
}

const conversation = (): string => `conversation ${made++}`;
const inConversation = async (store: TaskStore): Promise<string> => {
  const name = conversation();
  await createHeld(store, { conversation: name });
  return name;
};

function createTake(limit: number): RuleCase {
  return {
    async prepare(store) {
      const agent = `agent ${made++}`;
      await Promise.all(Array.from({ length: limit }, () => create(store, { agent })));
      return agent;
    },
    run(store, agent) {
      const session = { session: agent, claim: agent, worker: 'w', leaseMs: 36_000_000 };
      return store.take({ ...session, takeNumber: 1, agents: [agent], limit });
    },
  };
}

export const RULE_CASES: Readonly<Record<string, RuleCase>> = {
  'create, alone': { run: (store) => create(store) },
  'create, new conversation': { run: (store) => create(store, { conversation: conversation() }) },
  'create, queue behind': { prepare: inConversation, run: (store, name) => create(store, { conversation: name }) },
  'create, replace': {
    prepare: inConversation,
    run: (store, name) => create(store, { conversation: name }, 'replace'),
  },
  claim: { prepare: (store) => create(store), run: OPERATIONS['claim']! },
  append: { prepare: (store) => createHeld(store), run: OPERATIONS['append']! },
  send: { prepare: (store) => createHeld(store), run: OPERATIONS['send']! },
  heartbeat: { prepare: (store) => createHeld(store), run: OPERATIONS['heartbeat']! },
  cancel: { prepare: (store) => createHeld(store), run: OPERATIONS['cancel']! },
  'cancel, waiting': { prepare: (store) => create(store), run: OPERATIONS['cancel']! },
  release: {
    prepare: (store) => createHeld(store),
    run: (store, id) => store.release({ id, epoch: 1, session: `session of ${id}`, claim: `claim of ${id}` }),
  },
  'finish, alone': { prepare: (store) => createHeld(store), run: OPERATIONS['finish']! },
  'finish, wakes the next': {
    async prepare(store) {
      const name = conversation();
      const id = await createHeld(store, { conversation: name });
      await create(store, { conversation: name });
      return id;
    },
    run: OPERATIONS['finish']!,
  },
  'take of 10': createTake(10),
  'take of 100': { ...createTake(100), count: 16, part: 1 },
  list: { run: (store) => store.list({ tenant: TENANT, limit: 20 }) },
  counts: { run: (store) => store.counts({ tenant: TENANT }) },
};

/** Imports the package of the checkout that the command line names. */
export async function importOther(): Promise<typeof import('@whoa/tasks')> {
  const [folder] = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
  if (folder === undefined) throw new Error('name the folder of the other checkout');
  const other: unknown = await import(pathToFileURL(resolve(folder, 'packages/tasks/dist/index.js')).href);
  return other as typeof import('@whoa/tasks');
}

interface Compared {
  readonly ours: TaskStore;
  readonly theirs: TaskStore;
  /** The time that the server has spent so far. */
  readonly getMicros: (name: string) => Promise<number>;
  readonly unit: string;
  readonly getGoal: (name: string) => number;
}

interface Cost {
  readonly serverMicros: number;
  readonly p50Micros: number;
}

export async function compareRules({ ours, theirs, getMicros, unit, getGoal }: Compared): Promise<void> {
  const stores = [ours, theirs];
  for (const store of stores) await repeat(512, 64, () => createHeld(store));
  const only = process.env['BENCH_ONLY'];
  for (const name of Object.keys(RULE_CASES).filter((key) => only === undefined || key.includes(only))) {
    // Every connection plans its statements once.
    for (const store of stores) await measure(store, name, 64);
    for (const [index, clients] of CLIENTS.entries()) {
      const costs = new Map<TaskStore, Cost[]>(stores.map((store) => [store, []]));
      for (let round = 0; round < ROUNDS; round++) {
        for (const store of (round + index) % 2 === 0 ? stores : stores.toReversed()) {
          costs.get(store)!.push(await measure(store, name, clients));
        }
      }
      const median = (store: TaskStore, figure: keyof Cost): number =>
        percentile(
          costs.get(store)!.map((cost) => cost[figure]),
          0.5,
        );
      const p50Ratio = (median(ours, 'p50Micros') / median(theirs, 'p50Micros')).toFixed(2);
      report({
        name: `${name}, ${clients} clients`,
        ours: median(ours, 'serverMicros'),
        bare: median(theirs, 'serverMicros'),
        goal: { atMost: getGoal(name) },
        more: { unit, p50Ratio },
      });
    }
  }

  async function measure(store: TaskStore, name: string, clients: number): Promise<Cost> {
    const { prepare, run, count = COUNT, part = PART } = RULE_CASES[name]!;
    const names: string[] = Array.from({ length: count }, () => '');
    if (prepare !== undefined) await repeat(count, 64, async (index) => (names[index] = await prepare(store)));
    const latencies: number[] = [];
    const parts: number[] = [];
    // Other load on the machine makes some parts slower, and none faster.
    for (let first = 0, size = 0; first < count; first += size) {
      size = Math.min(count - first, Math.max(clients, part));
      const before = await getMicros(name);
      await repeat(size, clients, async (index) => {
        const from = performance.now();
        await run(store, names[first + index]!);
        latencies.push((performance.now() - from) * 1_000);
      });
      parts.push(((await getMicros(name)) - before) / size);
    }
    return { serverMicros: percentile(parts, 0.25), p50Micros: percentile(latencies, 0.5) };
  }
}
