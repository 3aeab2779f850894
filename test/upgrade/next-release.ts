// A release after this one, for tests: the sources of this one with a newer format. Real processes run from either.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Change, plant } from '../plant.ts';

/** A folder with the sources of a release, laid out as the repository is. */
export interface Release {
  readonly folder: string;
  /** The newest format that it can use. */
  readonly format: number;
}

const ROOT = join(import.meta.dirname, '../..');

/** The release that is being tested. */
export const thisRelease: Release = { folder: ROOT, format: 2 };

const PARTS = ['packages/tasks', 'packages/whoa', 'test/upgrade/children', 'test/tasks/open-store.ts'];

/** Makes the next release in a folder that is gone afterwards. */
export async function createNextRelease(): Promise<Release & Disposable> {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-next-'));
  for (const part of PARTS) {
    cpSync(join(ROOT, part), join(folder, part), {
      recursive: true,
      filter: (path) => !/\/(dist|node_modules)$|\.test\.ts$/.test(path),
    });
  }
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, '@whoa'), { recursive: true });
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    if (!['@whoa', 'whoa'].includes(name)) symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  }
  for (const name of readdirSync(join(ROOT, 'packages'))) {
    const isCopied = PARTS.includes(`packages/${name}`);
    symlinkSync(
      join(isCopied ? folder : ROOT, 'packages', name),
      join(modules, name === 'whoa' ? name : `@whoa/${name}`),
    );
  }
  await plant(nextFormat, join(folder, 'packages/tasks/src'));
  return { folder, format: 3, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

const postgresTaken = '-- The worker knows already.';
const sqliteSaved = 'else updateTask(database, task, before);';

/** Tasks get a mark when they are taken, once the format is 3. Until then it writes what this release writes. */
export const nextFormat: readonly Change[] = [
  {
    file: 'ledger/rules/format.ts',
    find: 'FORMAT: number = 2;\n/** The oldest',
    replace: 'FORMAT: number = 3;\n/** The oldest',
  },
  addingMark('postgres'),
  { file: 'ledger/postgres/sql/entry.sql', find: '2 /*FORMAT*/', replace: '3 /*FORMAT*/' },
  { file: 'ledger/postgres/layout.ts', find: 'const VERSION = 3;', replace: 'const VERSION = 4;' },
  {
    file: 'ledger/postgres/sql/take.sql',
    find: postgresTaken,
    replace: `IF (SELECT l.format FROM whoa.layout l) >= 3 THEN
    UPDATE whoa.tasks t SET mark = 'two' WHERE t.id = ANY (ids);
  END IF;
  ${postgresTaken}`,
  },
  addingMark('sqlite'),
  {
    file: 'ledger/sqlite/tables.ts',
    find: sqliteSaved,
    replace: `${sqliteSaved}
      if (database.format >= 3 && task.stage === 'held') database.run("UPDATE tasks SET mark = 'two' WHERE id = ?", [task.id]);`,
  },
];

function addingMark(store: string): Change {
  const column = "{ table: 'tasks', column: 'mark', type: 'text' }";
  const index = "{ index: 'tasks_marked', on: 'tasks (mark)' }";
  return {
    file: `ledger/${store}/additions.ts`,
    find: 'Addition[] = [',
    replace: `Addition[] = [${column}, ${index},`,
  };
}
