import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createMigration, createPostgresStore, createSqliteStore } from '@whoa/tasks';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startCommand } from '../command/process.ts';
import { createHome } from '../command/terminal.ts';
import { type PostgresServer, startPostgres } from '../servers/postgres.ts';
import { query } from '../servers/postgres-kind.ts';
import { startRedis } from '../servers/redis.ts';
import { temporaryFolder } from '../tasks/child.ts';
import { startClient } from './client.ts';
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

/** Runs `whoa migrate` of a release on a store. */
function migrate({ folder }: Release, store: object, args: readonly string[] = []): Migrating {
  const home = temporaryFolder();
  onTestFinished(() => home[Symbol.dispose]());
  const config = join(home.path, 'whoa.config.mjs');
  writeFileSync(config, `export default { store: ${JSON.stringify(store)} };`);
  const bin = join(folder, 'packages/whoa/src/bin.ts');
  const flags = ['--conditions=@whoa/source', '--no-warnings', bin, 'migrate', '--config', config, ...args];
  const child = spawn(process.execPath, flags, { stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let said = '';
  for (const output of [child.stdout, child.stderr]) output.on('data', (chunk: Buffer) => (said += chunk.toString()));
  return { child, ended: once(child, 'close').then(([code]) => ({ code: code as number | null, said })) };
}

interface Migrating {
  readonly child: ChildProcess;
  readonly ended: Promise<{ readonly code: number | null; readonly said: string }>;
}

test('the rights on the page are enough, in this release and the next', async () => {
  const page = readFileSync(join(thisRelease.folder, 'docs/operations/upgrade.md'), 'utf8');
  const [, sql = ''] = /```sql\n(.*?)```/s.exec(page) ?? [];
  await query(server.url, 'CREATE DATABASE agents');
  const url = server.url.replace(/postgres$/, 'agents');
  await query(url, 'REVOKE ALL ON DATABASE agents FROM PUBLIC');
  await query(url, sql);
  const owner = { backend: 'postgres', url: url.replace('postgres@', 'whoa_owner@') } as const;
  const app = { backend: 'postgres', url: url.replace('postgres@', 'whoa_app@') } as const;
  {
    await using early = createPostgresStore({ url: app.url });
    const refused = /^Postgres at .*\/agents: schema 'whoa' does not exist .* run 'whoa migrate' as a user that may/;
    await expect(early.tenants()).rejects.toThrow(refused);
  }
  const first = await migrate(thisRelease, owner).ended;
  expect(first).toEqual({ code: 0, said: expect.stringContaining('has format 1') as string });
  await using store = createPostgresStore({ url: app.url });
  await using watching = await store.watch({ tenant: 'acme' }, () => {});
  const receipt = await store.create({ tenant: 'acme', agent: 'a', input: 'x', conversation: 'c' });
  if (receipt.answer !== 'created') return expect.unreachable();
  const { task } = receipt;
  const session = { session: 's', worker: 'w', claim: 'c', leaseMs: 60_000 };
  const taken = await store.take({ domain: 0, number: 1, agents: ['a'], limit: 1, ...session });
  if (taken.answer !== 'taken') return expect.unreachable();
  const { claim } = taken.tasks[0]!;
  await store.append(claim, { after: 0, events: [{ type: 'step' }] });
  await store.beat({ domain: 0, session: 's', count: 1 });
  expect(await store.cancel(task)).toMatchObject({ answer: 'accepted' });
  expect(await store.finish(claim, { status: 'cancelled' })).toMatchObject({ status: 'cancelled' });
  expect(watching).toBeDefined();
  // The next release has functions of its own.
  await using late = await startClient(next, JSON.stringify(app));
  await expect(late.store.tenants()).rejects.toThrow(/schema 'whoa_v2' does not exist .* run 'whoa migrate'/);
  expect(await migrate(next, owner, ['--finish']).ended).toMatchObject({ code: 0 });
  expect(await late.store.get(task)).toMatchObject({ status: 'cancelled' });
  expect(await late.store.create({ tenant: 'acme', agent: 'a', input: 'x' })).toMatchObject({ answer: 'created' });
  await expect(store.get(task)).rejects.toThrow(/^Postgres at .*\/agents: the schema has format 2, .* update Whoa/);
});

test('a migration gives way to others, stops on Ctrl-C in the middle of a step, and continues', async () => {
  const options = { backend: 'postgres', url: server.url, schema: 'busy' } as const;
  await using store = createPostgresStore({ url: server.url, schema: 'busy' });
  for (let i = 0; i < 120; i++) await store.create({ tenant: 'acme', agent: 'a', input: i });
  const other = new pg.Client(server.url);
  await other.connect();
  onTestFinished(() => other.end());
  const waits = async (what: string): Promise<void> => {
    const sql = `SELECT FROM pg_stat_activity WHERE application_name = 'whoa migrate' AND state = 'active'
      AND wait_event_type = 'Lock' AND query ~ $1`;
    await expect.poll(async () => (await query(server.url, sql, [what])).length, SOON).toBe(1);
  };
  // Somebody reads the table for long: the new column has to wait, and nobody has to wait for it for long.
  await other.query('BEGIN; LOCK TABLE busy.tasks IN ACCESS SHARE MODE');
  const first = migrate(next, options);
  await waits('ALTER TABLE');
  for (let i = 0; i < 5; i++) await store.create({ tenant: 'acme', agent: 'a', input: i });
  await using rival = createMigration(options);
  await expect(rival.run()).rejects.toMatchObject({
    code: 'STORE_BUSY',
    message: expect.stringContaining('being migrated by another process') as string,
  });
  first.child.kill('SIGINT');
  expect(await first.ended).toEqual({ code: 130, said: 'stopped; run it again to continue where it was\n' });
  // Somebody has an old snapshot: the index has to wait for it.
  await other.query('ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
  const second = migrate(next, options);
  await waits('CREATE INDEX');
  second.child.kill('SIGINT');
  expect(await second.ended).toMatchObject({
    code: 130,
    said: expect.stringContaining('fill mark: 125 rows') as string,
  });
  const valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('busy.tasks_marked')";
  expect(await query(server.url, valid)).toEqual([{ indisvalid: false }]);
  await other.query('ROLLBACK');
  const third = await migrate(next, options).ended;
  expect(third).toEqual({
    code: 0,
    said: expect.stringMatching(/^✔ index mark\n.*Next: 'whoa migrate --finish'/s) as string,
  });
  expect(await query(server.url, valid)).toEqual([{ indisvalid: true }]);
  expect(await store.counts({ tenant: 'acme' })).toMatchObject({ statuses: { init: 125 } });
});

test('a store that the next release creates has its format, and nothing to migrate', async () => {
  using folder = temporaryFolder();
  await using redis = await startRedis();
  const shards = { backend: 'redis', url: redis.url, shards: 2 };
  const locations = [
    folder.file,
    JSON.stringify(shards),
    JSON.stringify({ backend: 'postgres', url: server.url, schema: 'new' }),
  ];
  for (const location of locations) {
    await using client = await startClient(next, location);
    for (let i = 0; i < 8; i++) await client.store.create({ tenant: 'acme', agent: 'a', input: i });
    expect(await client.migrate('run')).toMatchObject({ format: 2, steps: [], olderWorkers: [] });
    expect(await client.migrate('finish')).toMatchObject({ format: 2, steps: [] });
  }
  expect(() => createSqliteStore(folder)).toThrow(/format 2, .* update Whoa/);
  await using migration = createMigration(shards as never);
  await expect(migration.plan()).rejects.toThrow(/format 2, .* update Whoa/);
});

test('every shard of Redis is migrated, also those that nobody has used', async () => {
  await using redis = await startRedis();
  const location = JSON.stringify({ backend: 'redis', url: redis.url, shards: 4 });
  await using old = await startClient(thisRelease, location);
  const receipt = await old.store.create({ tenant: 'acme', agent: 'a', input: 'x' });
  if (receipt.answer !== 'created') return expect.unreachable();
  await using client = await startClient(next, location);
  expect(await client.migrate('run')).toMatchObject({ format: 1 });
  for (let i = 0; i < 20; i++) await old.store.create({ tenant: 'acme', agent: 'a', input: i });
  expect(await client.migrate('finish')).toMatchObject({ format: 2 });
  for (let i = 0; i < 20; i++) {
    await expect(old.store.create({ tenant: 'acme', agent: 'a', input: i })).rejects.toThrow(/format 2/);
    expect(await client.store.create({ tenant: 'acme', agent: 'a', input: i })).toMatchObject({ answer: 'created' });
  }
  expect(await client.store.get(receipt.task)).toMatchObject({ status: 'init' });
});

test('a worker that the store refuses says so and exits with 1', async () => {
  using home = createHome({ 'script.json': '[["All is well."]]' });
  const file = home.folder.at('state/whoa/tasks.db');
  const worker = startCommand(home, ['worker', '--model', 'scripted:script.json', '--sandbox', 'none', '--yes']);
  await worker.waitFor({ type: 'working' });
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  const raw = new DatabaseSync(file);
  raw.exec('PRAGMA busy_timeout = 5000; PRAGMA user_version = 2');
  raw.close();
  expect(await worker.closed).toEqual([1, null]);
  const message = `${file} has format 2, and this version of Whoa uses format 1; update Whoa`;
  expect(worker.lines.at(-1)).toEqual({ type: 'error', message, code: 'STORE_SETUP' });
});

test('what the command cannot migrate is wrong usage', () => {
  using home = createHome({ 'memory.mjs': "export default { store: { backend: 'memory' } };" });
  expect(home.whoa(['migrate', '--config', 'memory.mjs'])).toMatchObject({
    status: 2,
    stderr: 'whoa migrate: a store in memory has nothing to migrate\n',
  });
  expect(home.whoa(['migrate', '--plan', '--finish'])).toMatchObject({ status: 2 });
  expect(home.whoa(['migrate', '--plan', '--json'])).toMatchObject({ status: 0 });
});
