// Dead rows of Postgres that wait for the vacuum, while tasks are created, write every second and end: their number
// must be bounded.
//   npm run long -- dead-rows [MINUTES] [TASKS]
import { setTimeout as wait } from 'node:timers/promises';
import { createTaskStore } from '@whoa/tasks';
import type { ClaimRef } from '@whoa/tasks/store';
import pg from 'pg';
import { startPostgres } from '../servers/postgres.ts';

const [minutes = 30, tasks = 2_000] = process.argv.slice(2).map(Number);
/** A task ends after this many writes, and another one starts. */
const WRITES = 60;
const RETENTION_MS = 120_000;
const SAMPLE_MS = 15_000;
const EVENT = { type: 'text', text: 'a hundred and some bytes of what a model said, as one event of a longer reply' };

interface Sample {
  readonly live: number;
  readonly dead: number;
  readonly megabytes: number;
}

// The server's default settings, as an operator has them without tuning.
await using server = await startPostgres({ durable: true });
const admin = new pg.Client({ connectionString: server.url });
await admin.connect();
const samples: Sample[] = [];
let [isOver, takes, ended] = [false, 0, 0];
{
  const url = server.url;
  await using store = createTaskStore({ backend: 'postgres', url, schema: 'dead_rows', retentionMs: RETENTION_MS });
  // A session takes one at a time, as a worker does.
  let taking: Promise<unknown> = Promise.resolve();
  const take = (): Promise<ClaimRef> => {
    const taken = taking.then(async () => {
      const takeNumber = ++takes;
      const request = { session: 's', worker: 'w', leaseMs: 3_600_000, claim: `c${takeNumber}`, takeNumber };
      const answer = await store.take({ ...request, agents: ['a'], limit: 1 });
      if (answer.result !== 'taken' || answer.tasks.length !== 1) throw new Error(`take: ${JSON.stringify(answer)}`);
      return answer.tasks[0]!.claim;
    });
    taking = taken;
    return taken;
  };
  const live = async (): Promise<void> => {
    await wait(Math.random() * WRITES * 1_000);
    while (!isOver) {
      await store.create({ tenant: 'acme', agent: 'a', input: 'x' });
      const claim = await take();
      for (let after = 0; after < WRITES && !isOver; after++) {
        await store.append(claim, { after, events: [EVENT], resetsAttempts: true });
        await wait(1_000);
      }
      await store.finish(claim, { status: 'success', answer: 'done' });
      ended++;
    }
  };
  const work = [Promise.all(Array.from({ length: tasks }, live)), sweep()];
  const until = performance.now() + minutes * 60_000;
  while (performance.now() < until) {
    await wait(SAMPLE_MS);
    const sample = await look();
    samples.push(sample);
    console.log(JSON.stringify({ minute: ((samples.length * SAMPLE_MS) / 60_000).toFixed(2), ended, ...sample }));
  }
  isOver = true;
  await Promise.all(work);

  async function sweep(): Promise<void> {
    while (!isOver) {
      await store.sweep({ limit: 100 });
      await wait(500);
    }
  }
}
await admin.end();
// After the first third everything has been vacuumed at least once.
const third = Math.floor(samples.length / 3);
const most = (part: readonly Sample[], field: keyof Sample): number => Math.max(...part.map((sample) => sample[field]));
const [before, after] = [samples.slice(third, 2 * third), samples.slice(2 * third)];
const grown = (['dead', 'megabytes'] as const).filter((field) => most(after, field) > 1.25 * most(before, field));
const summary = {
  minutes,
  tasks,
  ended,
  mostDead: most(after, 'dead'),
  mostMegabytes: most(after, 'megabytes'),
  grown,
};
console.log(JSON.stringify(summary));
if (grown.length > 0) process.exitCode = 1;

async function look(): Promise<Sample> {
  const { rows } = await admin.query<Sample>(
    `SELECT sum(n_live_tup)::float8 AS live, sum(n_dead_tup)::float8 AS dead,
       round(sum(pg_total_relation_size(relid)) / 1e6)::float8 AS megabytes
     FROM pg_stat_user_tables WHERE schemaname LIKE 'dead_rows%'`,
  );
  return rows[0]!;
}
