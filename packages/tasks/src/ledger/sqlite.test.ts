import {
  appendFileSync,
  chmodSync,
  chownSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { chmod } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import type { Hint } from '../store.ts';
import { createTaskStore } from './factory.ts';
import { getDefaultPath } from './sqlite/database-file.ts';
import { createSqliteStore } from './sqlite.ts';

function temporaryFolder(): Disposable & { readonly path: string; readonly file: string } {
  const path = mkdtempSync(join(tmpdir(), 'whoa-sqlite-'));
  return { path, file: join(path, 'tasks.db'), [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

test('data survives closing and opening the store', async () => {
  using folder = temporaryFolder();
  const ref = { tenant: 'acme', id: '' };
  {
    await using store = createSqliteStore(folder);
    const receipt = await store.create({ tenant: 'acme', agent: 'a', input: 'hello', conversation: 'c' });
    ref.id = receipt.result === 'created' ? receipt.task.id : '';
    const claimed = await store.claim(ref.id, { session: 's1', claim: 'c1', worker: 'w1', leaseMs: 60_000 });
    if (claimed.result !== 'claimed') return expect.unreachable();
    await store.append(claimed.claim, { after: 0, events: ['said'] });
    await store.cancel(ref, { by: 'ann' });
  }
  await using again = createSqliteStore(folder);
  expect(await again.get(ref)).toMatchObject({ status: 'cancelling', stop: { reason: { by: 'ann' } }, position: 1 });
  expect(await again.read(ref)).toMatchObject([{ event: 'said' }]);
  expect(await again.conversation({ tenant: 'acme', conversation: 'c' })).toMatchObject({ current: ref.id });
});

test('every file is readable by its owner alone', async () => {
  using folder = temporaryFolder();
  await using store = createSqliteStore(folder);
  await store.create({ tenant: 'acme', agent: 'a', input: 'secret' });
  for (const suffix of ['', '-wal', '-shm', '-bus.1']) {
    expect([suffix, statSync(folder.file + suffix).mode & 0o777]).toEqual([suffix, 0o600]);
  }
});

test('a folder that all users can write to is rejected', async () => {
  using folder = temporaryFolder();
  await chmod(folder.path, 0o777);
  expect(() => createSqliteStore(folder)).toThrow(/use a private folder/);
});

test('the default place is in the state folder of the user, never in a relative one', () => {
  expect(getDefaultPath({ XDG_STATE_HOME: '/home/ann/.state' })).toBe('/home/ann/.state/whoa/tasks.db');
  expect(getDefaultPath({})).not.toContain(tmpdir());
  expect(getDefaultPath({ XDG_STATE_HOME: '.' })).toBe(getDefaultPath({}));
});

test('a process of an older version can neither write nor read once the file has a newer format', async () => {
  using folder = temporaryFolder();
  await using store = createSqliteStore(folder);
  const ref = { tenant: 'acme', agent: 'a', input: 'x' };
  await store.create(ref);
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  const raw = new DatabaseSync(folder.file);
  raw.exec('PRAGMA user_version = 99');
  raw.close();
  for (const refused of [store.create(ref), store.list({ tenant: 'acme' })]) {
    await expect(refused).rejects.toThrow(/tasks\.db has format 99, .* update Whoa/);
  }
});

test('a file of a newer version is left alone', async () => {
  using folder = temporaryFolder();
  await createSqliteStore(folder)[Symbol.asyncDispose]();
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  const raw = new DatabaseSync(folder.file);
  raw.exec('PRAGMA user_version = 99');
  raw.close();
  expect(() => createSqliteStore(folder)).toThrow(/has format 99, .* update Whoa/);
});

test('no operation reads a whole table', async () => {
  using folder = temporaryFolder();
  await createSqliteStore(folder)[Symbol.asyncDispose]();
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  using raw = new DatabaseSync(folder.file);
  const queries = [
    'SELECT record FROM tasks WHERE id = ?1',
    'SELECT record FROM tasks WHERE tenant = ?1 ORDER BY createdAt DESC, id DESC LIMIT 5',
    'SELECT record FROM tasks WHERE tenant = ?1 AND status = ?2 AND (createdAt, id) < (?3, ?4) ORDER BY createdAt DESC, id DESC LIMIT 5',
    "SELECT record FROM tasks WHERE tenant = ?1 AND readyQueue = ?2 AND stage = 'ready' ORDER BY priority DESC, stageAt, id LIMIT 1",
    "SELECT record FROM tasks WHERE stage = 'delayed' AND stageAt <= ?1 ORDER BY stageAt LIMIT 5",
    "SELECT record FROM tasks WHERE session = ?1 AND stage = 'held' LIMIT 5",
    "SELECT record FROM tasks WHERE session = ?1 AND hasPendingOrders = 1 AND stage = 'held' LIMIT 5",
    "SELECT 1 FROM tasks WHERE tenant = ?1 AND stage = 'held' LIMIT 5",
    'SELECT * FROM ready_queues WHERE agent = ?1 ORDER BY tick LIMIT 1',
    'SELECT worker FROM waiters WHERE agent = ?1 ORDER BY at LIMIT 1',
    'DELETE FROM waiters WHERE worker = ?1',
    'SELECT record FROM worker_sessions WHERE expiresAt > ?1',
    'SELECT id FROM tasks WHERE endedAt <= ?1 LIMIT 5',
    'SELECT * FROM journal WHERE id = ?1 AND position > ?2 ORDER BY position LIMIT 5',
    'SELECT i.inbox FROM interests i JOIN inboxes b ON b.inbox = i.inbox WHERE i.name IN (?1, ?2) AND b.until > ?3',
    'SELECT inbox FROM inboxes WHERE until < ?1 LIMIT 5',
    'DELETE FROM interests WHERE inbox = ?1',
    'SELECT head FROM sessions WHERE id = ?1',
    'SELECT head FROM sessions WHERE (updatedAt, id) < (?1, ?2) ORDER BY updatedAt DESC, id DESC LIMIT 5',
    'SELECT head FROM sessions WHERE cwd = ?1 AND (updatedAt, id) < (?2, ?3) ORDER BY updatedAt DESC, id DESC LIMIT 5',
  ];
  for (const sql of queries) {
    const plan = raw.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[];
    for (const { detail } of plan) expect(`${sql}: ${detail}`).toMatch(/SEARCH/);
  }
});

/** A running task, and a store that watches its worker. */
async function watched(folder: { file: string }) {
  const store = createSqliteStore({ file: folder.file, pollIntervalMs: 20 });
  const receipt = await store.create({ tenant: 'acme', agent: 'a', input: 'hello' });
  const id = receipt.result === 'created' ? receipt.task.id : '';
  await store.claim(id, { session: 's1', claim: 'c1', worker: 'w1', leaseMs: 60_000 });
  const hints: Hint[] = [];
  let wake = (): void => {};
  await store.watch({ worker: 'w1' }, (hint) => {
    hints.push(hint);
    wake();
  });
  const next = (): Promise<void> => new Promise((resolve) => (wake = resolve));
  return { store, ref: { tenant: 'acme', id }, hints, next };
}

test('what is no message in a file of the bus is ignored, and the next cancel still arrives', async () => {
  using folder = temporaryFolder();
  const { store, ref, hints, next } = await watched(folder);
  await using other = createSqliteStore(folder);
  const told = next();
  const raw = new DatabaseSync(folder.file);
  const inbox = String(raw.prepare('SELECT inbox FROM inboxes').get()!['inbox']).replace('file:', '');
  raw.close();
  for (const garbage of ['x\n', `${inbox}\n`, `${inbox} 4 W10=W10=\n`, `${inbox} 4 W3s=\n`, '\0', `${inbox} 900 W1`]) {
    appendFileSync(`${folder.file}-bus.1`, garbage);
  }
  await other.cancel(ref);
  await told;
  expect(hints.map((hint) => 'id' in hint && hint.id)).toEqual([ref.id]);
  await store[Symbol.asyncDispose]();
});

test('a file of the bus that others can write to is made private', async () => {
  using folder = temporaryFolder();
  const notifier = `${folder.file}-bus.1`;
  writeFileSync(notifier, '');
  chmodSync(notifier, 0o666);
  await using store = createSqliteStore(folder);
  expect(statSync(notifier).mode & 0o777).toBe(0o600);
  expect(store.name).toBe('sqlite');
});

test('a file of the bus that is a symbolic link is rejected', () => {
  using folder = temporaryFolder();
  writeFileSync(`${folder.file}-elsewhere`, '');
  symlinkSync(`${folder.file}-elsewhere`, `${folder.file}-bus.1`);
  expect(() => createSqliteStore(folder)).toThrow(/ELOOP/);
});

test.skipIf(process.getuid?.() !== 0)(
  'a file of the bus of another user is rejected (only root can create one)',
  () => {
    using folder = temporaryFolder();
    writeFileSync(`${folder.file}-bus.1`, '');
    chownSync(`${folder.file}-bus.1`, 65_534, 65_534);
    expect(() => createSqliteStore(folder)).toThrow(/belongs to another user/);
  },
);

test('a cancel brings its order along', async () => {
  using folder = temporaryFolder();
  const { store, ref, hints, next } = await watched(folder);
  await using other = createSqliteStore(folder);
  const told = next();
  await other.cancel(ref, { message: 'enough' }, { mode: 'now' });
  await told;
  const { stop } = (await store.get(ref))!;
  expect(stop).toMatchObject({ level: 'abort', reason: { message: 'enough' } });
  expect(hints).toMatchObject([{ type: 'cancel', id: ref.id, order: { epoch: 1, claim: 'c1', stop } }]);
  await store[Symbol.asyncDispose]();
});

test('without a listener nothing is sent', async () => {
  using folder = temporaryFolder();
  await using store = createSqliteStore(folder);
  await using other = createSqliteStore(folder);
  await using watching = await other.watch({ tenant: 'other' }, () => {});
  for (let i = 0; i < 50; i++) await store.create({ tenant: 'acme', agent: 'a', input: i });
  expect(statSync(`${folder.file}-bus.1`).size).toBe(0);
  expect(watching).toBeDefined();
});

test('a file from before the first release, or of another program, is rejected and left alone', () => {
  using folder = temporaryFolder();
  const old = new DatabaseSync(folder.file);
  old.exec('CREATE TABLE conversations (id TEXT); PRAGMA user_version = 4');
  old.close();
  expect(() => createSqliteStore(folder)).toThrow(/before the first release/);
  using still = new DatabaseSync(folder.file);
  expect(still.prepare('PRAGMA user_version').get()).toEqual({ user_version: 4 });
});

test.each([':memory:', 'file::memory:?cache=shared', ''])('the file %j is rejected, and nothing is created', (file) => {
  const before = readdirSync('.');
  for (const config of [{ backend: 'sqlite', file } as const, `sqlite:${file}`])
    expect(() => createTaskStore(config)).toThrow(
      `file: expected the path of a file; for a store in memory, use backend 'memory', got ${JSON.stringify(file)}`,
    );
  expect(readdirSync('.')).toEqual(before);
});
