// A fleet under load for an hour: memory, descriptors, connections and queue age stay flat, and no request fails.
//   npm run long -- soak [MINUTES] [--log]
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createTaskStore, type TaskStore, type TaskStoreConfig } from '@whoa/tasks';
import pg from 'pg';
import { addToCampaignLog } from '../campaigns/campaign-log.ts';
import { startPostgres } from '../servers/postgres.ts';
import { type Fleet, startFleet } from '../soak/fleet.ts';
import { runLoad } from '../soak/load.ts';
import { computeTrend } from '../soak/trend.ts';

const PER_SECOND = 4;
const SAMPLES = 180;
/** So that the store has as many records after ten minutes as after an hour. */
const RETENTION_MS = 120_000;

interface Backend extends AsyncDisposable {
  readonly config: TaskStoreConfig;
  connections(): Promise<number>;
  /** The memory of the server itself. */
  bytes(): Promise<number>;
}

async function openPostgres(): Promise<Backend> {
  const server = await startPostgres({ durable: true });
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  const read = async (sql: string): Promise<number> => Number((await client.query<{ n: string }>(sql)).rows[0]!.n);
  return {
    config: { backend: 'postgres', url: server.url, retentionMs: RETENTION_MS },
    connections: () => read('SELECT count(*) AS n FROM pg_stat_activity'),
    bytes: () => read('SELECT pg_database_size(current_database()) AS n'),
    async [Symbol.asyncDispose]() {
      await client.end();
      await server[Symbol.asyncDispose]();
    },
  };
}

function residentBytes(pid: number): number {
  return 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

/** Reads everything that must stay flat, once. */
async function sample(fleet: Fleet, backend: Backend, store: TaskStore): Promise<Record<string, number>> {
  const values: Record<string, number> = {};
  for (const { name, pid } of fleet.processes) {
    values[`${name} memory, MB`] = residentBytes(pid) / 1e6;
    values[`${name} descriptors`] = readdirSync(`/proc/${pid}/fd`).length;
  }
  values['connections of the store'] = await backend.connections();
  values['data of the store, MB'] = (await backend.bytes()) / 1e6;
  const { queues, now } = await store.queues();
  values['oldest ready task, ms'] = Math.max(0, ...queues.map(({ oldestReadyAt }) => now - oldestReadyAt));
  return values;
}

/** Growth that is not a leak, whatever the noise: a connection more, a few pages, a moment of waiting. */
const MIN_GROWTH: readonly (readonly [RegExp, number])[] = [
  [/descriptors|connections/, 3],
  [/memory/, 10],
  [/data/, 5],
  [/oldest/, 500],
];

interface Soaked {
  readonly store: string;
  /** How many tasks there were. */
  readonly count: number;
  /** Failures, and values that grew. */
  readonly violations: number;
}

async function soak(name: string, open: () => Promise<Backend>, minutes: number): Promise<Soaked> {
  await using backend = await open();
  await using fleet = await startFleet(backend.config, { servers: 2, workers: 3 });
  await using store = createTaskStore(backend.config);
  const stopping = new AbortController();
  const loading = runLoad(fleet, { perSecond: PER_SECOND, signal: stopping.signal });
  const samples: Record<string, number>[] = [];
  for (let i = 0; i < SAMPLES && fleet.crashes.length === 0; i++) {
    await wait((minutes * 60_000) / SAMPLES);
    samples.push(await sample(fleet, backend, store));
  }
  stopping.abort();
  const report = await loading;
  const violations = [...report.violations, ...fleet.crashes];
  const trends = Object.keys(samples[0] ?? {}).map((key) => {
    const minGrowth = MIN_GROWTH.find(([pattern]) => pattern.test(key))?.[1];
    return computeTrend({ name: key, values: samples.map((one) => one[key] ?? 0) }, minGrowth);
  });
  console.log(name, JSON.stringify({ minutes, ...report, violations: violations.length }));
  for (const { name: key, median, growth, noise, isFlat } of trends) {
    const figures = [median, growth, noise].map((figure) => figure.toFixed(1));
    console.log(
      `  ${isFlat ? 'flat' : 'GROWS'}  ${key}: median ${figures[0]}, growth ${figures[1]}, noise ${figures[2]}`,
    );
  }
  for (const violation of violations.slice(0, 20)) console.log(`  ${violation}`);
  const grown = trends.filter(({ isFlat }) => !isFlat);
  return { store: name, count: report.created, violations: violations.length + grown.length };
}

const { values, positionals } = parseArgs({ options: { log: { type: 'boolean' } }, allowPositionals: true });
const [minutes = '60'] = positionals;
const { violations, ...rest } = await soak('postgres', openPostgres, Number(minutes));
if (violations > 0) process.exitCode = 1;
if (values.log) await addToCampaignLog({ campaign: 'soak', unit: 'tasks', ...rest, violations });
