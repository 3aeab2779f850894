// Journals of running tasks that each write once a second: the server's processor time, compared with one statement for each
// append, in turns on the same server. With the folder of another built checkout, compares with that checkout's store.
// npm run bench -- appends [2000] [FOLDER] [--json]
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { createTaskStore, type TaskStore } from '@whoa/tasks';
import type { ClaimRef } from '@whoa/tasks/store';
import pg from 'pg';
import { startPostgres } from '../test/servers/postgres.ts';
import { percentile, report } from './measure/measure.ts';

const { positionals } = parseArgs({ options: { json: { type: 'boolean' } }, allowPositionals: true });
const COUNT = Number(positionals.find((word) => /^\d+$/.test(word)) ?? 2_000);
const OTHER = positionals.find((word) => word.includes('/'));
const ROUNDS = 3;
const SECONDS = 10;
const TAKE = 100;
const LEASE_MS = 3_600_000;
const EVENT = {
  type: 'text',
  text: 'a hundred and some bytes of what a model said, as one event of a longer reply',
};

interface Running {
  readonly claim: ClaimRef;
  /** Between 0 and 1: when in a second it writes. */
  readonly phase: number;
  position: number;
}

interface Side {
  readonly schema: string;
  readonly tasks: readonly Running[];
  readonly append: (task: Running) => Promise<unknown>;
  /** The server's processor time for each append, by round. */
  readonly micros: number[];
  readonly latencies: number[];
}

await using server = await startPostgres({ durable: true, settings: { log_autovacuum_min_duration: '-1' } });
const admin = new pg.Pool({ connectionString: server.url, max: 10 });
const config = (schema: string) => ({ backend: 'postgres', url: server.url, schema }) as const;
{
  await using store = createTaskStore(config('ours'));
  const { createTaskStore: createOther } = await loadOther();
  await using other = createOther(config('bare'));
  const ours = await start('ours', store, (task) => append(store, task));
  const bare = await start('bare', other, OTHER === undefined ? appendAlone : (task) => append(other, task));
  for (let round = -1; round < ROUNDS; round++) {
    for (const side of [ours, bare]) {
      const before = await server.cpuMs();
      const latencies = await writeFor(side, round < 0 ? 2 : SECONDS);
      // All writes have been flushed; autovacuum's work counts when it runs.
      await wait(200);
      if (round < 0) continue;
      side.micros.push((((await server.cpuMs()) - before) * 1_000) / latencies.length);
      side.latencies.push(...latencies);
    }
  }
  const perSecond = (side: Side): number => Math.round(side.latencies.length / (SECONDS * ROUNDS));
  const times = (share: number): string =>
    [ours, bare].map(({ latencies }) => percentile(latencies, share).toFixed(1)).join(' beside ');
  const more = {
    unit: 'µs of server CPU',
    tasks: COUNT,
    rounds: ROUNDS,
    // Fewer than there are tasks: the machine was too busy to write them all in time.
    perSecond: `${perSecond(ours)} beside ${perSecond(bare)}`,
    p50Ms: times(0.5),
    p95Ms: times(0.95),
    ...(await readRows('ours')),
  };
  const figures = { ours: percentile(ours.micros, 0.5), bare: percentile(bare.micros, 0.5) };
  report({ name: 'append, of tasks that write every second', ...figures, goal: { atMost: 0.25 }, more });
}
await admin.end();

async function loadOther(): Promise<{ createTaskStore: typeof createTaskStore }> {
  if (OTHER === undefined) return { createTaskStore };
  const address = pathToFileURL(join(OTHER, 'packages/tasks/dist/index.js')).href;
  return (await import(address)) as { createTaskStore: typeof createTaskStore };
}

async function start(schema: string, store: TaskStore, write: Side['append']): Promise<Side> {
  const tasks: Running[] = [];
  for (let number = 1; tasks.length < COUNT; number++) {
    await Promise.all(Array.from({ length: TAKE }, () => store.create({ tenant: 'bench', agent: 'a', input: 'x' })));
    const request = { session: 's', worker: 'w', leaseMs: LEASE_MS, claim: `c${number}`, agents: ['a'] };
    const answer = await store.take({ ...request, takeNumber: number, limit: TAKE });
    if (answer.result !== 'taken') throw new Error(`take: ${answer.result}`);
    tasks.push(...answer.tasks.map(({ claim }) => ({ claim, phase: Math.random(), position: 0 })));
  }
  // As a worker listens for its orders.
  await store.watch({ worker: 'w' }, () => {});
  return { schema, tasks: tasks.slice(0, COUNT), append: write, micros: [], latencies: [] };
}

/** Every task writes once a second, at its own time; a task that is still writing waits for its next turn. */
async function writeFor({ tasks, append: write }: Side, seconds: number): Promise<number[]> {
  const from = performance.now();
  const latencies: number[] = [];
  const live = async (task: Running): Promise<void> => {
    for (let second = 0; second < seconds; second++) {
      const due = from + (second + task.phase) * 1_000;
      if (due < performance.now() - 1_000) continue;
      await wait(Math.max(0, due - performance.now()));
      const sent = performance.now();
      await write(task);
      task.position++;
      latencies.push(performance.now() - sent);
    }
  };
  await Promise.all(tasks.map(live));
  return latencies;
}

function append(store: TaskStore, { claim, position }: Running): Promise<unknown> {
  return store.append(claim, { after: position, events: [EVENT], resetsAttempts: true });
}

/** The statement that one append would be. */
async function appendAlone({ claim: { id, epoch, session, claim }, position }: Running): Promise<void> {
  const text = `SELECT bare_v3.append($1, $2, $3, $4, $5, $6, '{}', '{}', true, 1e9, NULL) AS answer, bare_v3.pending_notifications()
    FROM bare_v3.enter('10000', NULL, NULL)`;
  const { rows } = await admin.query<{ answer: object }>({
    name: 'append',
    text,
    values: [id, epoch, session, claim, position, [JSON.stringify(EVENT)]],
  });
  if ('answer' in rows[0]!.answer) throw new Error(`append: ${JSON.stringify(rows[0]!.answer)}`);
}

/** Updates that changed no index, and rows that wait for the vacuum. */
async function readRows(schema: string): Promise<{ hotPercent: number; dead: number }> {
  const { rows } = await admin.query<{ hot: number; all: number; dead: number }>(
    `SELECT sum(n_tup_hot_upd)::int AS hot, sum(n_tup_upd)::int AS all, sum(n_dead_tup)::int AS dead
     FROM pg_stat_user_tables WHERE schemaname = $1`,
    [schema],
  );
  const { hot, all, dead } = rows[0]!;
  return { hotPercent: Math.round((hot / all) * 100), dead };
}
