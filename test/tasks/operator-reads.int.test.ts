import { createVirtualWorld } from '@whoa/core/testing';
import { createPrometheusMetrics, createTelemetry } from '@whoa/server/telemetry';
import { createTaskStore, readFleetLoad, type TaskStore } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { startPostgres } from '../servers/postgres.ts';
import { query } from '../servers/query.ts';
import { readValue } from '../telemetry/read-value.ts';
import { alterStore } from './altered-store.ts';

const TENANTS = 5_000;
const MAX_STATEMENT_MS = 50;

async function fill(store: TaskStore): Promise<void> {
  let made = 0;
  const create = async (): Promise<void> => {
    while (made < TENANTS) await store.create({ tenant: `t${made++}`, agent: 'a', input: 1 });
  };
  await Promise.all(Array.from({ length: 64 }, create));
}

/** Reads all that operators read. */
async function readAll(store: TaskStore): Promise<void> {
  const { agents, hasMore } = await readFleetLoad(store);
  expect([agents, hasMore]).toMatchObject([[{ ready: TENANTS, isUnserved: true }], false]);
  await store.tenants({ limit: 1_000 });
  await store.counts({ tenant: 't1' });
  await store.list({ tenant: 't1' });
}

/** The longest step of the server must be short: at least once, because a busy machine makes any step long. */
async function expectShort(longest: () => Promise<number>, atMostMs: number): Promise<void> {
  await expect.poll(longest, { timeout: 120_000, interval: 1 }).toBeLessThan(atMostMs);
}

/** Two servers of one fleet publish the queue metrics; only one of them reads the queues. */
async function expectOneReading(open: () => TaskStore): Promise<void> {
  const world = createVirtualWorld();
  const reads = [0, 0];
  const shown: (number | undefined)[] = [];
  await using stack = new AsyncDisposableStack();
  for (const server of reads.keys()) {
    const store = alterStore(stack.use(open()), (name, call) => {
      if (name === 'queues') reads[server]!++;
      return call();
    });
    const prometheus = await createPrometheusMetrics();
    stack.use(await createTelemetry({ prometheus, world }).watchStore(store));
    const ready = async (): Promise<number | undefined> =>
      readValue(await prometheus.read(), 'whoa.ready.tasks', '{agent="a"}');
    await expect.poll(ready).toBeDefined();
    shown.push(await ready());
  }
  expect(shown).toEqual([1_000, 1_000]);
  expect(reads).toEqual([20, 0]);
}

test('5,000 tenants that wait keep no statement of Postgres long, and one server reads them for all', async () => {
  await using server = await startPostgres({ settings: { shared_preload_libraries: 'pg_stat_statements' } });
  const open = (): TaskStore => createTaskStore(server.url);
  await using store = open();
  await query(server.url, 'CREATE EXTENSION pg_stat_statements');
  await fill(store);
  await expectShort(async () => {
    await query(server.url, 'SELECT pg_stat_statements_reset()');
    await readAll(store);
    const [found] = await query(
      server.url,
      'SELECT max(max_exec_time) AS ms, sum(calls)::int AS n FROM pg_stat_statements',
    );
    expect(found!['n']).toBeGreaterThan(TENANTS / 100);
    return found!['ms'] as number;
  }, MAX_STATEMENT_MS);
  await expectOneReading(open);
});
