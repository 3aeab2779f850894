// Migrates a large table to a newer format beside a worker, and says how long it took and how long the worker waited.
//   npm run long -- migrate [ROWS] [SECONDS]
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { startPostgres } from '../servers/postgres.ts';
import { query } from '../servers/postgres-kind.ts';
import { startProgram } from '../tasks/child.ts';
import { startClient } from '../upgrade/client.ts';
import { createNextRelease, thisRelease } from '../upgrade/next-release.ts';

const [rows = '5000000', seconds = '20'] = process.argv.slice(2);
const PIECE = 250_000;
const WARM_MS = 10_000;
const INSERT = `
INSERT INTO whoa.tasks (id, tenant, agent, priority, status, epoch, created_at, started_at, ended_at, inputs_of, outcome)
SELECT 't0-' || md5(i::text), 'tenant' || i % 1000, 'a', 0, 'success', 2, i, i, extract(epoch FROM now()) * 1000,
  't0-' || md5(i::text), json_build_object('text', repeat('x', 100))
FROM generate_series($1::int, $2::int) i
`;

interface Took {
  readonly operations: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

using next = await createNextRelease({ partRows: 1_000 });
await using server = await startPostgres({ durable: true });
const location = JSON.stringify({ backend: 'postgres', url: server.url });
{
  await using old = await startClient(thisRelease, location);
  await old.store.tenants();
}
for (let first = 1; first <= Number(rows); first += PIECE) {
  await query(server.url, INSERT, [first, Math.min(first + PIECE - 1, Number(rows))]);
}
await query(server.url, 'ANALYZE');
const [size] = await query(server.url, "SELECT pg_size_pretty(pg_total_relation_size('whoa.tasks')) AS size");
console.log(`${rows} rows, ${String(size!['size'])}`);

await using load = startProgram(join(next.folder, 'test/upgrade/children/store-load.ts'), [location]);
await using client = await startClient(next, location);
// The first operations prepare statements and fill caches.
await wait(WARM_MS);
await report();
await wait(Number(seconds) * 1_000);
const before = await say('nothing else', Number(seconds));
for (const mode of ['run', 'finish'] as const) {
  const started = performance.now();
  const plan = await client.migrate(mode);
  const took = (performance.now() - started) / 1_000;
  const during = await say(`migrate ${mode}`, took);
  const states = plan.steps.map(({ name, state }) => `${name} ${state}`).join(', ');
  console.log(`  format ${plan.format}; ${states}`);
  console.log(`  longest ${ratio(during.max, before.max)}, p99 ${ratio(during.p99, before.p99)} of without`);
  console.log(
    `  ${Math.round(Number(rows) / took)} rows/s: 50 M rows in ${minutes(took, 50e6)}, 500 M in ${minutes(took, 500e6)}`,
  );
}

async function report(): Promise<Took> {
  const known = load.said.length;
  load.process.send('report');
  return load.hear<Took>((message) => load.said.indexOf(message) >= known);
}

async function say(what: string, took: number): Promise<Took> {
  const found = await report();
  const { operations, p50, p99, max } = found;
  const perSecond = Math.round(operations / took);
  console.log(
    `beside ${what}: ${took.toFixed(1)} s, ${perSecond} operations/s, p50 ${p50} ms, p99 ${p99} ms, longest ${max} ms`,
  );
  return found;
}

function ratio(now: number, then: number): string {
  return `${(now / then).toFixed(1)} times`;
}

function minutes(took: number, all: number): string {
  return `${Math.round((took * all) / Number(rows) / 60)} min`;
}
