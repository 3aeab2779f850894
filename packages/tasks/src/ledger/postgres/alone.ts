import type { Connection } from './connection/driver.ts';
import { qualify } from './layout.ts';

/** How long it waits for running operations. All others wait behind it. */
const LOCK_MS = 1_000;

/** Runs a function while no operation runs: each reads `layout` first. */
export async function askAlone<T>(
  connection: Connection,
  { schema, call, values }: { readonly schema: string; readonly call: string; readonly values: readonly unknown[] },
): Promise<T> {
  const begin = `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = ${LOCK_MS}; LOCK TABLE whoa.layout IN ACCESS EXCLUSIVE MODE`;
  await connection.query(qualify(begin, schema));
  const { rows } = await connection.query<{ answer: T }>(qualify(`SELECT ${call} AS answer`, schema), [...values]);
  await connection.query('COMMIT');
  return rows[0]!.answer;
}

/** After a restore into another server, continues the feed there. Before any operation: each could write to it. */
export async function adoptFeed(connection: Connection, schema: string): Promise<void> {
  const sql = qualify('SELECT l.cluster <> fn.cluster() AS moved FROM whoa.layout l', schema);
  const { rows } = await connection.query<{ moved: boolean | null }>(sql);
  if (rows[0]?.moved === true) await askAlone(connection, { schema, call: 'fn.adopt_feed()', values: [] });
}
