import type { DatabaseSync } from 'node:sqlite';
import { FileBus } from '../bus/file-bus.ts';
import { prepareFile } from '../ledger/sqlite/database-file.ts';
import { type Entries, KEPT_MS } from './entries.ts';
import { createTable, deleteExpired, type Row, readEntry, toFields, writeField } from './sql.ts';

const TABLE = 'cancellations';
/** Waiting blocks this process; whoever is kept waiting longer repeats the call. */
const WAIT_MS = 100;
/** How often the file of the bus is read, in case its watch missed a cancel. */
const POLL_MS = 1_000;

/** Entries in a file, which all processes of a machine may share. */
export function createSqliteEntries({ file, now }: { readonly file: string; readonly now: () => number }): Entries {
  let opened: DatabaseSync | undefined;
  const open = (): DatabaseSync => {
    if (opened !== undefined) return opened;
    prepareFile(file);
    const sqlite = process.getBuiltinModule('node:sqlite');
    const database = new sqlite.DatabaseSync(file, { timeout: WAIT_MS });
    database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; ${createTable(TABLE)}`);
    return (opened = database);
  };
  const ask = (sql: string, values: readonly (string | number)[]) => {
    const named = Object.fromEntries(values.map((value, i) => [`$${i + 1}`, value]));
    return open().prepare(sql).get(named) as Row | undefined;
  };
  return {
    write(taskId, field, value) {
      const at = now();
      if (field === 'ended') ask(deleteExpired(TABLE), [at]);
      return toFields(ask(writeField(TABLE, field), [taskId, value, at + KEPT_MS, at])!);
    },
    read(taskId) {
      const row = ask(readEntry(TABLE), [taskId, now()]);
      return row && toFields(row);
    },
    openBus() {
      prepareFile(file);
      return new FileBus(file, POLL_MS, TABLE);
    },
    close: () => opened?.close(),
  };
}
