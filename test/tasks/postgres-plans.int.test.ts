import type { TaskRecord, TaskRef, TaskStore } from '@whoa/tasks';
import { createPostgresStore } from '@whoa/tasks/internal';
import type { ClaimRef } from '@whoa/tasks/store';
import { expect, test } from 'vitest';
import { borrowPostgres } from '../servers/borrow.ts';
import { query } from '../servers/query.ts';

const LEASE_MS = 60_000;
const SOON = { timeout: 30_000, interval: 50 };
/** Tasks that run elsewhere: far more than the operations below may read together. */
const HELD = 2_000;

async function createTask(store: TaskStore, rest: object = {}): Promise<TaskRecord> {
  const receipt = await store.create({ tenant: 'acme', agent: 'a', input: 'x', ...rest });
  return receipt.result === 'created' ? receipt.task : expect.unreachable();
}

async function createRunning(store: TaskStore, rest: object = {}): Promise<{ ref: TaskRef; by: ClaimRef }> {
  const { tenant, id } = await createTask(store, rest);
  const claim = { worker: 'w', leaseMs: LEASE_MS, session: `session of ${id}`, claim: `claim of ${id}` };
  const answer = await store.claim(id, claim);
  return answer.result === 'claimed' ? { ref: { tenant, id }, by: answer.claim } : expect.unreachable();
}

/** Runs every operation on few tasks. */
async function operate(store: TaskStore, name: string): Promise<void> {
  const { ref, by } = await createRunning(store, { conversation: name });
  await createTask(store, { conversation: name });
  await createTask(store, { conversation: name, debounceMs: 1 });
  await createTask(store, { key: name, notBefore: 1 });
  const session = `taker ${name}`;
  const request = { session, worker: 'w2', leaseMs: LEASE_MS, claim: name, takeNumber: 1 };
  for (let i = 0; i < 3; i++) await store.take({ ...request, agents: ['a', 'b'], limit: 5 });
  await store.append(by, { after: 0, events: ['x'], done: [1] });
  await store.append(by, { after: 1, events: ['y'] });
  await store.send(ref, { type: 'steer', message: 'x' });
  await store.cancel(ref);
  await store.heartbeat({ session: by.session, count: 1, confirmed: [{ ...by, orderNumber: 2 }] });
  await store.held({ session: by.session });
  await store.sweep();
  await store.get(ref);
  await store.list({ tenant: 'acme', limit: 5 });
  await store.list({ tenant: 'acme', limit: 5, status: 'running' });
  await store.list({ tenant: 'acme', limit: 5, status: 'running', conversation: name });
  await store.read(ref);
  await store.conversation({ tenant: 'acme', conversation: name });
  await store.conversations({ tenant: 'acme', limit: 5 });
  for (const target of [{ agent: 'b' }, { tenant: 'other' }]) {
    for (const isPaused of [true, false]) await store.pause(target, isPaused);
  }
  await store.release((await createRunning(store)).by);
  await store.finish(by, { status: 'success', history: [] });
  const running = await Promise.all(Array.from({ length: 5 }, () => createRunning(store)));
  await Promise.all(running.map(({ by: claim }) => store.append(claim, { after: 0, events: ['x'] })));
  await Promise.all(running.map(({ by: claim }) => store.finish(claim, { status: 'success' })));
  await store.cancel({ tenant: 'acme', conversation: name });
  for (const id of [ref.id, 't-nothing']) {
    await store.cancel({ tenant: 'acme', id });
    await store.cancel({ tenant: 'other', id });
    await store.send({ tenant: 'acme', id }, { type: 'steer', message: 'x' });
  }
  await store.remove({ tenant: 'acme', conversation: name });
}

test('no operation reads tasks that others hold, even if its plan was made while the store was empty', async () => {
  await using server = await borrowPostgres();
  const schema = 'plans';
  const options = { url: server.url, schema, retentionMs: 1_000_000 };
  const ask = (sql: string, values?: unknown[]): Promise<Record<string, unknown>[]> => query(server.url, sql, values);
  /** Rows read from each table, through an index or not. */
  const readRows = async (): Promise<Map<string, number>> => {
    const rows = await ask(
      `SELECT relname AS name, (idx_tup_fetch + seq_tup_read)::int AS read FROM pg_stat_user_tables
       WHERE schemaname = $1 AND relname <> ALL ($2)`,
      [schema, ['layout', 'settings', 'functions', 'store_state']],
    );
    return new Map(rows.map(({ name, read }) => [name as string, read as number]));
  };
  const clients = (name: string) => async (): Promise<unknown> =>
    (await ask('SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = $1', [name]))[0]!['n'];
  let before: Map<string, number>;
  {
    // One connection, so that the second round uses the plans of the first.
    await using store = createPostgresStore({ ...options, url: named(server.url, 'planner'), maxConnections: 1 });
    await operate(store, 'first');
    {
      await using other = createPostgresStore({ ...options, url: named(server.url, 'filler') });
      for (let i = 0; i < HELD / 100; i++) {
        await Promise.all(Array.from({ length: 100 }, () => createTask(other)));
        const request = { session: 'others', worker: 'o', leaseMs: LEASE_MS, claim: `others ${i}` };
        await other.take({ ...request, takeNumber: i + 1, agents: ['a'], limit: 100 });
      }
    }
    // Connections hand their figures in when they end.
    await expect.poll(clients('filler'), SOON).toBe(0);
    before = await readRows();
    await operate(store, 'second');
  }
  await expect.poll(clients('planner'), SOON).toBe(0);
  for (const [name, read] of await readRows()) {
    expect(read - (before.get(name) ?? 0), `rows read of ${name}`).toBeLessThan(HELD / 2);
  }
}, 120_000);

function named(url: string, name: string): string {
  const address = new URL(url);
  address.searchParams.set('application_name', name);
  return address.href;
}
