import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { TaskRecord, TaskStore } from '@whoa/tasks';
import { createPostgresStore } from '@whoa/tasks/internal';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PostgresServer, readAccount, startPostgres } from '../servers/postgres.ts';
import { type Proxy as Network, startProxy } from '../servers/proxy.ts';
import { query } from '../servers/query.ts';
import { measureSlowness } from '../slowness.ts';

let server: PostgresServer;
beforeAll(async () => {
  // Room for few locks: one of the tests uses them all up.
  server = await startPostgres({ settings: { max_locks_per_transaction: '10', max_connections: '40' } });
});
afterAll(() => server[Symbol.asyncDispose]());

const toAddress = ({ url }: PostgresServer): { host: string; port: number } => {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
};

const through = (server: PostgresServer, network: Network): string => server.url.replace(/:\d+\//, `:${network.port}/`);

async function createTask(store: TaskStore, input: string = 'x'): Promise<TaskRecord> {
  const receipt = await store.create({ tenant: 'acme', agent: 'a', input });
  return (receipt as { task: TaskRecord }).task;
}

/** Only its owner may limit a process. */
async function ownerOfServers(): Promise<{ uid?: number; gid?: number }> {
  return process.getuid?.() === 0 ? readAccount('postgres') : {};
}

/** Opens as many connections as the store may have. */
const openAll = (store: TaskStore, maxConnections: number): Promise<unknown> =>
  Promise.all(Array.from({ length: maxConnections }, () => store.list({ tenant: 'acme' })));

const createMany = (store: TaskStore, count: number): Promise<TaskRecord[]> =>
  Promise.all(Array.from({ length: count }, () => createTask(store)));

test('a failover that leaves the connections on a read-only server: none is used again, no question fails', async () => {
  await using old = await startPostgres();
  await using promoted = await startPostgres();
  await using network = await startProxy(toAddress(old));
  await using store = createPostgresStore({ url: through(old, network), maxConnections: 6 });
  {
    await using other = createPostgresStore({ url: promoted.url });
    await other.list({ tenant: 'acme' });
  }
  await createMany(store, 30);
  await openAll(store, 6);
  await query(old.url, 'ALTER SYSTEM SET default_transaction_read_only = on');
  await query(old.url, 'SELECT pg_reload_conf()');
  await expect
    .poll(() => query(old.url, 'SHOW default_transaction_read_only'))
    .toEqual([{ default_transaction_read_only: 'on' }]);
  network.redirect(toAddress(promoted));
  const tasks = await createMany(store, 30);
  for (const { tenant, id } of tasks) expect(await store.get({ tenant, id })).toMatchObject({ id });
  expect(await query(promoted.url, 'SELECT count(*)::int FROM whoa.tasks')).toEqual([{ count: 30 }]);
});

test('a read-only server is busy, even for reads, and the error contains its address', async () => {
  await using store = createPostgresStore({ url: server.url });
  await createTask(store);
  await query(
    server.url,
    'CREATE ROLE reader SUPERUSER LOGIN; ALTER ROLE reader SET default_transaction_read_only = on',
  );
  await using late = createPostgresStore({ url: server.url.replace('postgres@', 'reader@') });
  const expected = {
    code: 'STORE_BUSY',
    message: expect.stringMatching(/127\.0\.0\.1:\d+\/postgres.*read-only.*primary.*Nothing was changed/) as string,
  };
  await expect(createTask(late)).rejects.toMatchObject(expected);
  await expect(late.list({ tenant: 'acme' })).rejects.toMatchObject(expected);
});

test('connections that have gone half-open are all left once one of them has not answered in time', async () => {
  await using network = await startProxy(toAddress(server));
  await using store = createPostgresStore({
    url: through(server, network),
    maxConnections: 5,
    statementTimeoutMs: 1_000,
  });
  const task = await createTask(store);
  await openAll(store, 5);
  expect(network.opened).toBeGreaterThanOrEqual(5);
  network.freeze();
  // The response is lost, so no one knows whether it was created; every later request finds a connection that works.
  await expect(createTask(store)).rejects.toMatchObject({ code: 'UNKNOWN_OUTCOME' });
  const before = performance.now();
  for (let i = 0; i < 10; i++) expect(await store.get({ tenant: 'acme', id: task.id })).toBeDefined();
  // Each of the others would cost a second.
  expect(performance.now() - before).toBeLessThan(3_000 * measureSlowness());
});

test('a question on a half-open connection is asked again by itself', async () => {
  await using network = await startProxy(toAddress(server));
  await using store = createPostgresStore({ url: through(server, network), statementTimeoutMs: 200 });
  const { tenant, id } = await createTask(store);
  network.freeze();
  expect(await store.get({ tenant, id })).toMatchObject({ id });
});

test('a full disk is reported, and everything works again once there is space', async () => {
  await using store = createPostgresStore({ url: server.url, maxConnections: 1 });
  await createTask(store);
  // No file may become larger than this; the journal of the server is made of files of 16 MB.
  const limit = 17 * 1024 * 1024 + 1;
  const setLimit = async (bytes: string): Promise<unknown> =>
    execFileSync('prlimit', ['--pid', `${server.pid}`, `--fsize=${bytes}:`], await ownerOfServers());
  await setLimit(`${limit}`);
  await using full = createPostgresStore({ url: server.url, maxConnections: 1 });
  const fill = async (): Promise<void> => {
    for (let i = 0; i < 60; i++) await createTask(full, randomBytes(300_000).toString('base64'));
  };
  await expect(fill()).rejects.toMatchObject({
    code: 'STORE_BUSY',
    message: expect.stringMatching(/disk of the server is full.*Nothing was changed/) as string,
  });
  await setLimit('unlimited');
  await using after = createPostgresStore({ url: server.url, maxConnections: 1 });
  await createTask(after, randomBytes(300_000).toString('base64'));
});

test('too many connections are reported, with what to change', async () => {
  await query(server.url, 'CREATE ROLE few LOGIN CONNECTION LIMIT 1; GRANT CREATE ON DATABASE postgres TO few');
  const url = server.url.replace('postgres@', 'few@');
  const holder = new pg.Client(url);
  await holder.connect();
  await using store = createPostgresStore({ url });
  await expect(createTask(store)).rejects.toMatchObject({
    code: 'STORE_BUSY',
    message: expect.stringMatching(/too many connections.*maxConnections/) as string,
  });
  await holder.end();
});

test('a server out of memory is busy', async () => {
  await using store = createPostgresStore({ url: server.url, maxConnections: 1 });
  await createTask(store);
  const holder = new pg.Client(server.url);
  await holder.connect();
  await holder.query('SELECT pg_advisory_lock(n) FROM generate_series(1, 100000) n').catch(() => {});
  await using late = createPostgresStore({ url: server.url, maxConnections: 1 });
  await expect(createTask(late)).rejects.toMatchObject({
    code: 'STORE_BUSY',
    message: expect.stringContaining('out of memory') as string,
  });
  await holder.end();
});

test('a wrong password, user or database is not an outage: it is reported once, without the password', async () => {
  const failureAt = async (url: string): Promise<Error> => {
    await using store = createPostgresStore({ url });
    return await createTask(store).then(
      () => expect.unreachable(),
      (error: unknown) => error as Error,
    );
  };
  expect(await failureAt(server.url.replace(/postgres$/, 'none'))).toMatchObject({
    code: 'STORE_SETUP',
    message: expect.stringMatching(/127\.0\.0\.1:\d+\/none: the database does not exist/) as string,
  });
  const stranger = await failureAt(server.url.replace('postgres@', 'stranger:secret@'));
  expect(stranger).toMatchObject({ code: 'STORE_SETUP' });
  expect(stranger.message).not.toContain('secret');
});

test('a listener that is suspended does not keep the server from removing old notifications', async () => {
  await using network = await startProxy(toAddress(server));
  await using store = createPostgresStore({
    url: server.url,
    listenUrl: through(server, network),
    statementTimeoutMs: 2_000,
    pollIntervalMs: 600_000,
  });
  await using watching = await store.watch({ tenant: 'stopped' }, () => {});
  const listens = "SELECT pid FROM pg_stat_activity WHERE application_name = 'whoa listens'";
  const [stopped] = await query(server.url, listens);
  network.stopReading();
  const usage = async (): Promise<number> =>
    Number((await query(server.url, 'SELECT pg_notification_queue_usage() AS usage'))[0]!['usage']);
  const [row] = await query(server.url, 'SELECT inbox FROM whoa.inboxes');
  const ring = (): Promise<unknown> =>
    query(server.url, 'SELECT count(pg_notify($1, n || $2)) FROM generate_series(1, 500) n', [
      String(row!['inbox']).replace('postgres:', ''),
      'x'.repeat(7_000),
    ]);
  // More than fits into the buffers; then the server waits for the client, and disconnects it.
  for (let i = 0; i < 10; i++) await ring();
  const isThere = async (): Promise<boolean> =>
    (await query(server.url, listens)).some(({ pid }) => pid === stopped!['pid']);
  await expect.poll(isThere, { timeout: 60_000, interval: 200 }).toBe(false);
  await expect.poll(usage, { timeout: 20_000, interval: 100 }).toBe(0);
  expect(watching).toBeDefined();
});
