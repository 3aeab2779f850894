import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { claim, TENANT } from '../../testing/case.ts';
import { askAndPark, YES } from '../../testing/contract/questions/asking.ts';
import { createSqliteStore } from '../sqlite.ts';
import { migrateStore } from './migration.ts';

function temporaryFile(): Disposable & { readonly file: string } {
  const path = mkdtempSync(join(tmpdir(), 'whoa-migration-'));
  return { file: join(path, 'tasks.db'), [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

test('a plan creates nothing, preparing creates the store, and all can be repeated', async () => {
  using folder = temporaryFile();
  const store = folder.file;
  const nothing = { store, missing: [], oldest: 2, newest: 2 };
  expect(await migrateStore(`sqlite:${store}`, 'plan')).toEqual(nothing);
  expect(existsSync(store)).toBe(false);
  for (const mode of [undefined, 'prepare', 'plan', 'finish', 'finish'] as const) {
    expect(await migrateStore({ backend: 'sqlite', file: store }, mode)).toEqual({ ...nothing, format: 2 });
  }
});

test('an empty file is not a store yet, and a plan leaves it empty', async () => {
  using folder = temporaryFile();
  new DatabaseSync(folder.file).close();
  expect(await migrateStore(`sqlite:${folder.file}`, 'plan')).not.toHaveProperty('format');
  const raw = new DatabaseSync(folder.file);
  expect(raw.prepare('SELECT * FROM sqlite_schema').all()).toEqual([]);
  raw.close();
});

test('an invalid configuration, and a store in memory, are rejected', async () => {
  await expect(migrateStore('memory:')).rejects.toThrow(/no data to migrate/);
  await expect(migrateStore('mysql://host')).rejects.toThrow(/^store: expected .memory./);
  await expect(migrateStore({ backend: 'sqlite', path: 'tasks.db' } as never)).rejects.toThrow(/path/);
  await expect(migrateStore({ backend: 'postgres', schema: 'A b' })).rejects.toThrow(/^schema:/);
});

test('a store that is too new or too old for this version is rejected, and the error explains what to do', async () => {
  using folder = temporaryFile();
  await createSqliteStore(folder)[Symbol.asyncDispose]();
  for (const [format, advice] of [
    [3, /has format 3, and this version of Whoa uses format 2; update Whoa$/],
    [1, /has format 1, .* cannot be migrated: let the version .* finish its tasks, and use a new database or file$/],
  ] as const) {
    const raw = new DatabaseSync(folder.file);
    raw.exec(`PRAGMA user_version = ${format}`);
    raw.close();
    for (const mode of ['plan', 'prepare', 'finish'] as const) {
      await expect(migrateStore(`sqlite:${folder.file}`, mode)).rejects.toThrow(advice);
    }
    expect(() => createSqliteStore(folder)).toThrow(advice);
  }
});

test('a parked task, its question and its answer pass a migration like any live task', async () => {
  using folder = temporaryFile();
  const store = createSqliteStore(folder);
  const [open, answered] = [await askAndPark(store), await askAndPark(store)];
  await store.answer({ tenant: TENANT, id: answered.asked[0]! }, YES);
  const before = await Promise.all([store.get(open.ref), store.get(answered.ref)]);
  await store[Symbol.asyncDispose]();
  for (const mode of ['plan', 'prepare', 'finish'] as const) await migrateStore(`sqlite:${folder.file}`, mode);
  await using after = createSqliteStore(folder);
  expect(await Promise.all([after.get(open.ref), after.get(answered.ref)])).toEqual(before);
  expect(before.map((task) => task?.stage)).toEqual(['parked', 'ready']);
  expect(await after.answer({ tenant: TENANT, id: open.asked[0]! }, YES)).toMatchObject({ result: 'accepted' });
  expect((await claim(after, open.id)).orders.questions).toMatchObject([{ answer: { by: 'ada' } }]);
});
