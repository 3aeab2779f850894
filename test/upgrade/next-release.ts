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
export const thisRelease: Release = { folder: ROOT, format: 1 };

const PARTS = ['packages/tasks', 'packages/whoa', 'test/upgrade/children', 'test/tasks/open-store.ts'];

/** Makes the next release in a folder that is gone afterwards. Its parts are small, so that few tasks make many. */
export async function createNextRelease({ partRows = 50 } = {}): Promise<Release & Disposable> {
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
  await plant(nextFormat({ partRows }), join(folder, 'packages/tasks/src'));
  return { folder, format: 2, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Tasks get a mark when they are taken, once the format is 2. Until then it writes what this release writes. */
export function nextFormat({ partRows }: { readonly partRows: number }): readonly Change[] {
  return [
    { file: 'migration/migrator.ts', find: 'PART_ROWS = 1_000', replace: `PART_ROWS = ${partRows}` },
    {
      file: 'rules/format.ts',
      find: 'FORMAT: number = 1;\n/** The oldest',
      replace: 'FORMAT: number = 2;\n/** The oldest',
    },
    ...inPostgres(),
    ...inSqlite(partRows),
    ...inRedis(),
  ];
}

function inPostgres(): Change[] {
  const fill = `\`
    WITH part AS (SELECT t.id FROM whoa.tasks t WHERE t.id > $1 ORDER BY t.id LIMIT $2 FOR UPDATE),
    filled AS (UPDATE whoa.tasks t SET mark = 'one' FROM part p WHERE t.id = p.id AND t.mark IS NULL)
    SELECT max(p.id) AS position, count(*) AS rows FROM part p
  \``;
  const before = `[
    { name: 'add mark', alter: 'ALTER TABLE whoa.tasks ADD COLUMN IF NOT EXISTS mark text' },
    { name: 'fill mark', fill: ${fill} },
    { name: 'index mark', index: { name: 'tasks_marked', definition: 'ON whoa.tasks (mark)' } },
  ]`;
  const mark = `IF (SELECT l.format FROM whoa.layout l) >= 2 THEN
    UPDATE whoa.tasks t SET mark = 'two' WHERE t.id = ANY (ids);
  END IF;`;
  const watched = '-- The worker knows already.';
  return [
    { file: 'stores/postgres/layout.ts', find: 'const VERSION = 1;', replace: 'const VERSION = 2;' },
    {
      file: 'stores/postgres/sql/tables.ts',
      find: 'outcome_complete boolean',
      replace: 'outcome_complete boolean, mark text',
    },
    { file: 'stores/postgres/sql/take.ts', find: watched, replace: `${mark}\n  ${watched}` },
    changesIn('postgres', before, `[{ name: 'fill the rest', fill: ${fill} }]`),
  ];
}

function inSqlite(partRows: number): Change[] {
  const fill = `(database, position) => {
    const rows = database.all('SELECT id, mark FROM tasks WHERE id > ? ORDER BY id LIMIT ${partRows}', [position]);
    for (const row of rows) database.run("UPDATE tasks SET mark = coalesce(mark, 'one') WHERE id = ?", [row['id'] as string]);
    const last = rows.at(-1)?.['id'] as string | undefined;
    return { rows: rows.length, ...(last !== undefined && { position: last }) };
  }`;
  const alter = `(database) => {
    const has = database.get("SELECT 1 FROM pragma_table_info('tasks') WHERE name = 'mark'");
    if (has === undefined) database.run('ALTER TABLE tasks ADD COLUMN mark TEXT');
    return { rows: 0 };
  }`;
  const index = `(database) => {
    database.run('CREATE INDEX IF NOT EXISTS tasks_marked ON tasks (mark)');
    return { rows: 0 };
  }`;
  const before = `[{ name: 'add mark', run: ${alter} }, { name: 'fill mark', run: ${fill} }, { name: 'index mark', run: ${index} }]`;
  const saved = 'else updateTask(database, task, before);';
  const mark = `if (database.format >= 2 && task.stage === 'held') database.run("UPDATE tasks SET mark = 'two' WHERE id = ?", [task.id]);`;
  return [
    { file: 'stores/sqlite/schema.ts', find: 'key TEXT, record TEXT', replace: 'key TEXT, mark TEXT, record TEXT' },
    { file: 'stores/sqlite/tables.ts', find: saved, replace: `${saved}\n      ${mark}` },
    changesIn('sqlite', before, `[{ name: 'fill the rest', run: ${fill} }]`),
  ];
}

function inRedis(): Change[] {
  const fill = `\`
    local found = redis.call('SCAN', position == '' and '0' or position, 'MATCH', tag .. 'task:*', 'COUNT', size)
    for _, key in ipairs(found[2]) do redis.call('HSETNX', key, 'mark', 'one') end
    rows = #found[2]
    if found[1] ~= '0' then rest = found[1] end
  \``;
  const saved = "  save(task)\n  tell('status', task, true)";
  const claimed = "'claim', claim, 'worker', worker, 'startedAt', startedAt)\n";
  return [
    {
      file: 'stores/redis/lua/take.ts',
      find: saved,
      replace: `  if format >= 2 then put(task, 'mark', 'two') end\n${saved}`,
    },
    {
      file: 'stores/redis/lua/plain.ts',
      find: claimed,
      replace: `${claimed}  if format >= 2 then redis.call('HSET', key, 'mark', 'two') end\n`,
    },
    changesIn('redis', `[{ name: 'fill mark', fill: ${fill} }]`, `[{ name: 'fill the rest', fill: ${fill} }]`),
  ];
}

function changesIn(store: string, before: string, after: string): Change {
  const file = `stores/${store}/format-changes.ts`;
  return { file, find: '>[] = [];', replace: `>[] = [{ to: 2, before: ${before}, after: ${after} }];` };
}
