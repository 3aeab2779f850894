import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSqliteStore } from './sqlite.ts';
import { createSqliteSessions, type StoredSession } from './sqlite-sessions.ts';

interface Session extends StoredSession {
  readonly title: string;
}

function temporaryFolder(): Disposable & { readonly file: string } {
  const path = mkdtempSync(join(tmpdir(), 'whoa-sessions-'));
  return { file: join(path, 'tasks.db'), [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

const session = (id: string, updatedAt: number, cwd = '/a'): Session => ({
  id,
  cwd,
  updatedAt,
  title: `title of ${id}`,
  messages: [{ role: 'user', content: `hello \0 \ud800 ${updatedAt}` }],
});

/** Another process that has begun to write and takes its time. */
function occupy(file: string): { leave(): void } {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  const raw = new DatabaseSync(file);
  raw.exec('BEGIN IMMEDIATE');
  return {
    leave() {
      raw.exec('ROLLBACK');
      raw.close();
    },
  };
}

test('a session is loaded as it was saved last, also after the file was closed, until it is removed', async () => {
  using folder = temporaryFolder();
  {
    await using sessions = createSqliteSessions<Session>(folder);
    expect(await sessions.load('one')).toBeUndefined();
    await sessions.save(session('one', 1, '/before'));
    await sessions.save(session('one', 2));
  }
  await using again = createSqliteSessions<Session>(folder);
  expect(await again.load('one')).toEqual(session('one', 2));
  expect(await again.list({ cwd: '/before' })).toEqual({ sessions: [] });
  await again.remove('one');
  await again.remove('one');
  expect(await again.load('one')).toBeUndefined();
});

test('sessions are listed page by page, the latest first, each exactly once and without its messages', async () => {
  using folder = temporaryFolder();
  await using sessions = createSqliteSessions<Session>(folder);
  for (let i = 0; i < 25; i++) await sessions.save(session(`s/${i}`, Math.floor(i / 3), i % 2 === 0 ? '/a' : '/b'));
  const seen: Omit<Session, 'messages'>[] = [];
  let cursor: string | undefined;
  do {
    const page = await sessions.list({ limit: 4, ...(cursor !== undefined && { cursor }) });
    seen.push(...page.sessions);
    cursor = page.next;
  } while (cursor !== undefined);
  expect(seen.map(({ updatedAt }) => updatedAt)).toEqual(seen.map((one) => one.updatedAt).toSorted((a, b) => b - a));
  expect(new Set(seen.map(({ id }) => id)).size).toBe(25);
  expect(seen).toHaveLength(25);
  expect(seen[0]).toEqual({ id: 's/24', cwd: '/a', updatedAt: 8, title: 'title of s/24' });
  expect((await sessions.list({ cwd: '/b' })).sessions).toHaveLength(12);
  await expect(sessions.list({ cursor: 'not ours' })).rejects.toThrow(RangeError);
  await expect(sessions.list({ limit: 0 })).rejects.toThrow(RangeError);
});

test('sessions share the file of the tasks, even one from before sessions existed', async () => {
  using folder = temporaryFolder();
  await using store = createSqliteStore(folder);
  await store.create({ tenant: 'acme', agent: 'a', input: 'hello' });
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  const raw = new DatabaseSync(folder.file);
  raw.exec('DROP TABLE sessions');
  raw.close();
  await using sessions = createSqliteSessions<Session>(folder);
  await sessions.save(session('one', 1));
  expect((await store.list({ tenant: 'acme' })).tasks).toHaveLength(1);
  for (const suffix of ['', '-wal', '-shm']) expect(statSync(folder.file + suffix).mode & 0o777).toBe(0o600);
});

test('a save that had to wait does not undo a later one, nor a removal', async () => {
  using folder = temporaryFolder();
  await using sessions = createSqliteSessions<Session>(folder);
  const other = occupy(folder.file);
  const waiting = [sessions.save(session('one', 1)), sessions.save(session('two', 1))];
  other.leave();
  // These find the file unlocked; the ones above retry later.
  await Promise.all([...waiting, sessions.save(session('one', 2)), sessions.remove('two')]);
  expect(await sessions.load('one')).toEqual(session('one', 2));
  expect(await sessions.load('two')).toBeUndefined();
});

test('a save that fails leaves the old session', async () => {
  using folder = temporaryFolder();
  await using sessions = createSqliteSessions<Session>(folder);
  await sessions.save(session('one', 1));
  const cyclic: unknown[] = [];
  cyclic.push(cyclic);
  await expect(sessions.save({ ...session('one', 2), messages: cyclic })).rejects.toThrow(TypeError);
  await expect(sessions.save(session('', 2))).rejects.toThrow(TypeError);
  expect(await sessions.load('one')).toEqual(session('one', 1));
});

test('a closed session store reports that it is closed', async () => {
  using folder = temporaryFolder();
  const sessions = createSqliteSessions<Session>(folder);
  await sessions[Symbol.asyncDispose]();
  await sessions[Symbol.asyncDispose]();
  for (const late of [
    sessions.load('one'),
    sessions.save(session('one', 1)),
    sessions.list(),
    sessions.remove('one'),
  ]) {
    await expect(late).rejects.toThrow(/closed/);
  }
});
