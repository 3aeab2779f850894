import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SessionRecord } from '@whoa/acp';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLocalSessions } from './local-sessions.ts';

let state = '';
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'whoa-state-'));
  vi.stubEnv('XDG_STATE_HOME', state);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(state, { recursive: true });
});

const record = (id: string, updatedAt: number, cwd = '/a'): SessionRecord => ({
  id,
  cwd,
  additionalDirectories: ['/more'],
  title: `title of ${id}`,
  settings: { model: 'x' },
  messages: [{ role: 'user', content: 'hello' }],
  createdAt: 1,
  updatedAt,
});

test('a saved session is loaded unchanged by the next process that opens the file', async () => {
  {
    await using sessions = createLocalSessions();
    await sessions.save(record('one', 1));
    await sessions.save(record('one', 2));
  }
  await using sessions = createLocalSessions();
  expect(await sessions.load('one')).toEqual(record('one', 2));
  await sessions.remove('one');
  expect(await sessions.load('one')).toBeUndefined();
});

test('a list shows what an editor shows, the latest first, page by page', async () => {
  await using sessions = createLocalSessions();
  for (let i = 0; i < 60; i++) await sessions.save(record(`s${i}`, i, i % 2 === 0 ? '/a' : '/b'));
  const first = await sessions.list();
  expect(first.sessions[0]).toEqual({
    id: 's59',
    cwd: '/b',
    additionalDirectories: ['/more'],
    title: 'title of s59',
    updatedAt: 59,
  });
  const second = await sessions.list({ cursor: first.nextCursor! });
  expect([...first.sessions, ...second.sessions].map(({ updatedAt }) => updatedAt)).toEqual(
    Array.from({ length: 60 }, (_, i) => 59 - i),
  );
  expect(second.nextCursor).toBeUndefined();
  expect((await sessions.list({ cwd: '/b' })).sessions).toHaveLength(30);
  await expect(sessions.list({ cursor: 'not ours' })).rejects.toThrow(RangeError);
});

test('the session store is opened on first use, and a foreign id reaches no other file', async () => {
  await using sessions = createLocalSessions();
  expect(existsSync(join(state, 'whoa'))).toBe(false);
  for (const id of ['../secret', '/etc/passwd', '', '.', 'a/b', 'a\0b', '__proto__', "'; DROP TABLE tasks; --"]) {
    expect(await sessions.load(id)).toBeUndefined();
    await sessions.remove(id);
  }
});

test('a file that could not be opened is tried again', async () => {
  await using sessions = createLocalSessions();
  vi.stubEnv('XDG_STATE_HOME', '/dev/null');
  await expect(sessions.save(record('one', 1))).rejects.toThrow(/ENOTDIR/);
  vi.stubEnv('XDG_STATE_HOME', state);
  await sessions.save(record('one', 1));
  expect(await sessions.load('one')).toEqual(record('one', 1));
});
