import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TaskRecord, TaskStore } from '@whoa/tasks';
import { createPostgresStore } from '@whoa/tasks/internal';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startCommand } from '../command/process.ts';
import { createHome } from '../command/terminal.ts';
import { type PostgresServer, startPostgres } from '../servers/postgres.ts';
import { query } from '../servers/query.ts';
import { storeKinds } from '../tasks/shared-stores.ts';
import { startClient } from './client.ts';
import { readMarks } from './marks.ts';
import { migrate } from './migrate.ts';
import { createNextRelease, type Release, thisRelease } from './next-release.ts';

const SOON = { timeout: 60_000, interval: 20 };

let next: Release & Disposable;
let server: PostgresServer;
beforeAll(async () => {
  next = await createNextRelease();
  server = await startPostgres();
});
afterAll(async () => {
  next[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});

async function createTask(store: TaskStore): Promise<TaskRecord> {
  const receipt = await store.create({ tenant: 'acme', agent: 'a', input: 'x' });
  if (receipt.result !== 'created') throw new Error(receipt.result);
  return receipt.task;
}

async function claim(store: TaskStore, id: string): Promise<void> {
  const session = { session: id, worker: 'w', claim: 'c', leaseMs: 60_000 };
  expect(await store.claim(id, session)).toMatchObject({ result: 'claimed' });
}

test('the rights on the page are enough, in this release and the next', async () => {
  const page = readFileSync(join(thisRelease.folder, 'docs/operations/upgrade.md'), 'utf8');
  const [, sql = ''] = /```sql\n(.*?)```/s.exec(page) ?? [];
  await query(server.url, 'CREATE DATABASE agents');
  const url = server.url.replace(/postgres$/, 'agents');
  await query(url, 'REVOKE ALL ON DATABASE agents FROM PUBLIC');
  await query(url, sql);
  const owner = JSON.stringify({ backend: 'postgres', url: url.replace('postgres@', 'whoa_owner@') });
  const app = { backend: 'postgres', url: url.replace('postgres@', 'whoa_app@') };
  {
    await using early = createPostgresStore({ url: app.url });
    const refused = /^Postgres at .*\/agents: schema 'whoa' does not exist .* run 'whoa migrate' as a user who may/;
    await expect(early.tenants()).rejects.toThrow(refused);
  }
  const first = await migrate(thisRelease, owner);
  expect(first).toEqual({ code: 0, said: expect.stringContaining('has format 2') as string });
  await using store = createPostgresStore({ url: app.url });
  await using watching = await store.watch({ tenant: 'acme' }, () => {});
  const receipt = await store.create({ tenant: 'acme', agent: 'a', input: 'x', conversation: 'c' });
  if (receipt.result !== 'created') return expect.unreachable();
  const { task } = receipt;
  const session = { session: 's', worker: 'w', claim: 'c', leaseMs: 60_000 };
  const taken = await store.take({ takeNumber: 1, agents: ['a'], limit: 1, ...session });
  if (taken.result !== 'taken') return expect.unreachable();
  const { claim } = taken.tasks[0]!;
  await store.append(claim, { after: 0, events: [{ type: 'step' }] });
  await store.heartbeat({ session: 's', count: 1 });
  expect(await store.cancel(task)).toMatchObject({ result: 'accepted' });
  expect(await store.finish(claim, { status: 'cancelled' })).toMatchObject({ status: 'cancelled' });
  expect(watching).toBeDefined();
  // The next release has its own functions.
  await using late = await startClient(next, JSON.stringify(app));
  await expect(late.store.tenants()).rejects.toThrow(/schema 'whoa_v3' does not exist .* run 'whoa migrate'/);
  expect(await migrate(next, owner, ['--finish'])).toMatchObject({ code: 0 });
  expect(await late.store.get(task)).toMatchObject({ status: 'cancelled' });
  expect(await late.store.create({ tenant: 'acme', agent: 'a', input: 'x' })).toMatchObject({ result: 'created' });
  await expect(store.get(task)).rejects.toThrow(/^Postgres at .*\/agents: the schema has format 3, .* update Whoa/);
});

test.for(storeKinds)('two releases use a $name store of the older one, until the newer one finishes', async (kind) => {
  await using opened = await kind.open();
  const { location } = opened;
  await using old = await startClient(thisRelease, location);
  const { id } = await createTask(old.store);
  expect((await migrate(next, location, ['--plan'])).said).toContain('has format 2; the newest of this version');
  await using late = await startClient(next, location);
  const { id: other } = await createTask(late.store);
  await claim(late.store, id);
  await claim(old.store, other);
  expect((await migrate(next, location)).said).toMatch(/has format 2;.*\nNext: 'whoa migrate --finish', once no/);
  expect(await readMarks(location, [id, other])).toEqual([null, null]);
  const { id: last } = await createTask(old.store);
  expect((await migrate(next, location, ['--finish'])).said).toMatch(/has format 3;.*\nThere is nothing to do\.$/m);
  await claim(late.store, last);
  expect(await readMarks(location, [id, other, last])).toEqual([null, null, 'two']);
  await expect(createTask(old.store)).rejects.toThrow(/has format 3, and this version of Whoa uses format 2; update/);
  const refused = await migrate(thisRelease, location, ['--plan']);
  expect(refused).toEqual({ code: 1, said: expect.stringContaining('has format 3') as string });
});

test.for(storeKinds)(
  'a $name store that the next release creates has its format, and nothing to migrate',
  async (kind) => {
    await using opened = await kind.open();
    const { location } = opened;
    await using client = await startClient(next, location);
    const { id } = await createTask(client.store);
    await claim(client.store, id);
    expect(await readMarks(location, [id])).toEqual(['two']);
    const { said } = await migrate(next, location, ['--plan', '--json']);
    expect(JSON.parse(said)).toMatchObject({ type: 'plan', format: 3, oldest: 2, newest: 3, missing: [] });
  },
);

test('new columns and indexes of Postgres keep no one waiting for long', async () => {
  const location = JSON.stringify({ backend: 'postgres', url: server.url, schema: 'busy' });
  await using store = createPostgresStore({ url: server.url, schema: 'busy' });
  await createTask(store);
  const plan = async (): Promise<string[]> => {
    const { said } = await migrate(next, location, ['--plan', '--json']);
    return (JSON.parse(said) as { missing: string[] }).missing;
  };
  expect(await plan()).toEqual(['column tasks.mark', 'index tasks_marked', 'functions busy_v3']);
  const other = new pg.Client(server.url);
  await other.connect();
  onTestFinished(() => other.end());
  // Another program reads the table for long: the new column has to wait, and is given up.
  await other.query('BEGIN; LOCK TABLE busy.tasks IN ACCESS SHARE MODE');
  const locked = await migrate(next, location);
  expect(locked).toEqual({
    code: 1,
    said: expect.stringMatching(/a table was locked for too long.*try again/) as string,
  });
  await createTask(store);
  expect(await plan()).toEqual(['column tasks.mark', 'index tasks_marked', 'functions busy_v3']);
  // Another program has an old snapshot: the index has to wait for it, and nothing else does.
  await other.query('ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
  const waiting = migrate(next, location);
  const find = `SELECT pid FROM pg_stat_activity WHERE application_name = 'whoa migrate' AND wait_event_type = 'Lock'
    AND query ~ 'CREATE INDEX'`;
  await expect.poll(async () => (await query(server.url, find)).length, SOON).toBe(1);
  await createTask(store);
  const rival = await migrate(next, location);
  expect(rival).toEqual({ code: 1, said: expect.stringContaining('being migrated by another process') as string });
  // An index that was not completed is created again.
  await query(server.url, `SELECT pg_cancel_backend(pid) FROM (${find}) AS found`);
  expect(await waiting).toMatchObject({ code: 1 });
  expect(await plan()).toEqual(['index tasks_marked']);
  await other.query('ROLLBACK');
  expect(await migrate(next, location)).toMatchObject({ code: 0 });
  expect(await plan()).toEqual([]);
  expect(await store.counts({ tenant: 'acme' })).toMatchObject({ statuses: { init: 3 } });
});

test('a worker that the store rejects reports it and exits with 1', async () => {
  using home = createHome({ 'script.json': '[["All is well."]]' });
  const file = home.folder.at('state/whoa/tasks.db');
  const worker = startCommand(home, ['worker', '--model', 'scripted:script.json', '--sandbox', 'none', '--yes']);
  await worker.waitFor({ type: 'working' });
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  const raw = new DatabaseSync(file);
  raw.exec('PRAGMA busy_timeout = 5000; PRAGMA user_version = 3');
  raw.close();
  expect(await worker.closed).toEqual([1, null]);
  const message = `${file} has format 3, and this version of Whoa uses format 2; update Whoa`;
  expect(worker.lines.at(-1)).toEqual({ type: 'error', message, code: 'STORE_SETUP' });
});

test('a store that the command cannot migrate is a usage error', async () => {
  using home = createHome({ 'memory.mjs': "export default { store: { backend: 'memory' } };" });
  expect(await home.main(['migrate', '--config', 'memory.mjs'])).toMatchObject({
    status: 2,
    stderr: 'whoa migrate: the memory store has no data to migrate\n',
  });
  expect(await home.main(['migrate', '--plan', '--finish'])).toMatchObject({ status: 2 });
  expect(await home.main(['migrate', '--plan', '--json'])).toMatchObject({ status: 0 });
});
