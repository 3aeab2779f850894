import { migrateStore, type TaskRecord, type TaskStore } from '@whoa/tasks';
import { createPostgresStore } from '@whoa/tasks/internal';
import type { Hint } from '@whoa/tasks/store';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
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

test('listening through a pooler in transaction mode fails with what to do', async () => {
  await using store = createPostgresStore({ url: bouncer.url, schema: 'unheard' });
  await expect(store.watch({ worker: 'w' }, () => {})).rejects.toMatchObject({
    code: 'STORE_SETUP',
    message: expect.stringMatching(/127\.0\.0\.1.*transaction mode.*listenUrl/) as string,
  });
});

test('a store behind a pooler receives changes through a separate listenUrl', async () => {
  await using store = createPostgresStore({ url: bouncer.url, listenUrl: server.url, schema: 'heard' });
  await hearsOfCreation(store);
});

test('a pooler in session mode can be listened to', async () => {
  await using sessions = await startPgBouncer(server, 'session');
  await using store = createPostgresStore({ url: sessions.url, schema: 'sessions' });
  await hearsOfCreation(store);
});

async function hearsOfCreation(store: TaskStore): Promise<void> {
  const heard = Promise.withResolvers<Hint>();
  await using watching = await store.watch({ tenant: 'acme' }, heard.resolve);
  const receipt = await store.create({ tenant: 'acme', agent: 'a', input: 'x' });
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
  expect(await migrateStore({ ...pooled, listenUrl: server.url })).toMatchObject({ format: 1 });
});
