// Changes a second on a Postgres whose disk needs 3 ms for a flush, with a listener: npm run bench -- flush [--json]
import { createTaskStore } from '@whoa/tasks';
import { startPostgres } from '../test/servers/postgres.ts';
import { percentile, report } from './measure/measure.ts';
import { claimOne, createOne, OPERATIONS, repeat } from './stores/operations.ts';
import { createBarePostgres } from './stores/postgres.ts';

const TASKS = 1_000;
const CHANGES = 4;
const CONCURRENCY = 64;
const CONNECTIONS = 16;
const ROUNDS = 5;
/** The goal. */
const PER_SECOND = 2_000;

// Every commit waits so long before it flushes, alone or not.
const settings = { commit_delay: '3000', commit_siblings: '0' };
await using server = await startPostgres({ durable: true, settings });
const config = { backend: 'postgres', url: server.url, maxConnections: CONNECTIONS } as const;
await using store = createTaskStore(config);
await using reader = createTaskStore(config);
await using bare = createBarePostgres(config);
let heard = 0;
const watching = await reader.watch({ tenant: 'bench' }, () => heard++);

/** From create to end: four changes. */
async function live(): Promise<void> {
  const id = await createOne(store);
  await claimOne(store, id);
  await OPERATIONS['append']!(store, id);
  await OPERATIONS['finish']!(store, id);
}

async function perSecond(changes: number, work: () => Promise<void>): Promise<number> {
  const from = performance.now();
  await work();
  return (changes * 1_000) / (performance.now() - from);
}

const samples = { ours: [] as number[], bare: [] as number[] };
for (let round = -1; round < ROUNDS; round++) {
  const ours = await perSecond(TASKS * CHANGES, () => repeat(TASKS, CONCURRENCY, live));
  const writes = await perSecond(TASKS, () => repeat(TASKS, CONCURRENCY, (i) => bare.write(`${round}-${i}`)));
  if (round < 0) continue;
  samples.ours.push(ours);
  samples.bare.push(writes);
}
await watching[Symbol.asyncDispose]();
if (heard === 0) throw new Error('nobody heard anything');
report({
  name: `changes a second at a flush of 3 ms, ${CONNECTIONS} connections, beside ${PER_SECOND}`,
  ours: percentile(samples.ours, 0.5),
  bare: PER_SECOND,
  goal: { atLeast: 1 },
  more: { unit: 'changes/s', bareWrites: Math.round(percentile(samples.bare, 0.5)), rounds: ROUNDS },
});
