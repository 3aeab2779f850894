// What a trivial task costs Postgres: the server's processor time and WAL for each move, in batches of 20, and whole tasks per second
// with 64 clients, for this build and another, in turns. Name the other checkout, in which packages/tasks is built:
// npm run bench -- store-moves FOLDER [--json]
import { readFileSync } from 'node:fs';
import type { TaskStore } from '@whoa/tasks';
import { createPostgresStore } from '@whoa/tasks/internal';
import type { ClaimRef } from '@whoa/tasks/store';
import pg from 'pg';
import { startPostgres } from '../test/servers/postgres.ts';
import { percentile, report } from './measure/measure.ts';
import { importOther } from './stores/rule-costs.ts';

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 9);
const COUNT = Number(process.env['BENCH_COUNT'] ?? 400);
const BATCH = 20;
const CLIENTS = 64;

const other = await importOther();
await using server = await startPostgres({ durable: true });
const admin = new pg.Client(server.url);
// The server may end first if the bench fails.
admin.on('error', () => {});
await admin.connect();

type Moves = Readonly<Record<'create' | 'take' | 'append' | 'finish', () => Promise<void>>>;
let made = 0;

/** The moves of as many tasks, one after the other. */
function prepareMoves(store: TaskStore): Moves {
  const name = `agent ${made++}`;
  const held: ClaimRef[] = [];
  const inBatches = async (work: (claim: ClaimRef) => Promise<unknown>): Promise<void> => {
    for (let i = 0; i < held.length; i += BATCH) await Promise.all(held.slice(i, i + BATCH).map(work));
  };
  return {
    async create() {
      for (let i = 0; i < COUNT; i += BATCH)
        await Promise.all(Array.from({ length: BATCH }, () => create(store, name)));
    },
    async take() {
      for (let number = 1; held.length < COUNT; number++) held.push(...(await take(store, name, number)));
    },
    append: () => inBatches((claim) => store.append(claim, { after: 0, events: ['some hundred bytes of text'] })),
    finish: () => inBatches((claim) => store.finish(claim, { status: 'success', answer: 'done' })),
  };
}

const create = (store: TaskStore, agent: string): Promise<unknown> =>
  store.create({ tenant: 'bench', agent, input: 'a question of some forty characters' });

async function take(store: TaskStore, name: string, takeNumber: number): Promise<readonly ClaimRef[]> {
  // Earlier builds ask for a domain.
  const by = { session: name, worker: name, claim: `${name} ${takeNumber}`, leaseMs: 36_000_000, domain: 0 };
  const request = { ...by, takeNumber, agents: [name.replace(/ of .*/, '')], limit: BATCH };
  const taken = await store.take(request);
  if (taken.result !== 'taken') throw new Error(taken.result);
  return taken.tasks.map(({ claim }) => claim);
}

/** Whole tasks, by many clients and four workers at the same time. */
async function runTasks(store: TaskStore): Promise<void> {
  const agent = `agent ${made++}`;
  let [left, done] = [COUNT, 0];
  const client = async (): Promise<void> => {
    while (left-- > 0) await create(store, agent);
  };
  const worker = async (i: number): Promise<void> => {
    for (let number = 1; done < COUNT; ) {
      const claims = await take(store, `${agent} of ${i}`, number);
      if (claims.length === 0) await new Promise((resolve) => setImmediate(resolve));
      else number++;
      await Promise.all(claims.map((claim) => store.append(claim, { after: 0, events: ['x'] })));
      await Promise.all(claims.map((claim) => store.finish(claim, { status: 'success', answer: 'done' })));
      done += claims.length;
    }
  };
  await Promise.all([...Array.from({ length: CLIENTS }, client), ...[0, 1, 2, 3].map(worker)]);
}

interface Side {
  readonly name: 'ours' | 'theirs';
  readonly single: TaskStore;
  readonly shared: TaskStore;
}

const open = (name: 'ours' | 'theirs', create_: typeof createPostgresStore): Side => {
  const options = { url: `${server.url}?application_name=${name}`, schema: name };
  return {
    name,
    single: create_({ ...options, maxConnections: 1 }),
    shared: create_({ ...options, maxConnections: 8 }),
  };
};
const sides = [
  open('ours', createPostgresStore),
  open('theirs', (options) => other.createTaskStore({ backend: 'postgres', ...options })),
];

interface Cost {
  readonly micros: number;
  readonly walBytes: number;
  readonly perSecond: number;
}

async function measure({ name }: Side, work: () => Promise<void>): Promise<Cost> {
  const look = async (): Promise<readonly [number, number]> => {
    const { rows } = await admin.query<{ pid: number; wal: string }>(
      `SELECT pid, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS wal FROM pg_stat_activity WHERE application_name = $1`,
      [name],
    );
    const nanos = rows.map(({ pid }) => Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]));
    return [nanos.reduce((sum, one) => sum + one, 0) / 1_000, Number(rows[0]!.wal)];
  };
  const [[cpu, wal], from] = [await look(), performance.now()];
  await work();
  const seconds = (performance.now() - from) / 1_000;
  const [cpuAfter, walAfter] = await look();
  return { micros: (cpuAfter - cpu) / COUNT, walBytes: (walAfter - wal) / COUNT, perSecond: COUNT / seconds };
}

const costs = new Map<string, Cost[]>();
const MOVES = ['create', 'take', 'append', 'finish'] as const;
for (const { single, shared } of sides) {
  await prepareMoves(single).create();
  await runTasks(shared);
}
for (let round = 0; round < ROUNDS; round++) {
  const turn = round % 2 === 0 ? sides : sides.toReversed();
  const moves = new Map(turn.map((side) => [side, prepareMoves(side.single)]));
  const note = (key: string, cost: Cost): void => void costs.set(key, [...(costs.get(key) ?? []), cost]);
  for (const move of MOVES) {
    for (const side of turn) note(`${side.name} ${move}`, await measure(side, moves.get(side)![move]));
  }
  for (const side of turn) note(`${side.name} tasks`, await measure(side, () => runTasks(side.shared)));
}

const median = (key: string, of: keyof Cost): number =>
  percentile(
    costs.get(key)!.map((one) => one[of]),
    0.5,
  );
const sum = (name: string, of: keyof Cost): number =>
  MOVES.reduce((all, move) => all + median(`${name} ${move}`, of), 0);
for (const move of MOVES) {
  const [ours, theirs] = [median(`ours ${move}`, 'micros'), median(`theirs ${move}`, 'micros')];
  report({ name: move, ours, bare: theirs, goal: { atMost: 1.05 }, more: { unit: 'µs of server CPU' } });
}
const kinds = [
  ['micros', 'µs of server CPU', 0.7],
  ['walBytes', 'bytes of WAL', 1],
] as const;
for (const [of, unit, atMost] of kinds) {
  report({ name: 'a trivial task', ours: sum('ours', of), bare: sum('theirs', of), goal: { atMost }, more: { unit } });
}
const [ours, theirs] = [median('ours tasks', 'perSecond'), median('theirs tasks', 'perSecond')];
report({ name: 'whole tasks', ours, bare: theirs, goal: { atLeast: 1.25 }, more: { unit: 'tasks/s' } });
for (const { single, shared } of sides) {
  await single[Symbol.asyncDispose]();
  await shared[Symbol.asyncDispose]();
}
await admin.end();
