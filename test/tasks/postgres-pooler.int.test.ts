import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { migrateStore, type TaskRecord, type TaskStore } from '@whoa/tasks';
import { createPostgresStore } from '@whoa/tasks/internal';
import type { Hint } from '@whoa/tasks/store';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { borrowRedis } from '../servers/borrow.ts';
import { type PgBouncer, startPgBouncer } from '../servers/pgbouncer.ts';
import { type PostgresServer, startPostgres } from '../servers/postgres.ts';
import { query } from '../servers/query.ts';

const SETTINGS = `SELECT name, setting FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout',
  'idle_in_transaction_session_timeout', 'enable_seqscan', 'plan_cache_mode', 'jit', 'synchronous_commit', 'tcp_user_timeout') ORDER BY 1`;

let server: PostgresServer;
let bouncer: PgBouncer;
beforeAll(async () => {
  server = await startPostgres();
  await query(server.url, 'ALTER ROLE postgres SET synchronous_commit = off');
  bouncer = await startPgBouncer(server, 'transaction');
});
afterAll(async () => {
  await bouncer[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

async function runOneTask(store: TaskStore): Promise<void> {
  const receipt = await store.create(
    { tenant: 'acme', agent: 'a', input: 'x', conversation: 'c' },
    { policy: 'queue' },
  );
  const { id } = (receipt as { task: TaskRecord }).task;
  await store.get({ tenant: 'acme', id });
  await store.list({ tenant: 'acme' });
  await store.cancel({ tenant: 'acme', id });
}

test('through a pooler in transaction mode everything works and nothing stays on its connections', async () => {
  const before = await query(bouncer.url, SETTINGS);
  {
    await using store = createPostgresStore({ url: bouncer.url, schema: 'pooled' });
    await Promise.all(Array.from({ length: 40 }, () => runOneTask(store)));
  }
  // As many as the pooler may have: all its connections are looked at.
  const clients = Array.from({ length: 20 }, () => new pg.Client(bouncer.url));
  for (const client of clients) await client.connect();
  for (const client of clients) await client.query('BEGIN');
  for (const client of clients) {
    expect((await client.query(SETTINGS)).rows).toEqual(before);
    expect((await client.query('SELECT name FROM pg_prepared_statements')).rows).toEqual([]);
    expect((await client.query('SELECT pg_listening_channels()')).rows).toEqual([]);
  }
  for (const client of clients) await client.end();
});

test('listening through a pooler in transaction mode warns with what to do, and changes are found by polls', async () => {
  const program = `
    import { createPostgresStore } from '@whoa/tasks/internal';
    import { followTask } from '@whoa/tasks';
    process.on('warning', ({ message, detail }) => console.log(message, detail));
    const [store, other] = [1, 2].map(() => createPostgresStore({ url: '${bouncer.url}', schema: 'unheard' }));
    const { task } = await store.create({ tenant: 'acme', agent: 'a', input: 'x' });
    const following = followTask(store, { tenant: 'acme', id: task.id });
    const end = following.next();
    await other.cancel({ tenant: 'acme', id: task.id });
    console.log((await end).value.task.status);
    await following.return();
    await Promise.all([store, other].map((one) => one[Symbol.asyncDispose]()));`;
  const args = ['--conditions=@whoa/source', '--input-type=module', '-e', program];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname });
  expect(stdout).toMatch(/found late.*127\.0\.0\.1.*transaction mode.*listenUrl.*\ncancelled\n$/);
});

test('a store behind a pooler in transaction mode hears of changes over a Redis bus', async () => {
  await using redis = await borrowRedis();
  const options = { url: bouncer.url, schema: 'by_redis', bus: redis.url };
  await using store = createPostgresStore(options);
  await using other = createPostgresStore(options);
  await hearsOfCreation(store, other);
});

test('a store behind a pooler receives changes through a separate listenUrl', async () => {
  const options = { url: bouncer.url, listenUrl: server.url, schema: 'heard' };
  await using store = createPostgresStore(options);
  await using other = createPostgresStore(options);
  await hearsOfCreation(store, other);
});

test('a pooler in session mode can be listened to', async () => {
  await using sessions = await startPgBouncer(server, 'session');
  await using store = createPostgresStore({ url: sessions.url, schema: 'sessions' });
  await hearsOfCreation(store);
});

async function hearsOfCreation(store: TaskStore, other = store): Promise<void> {
  const heard = Promise.withResolvers<Hint>();
  await using watching = await store.watch({ tenant: 'acme' }, heard.resolve);
  const receipt = await other.create({ tenant: 'acme', agent: 'a', input: 'x' });
  expect(await heard.promise).toMatchObject({ id: (receipt as { task: TaskRecord }).task.id });
  expect(watching).toBeDefined();
}

test('acknowledged writes are flushed to disk, even if the role disables that', async () => {
  await using store = createPostgresStore({ url: server.url, schema: 'flushed' });
  await store.list({ tenant: 'acme' });
  await query(
    server.url,
    `CREATE TABLE flushed.seen (value text);
     CREATE FUNCTION flushed.see() RETURNS trigger LANGUAGE plpgsql AS
       'BEGIN INSERT INTO flushed.seen VALUES (current_setting(''synchronous_commit'')); RETURN NULL; END';
     CREATE TRIGGER see AFTER INSERT ON flushed.tasks FOR EACH ROW EXECUTE FUNCTION flushed.see()`,
  );
  await store.create({ tenant: 'acme', agent: 'a', input: 'x' });
  expect(await query(server.url, 'SELECT * FROM flushed.seen')).toEqual([{ value: 'on' }]);
});

test('a migration needs a dedicated connection', async () => {
  const pooled = { backend: 'postgres', url: bouncer.url, schema: 'moved' } as const;
  await expect(migrateStore(pooled)).rejects.toMatchObject({
    code: 'STORE_SETUP',
    message: expect.stringMatching(/cannot be used to listen or migrate.*listenUrl/) as string,
  });
  expect(await migrateStore({ ...pooled, listenUrl: server.url })).toMatchObject({ format: 2 });
});
