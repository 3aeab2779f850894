import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { createSqliteStore } from '../stores/sqlite.ts';
import { createMigration } from './migration.ts';

function temporaryFile(): Disposable & { readonly file: string } {
  const path = mkdtempSync(join(tmpdir(), 'whoa-migration-'));
  return { file: join(path, 'tasks.db'), [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

const NOTHING = { oldest: 1, newest: 1, steps: [], olderWorkers: [], olderWaiters: [] };

test('a plan creates nothing, a run creates the store, and both can be repeated', async () => {
  using folder = temporaryFile();
  const store = folder.file;
  await using migration = createMigration(`sqlite:${store}`);
  expect(await migration.plan()).toEqual({ store, ...NOTHING });
  expect(existsSync(store)).toBe(false);
  for (const mode of ['run', 'run', 'plan', 'finish', 'finish'] as const) {
    expect(await migration[mode]()).toEqual({ store, format: 1, ...NOTHING });
  }
  await migration[Symbol.asyncDispose]();
  for (const mode of ['plan', 'run', 'finish'] as const) {
    await expect(migration[mode]()).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  }
});

test('one that is stopped before it starts does nothing, and can be run later', async () => {
  using folder = temporaryFile();
  await using migration = createMigration({ backend: 'sqlite', file: folder.file });
  const signal = AbortSignal.abort(new Error('not now'));
  await expect(migration.run({ signal })).rejects.toThrow('not now');
  await expect(migration.finish({ signal })).rejects.toThrow('not now');
  expect(existsSync(folder.file)).toBe(false);
  expect(await migration.finish()).toMatchObject({ format: 1 });
});

test('what is no store to migrate is refused at once', () => {
  expect(() => createMigration('memory:')).toThrow(/nothing to migrate/);
  expect(() => createMigration('mysql://host')).toThrow(/^store: expected an address/);
  expect(() => createMigration({ backend: 'sqlite', path: 'tasks.db' } as never)).toThrow(/path/);
  expect(() => createMigration({ backend: 'postgres', schema: 'A b' })).toThrow(/^schema:/);
});

test('a store that is too new or too old for this version says what to do', async () => {
  using folder = temporaryFile();
  await createSqliteStore(folder)[Symbol.asyncDispose]();
  for (const [format, advice] of [
    [2, /has format 2, and this version of Whoa uses format 1; update Whoa$/],
    [0, /has format 0, .* first run 'whoa migrate --finish' with a version of Whoa that can use format 0$/],
  ] as const) {
    const raw = new DatabaseSync(folder.file);
    raw.exec(`PRAGMA user_version = ${format}`);
    raw.close();
    await using migration = createMigration({ backend: 'sqlite', file: folder.file });
    for (const mode of ['plan', 'run', 'finish'] as const) await expect(migration[mode]()).rejects.toThrow(advice);
    expect(() => createSqliteStore(folder)).toThrow(advice);
  }
});
