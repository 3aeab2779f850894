import { chmod, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createFileSessions } from './files.ts';
import { createMemorySessions } from './memory.ts';
import type { SessionRecord, SessionStore } from './store.ts';

let folder = '';
beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), 'whoa-sessions-')), 'kept');
});
afterEach(async () => {
  await rm(join(folder, '..'), { recursive: true, force: true });
});

const record = (id: string, updatedAt: number, cwd = '/a'): SessionRecord => ({
  id,
  cwd,
  additionalDirectories: [],
  title: `title of ${id}`,
  settings: { model: 'x' },
  messages: [{ role: 'user', content: 'hello' }],
  createdAt: 1,
  updatedAt,
});

const STORES: Record<string, () => SessionStore> = {
  memory: () => createMemorySessions(),
  files: () => createFileSessions({ folder }),
};

describe.each(Object.entries(STORES))('%s', (_, create) => {
  test('a session that was saved is loaded as it was; the latest save counts', async () => {
    const store = create();
    expect(await store.load('one')).toBeUndefined();
    await store.save(record('one', 1));
    await store.save(record('one', 2));
    expect(await store.load('one')).toEqual(record('one', 2));
    await store.remove('one');
    await store.remove('one');
    expect(await store.load('one')).toBeUndefined();
  });

  test('sessions are listed page by page, the latest first, each exactly once', async () => {
    const store = create();
    expect(await store.list()).toEqual({ sessions: [] });
    for (let i = 0; i < 120; i++) await store.save(record(`s${i}`, Math.floor(i / 3), i % 2 === 0 ? '/a' : '/b'));
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await store.list({ ...(cursor !== undefined && { cursor }) });
      seen.push(...page.sessions.map(({ id }) => id));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(new Set(seen).size).toBe(120);
    expect(seen).toHaveLength(120);
    expect(['s117', 's118', 's119']).toContain(seen[0]);
    expect((await store.list({ cwd: '/b' })).sessions.every(({ cwd }) => cwd === '/b')).toBe(true);
    await expect(store.list({ cursor: 'not ours' })).rejects.toThrow(RangeError);
  });

  test('an id from outside reaches nothing else', async () => {
    const store = create();
    for (const id of ['../secret', '/etc/passwd', '', '.', 'a/b', 'a\0b', '__proto__']) {
      expect(await store.load(id)).toBeUndefined();
      await store.remove(id);
    }
  });
});

test('files are for the user alone, and nothing temporary stays', async () => {
  const store = createFileSessions({ folder });
  await Promise.all([1, 2, 3, 4].map((at) => store.save(record('one', at))));
  expect(await readdir(folder)).toEqual(['one.json']);
  expect((await stat(join(folder, 'one.json'))).mode & 0o777).toBe(0o600);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
});

test('a save that fails leaves the old session and no temporary file', async () => {
  const store = createFileSessions({ folder });
  await store.save(record('one', 1));
  const cyclic: { self?: unknown } = {};
  cyclic.self = cyclic;
  await expect(store.save({ ...record('one', 2), settings: cyclic as Record<string, string> })).rejects.toThrow(
    TypeError,
  );
  await expect(store.save(record('../one', 2))).rejects.toThrow(RangeError);
  expect(await store.load('one')).toEqual(record('one', 1));
  expect(await readdir(folder)).toEqual(['one.json']);
});

test('a file without a session is left out of the list, and loading it fails with what to do', async () => {
  const store = createFileSessions({ folder });
  await store.save(record('one', 1));
  await writeFile(join(folder, 'two.json'), '{"half": ');
  await chmod(join(folder, 'two.json'), 0o600);
  expect((await store.list()).sessions.map(({ id }) => id)).toEqual(['one']);
  await expect(store.load('two')).rejects.toThrow(/move or delete the file/);
});
