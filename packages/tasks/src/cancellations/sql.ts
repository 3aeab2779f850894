import type { Entry, Field } from './entries.ts';

export const createTable = (table: string): string =>
  `CREATE TABLE IF NOT EXISTS ${table} (
     task TEXT PRIMARY KEY, status TEXT, cancel TEXT, ended TEXT, expires_at DOUBLE PRECISION NOT NULL
   );
   CREATE INDEX IF NOT EXISTS ${table}_expired ON ${table} (expires_at)`;

/** Parameters: task, value, when it expires, now. An entry that has expired counts as missing. */
export function writeField(table: string, field: Field): string {
  const merged = (['status', 'cancel', 'ended'] as const).map((name) => {
    const kept =
      name === 'status' ? `COALESCE(excluded.status, ${table}.status)` : `COALESCE(${table}.${name}, excluded.${name})`;
    return `${name} = CASE WHEN ${table}.expires_at > $4 THEN ${kept} ELSE excluded.${name} END`;
  });
  return `INSERT INTO ${table} (task, ${field}, expires_at) VALUES ($1, $2, $3)
    ON CONFLICT (task) DO UPDATE SET ${merged.join(', ')}, expires_at = excluded.expires_at
    RETURNING status, cancel, ended`;
}

/** Parameters: task, now. */
export const readEntry = (table: string): string =>
  `SELECT status, cancel, ended FROM ${table} WHERE task = $1 AND expires_at > $2`;

/** Parameter: now. At most 100 in one step. `lock` lets several do it at the same time. */
export const deleteExpired = (table: string, lock = ''): string =>
  `DELETE FROM ${table} WHERE task IN (SELECT task FROM ${table} WHERE expires_at <= $1 LIMIT 100 ${lock})`;

/** A row of any of the databases. */
export type Row = { readonly [Name in Field]?: unknown };

export function toFields(row: Row): Entry {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as Entry;
}
