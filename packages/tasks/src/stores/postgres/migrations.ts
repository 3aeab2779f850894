import type { PooledConnection } from './driver.ts';
import { StoreSetupError } from './failures.ts';
import { CANCEL } from './sql/cancel.ts';
import { CREATE } from './sql/create.ts';
import { LINE } from './sql/line.ts';
import { BASICS, HISTORY, JOURNAL_BYTES, NONCES, TABLES } from './sql/tables.ts';
import { CLAIM, WORK } from './sql/work.ts';

/**
 * What made the tables what they are, oldest first. Never change one that has been published: add the next. A function
 * whose parameters change is dropped here; a change of what functions do is an empty migration.
 */
const MIGRATIONS: readonly string[] = [TABLES, NONCES, JOURNAL_BYTES, HISTORY];

/** They hold no data: each migration brings them all up to date. */
const FUNCTIONS = (BASICS + LINE + CREATE + CLAIM + WORK + CANCEL).replaceAll(
  'CREATE FUNCTION',
  'CREATE OR REPLACE FUNCTION',
);

const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,62}$/;

/** A schema's name as it stands before a dot; refuses what Postgres would cut or change. */
export function qualifierOf(schema: string): string {
  if (!SCHEMA_NAME.test(schema)) {
    throw new TypeError(`schema: '${schema}' is no name; use up to 63 small letters, digits and underscores`);
  }
  return `"${schema}".`;
}

/** Brings a schema up to date. Safe from several processes at once: one does it, the others wait. */
export async function migrate(connection: PooledConnection, schema: string): Promise<void> {
  const qualifier = qualifierOf(schema);
  if ((await versionOf(connection, qualifier)) === MIGRATIONS.length) return;
  // Whatever fails in here, the caller gives the connection up, and with it everything that was begun.
  await connection.query('BEGIN');
  await connection.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`whoa migrates ${schema}`]);
  await connection.query(`CREATE SCHEMA IF NOT EXISTS "${schema}"`);
  await connection.query(
    `CREATE TABLE IF NOT EXISTS ${qualifier}migrations (version int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`,
  );
  const found = (await versionOf(connection, qualifier)) ?? 0;
  if (found > MIGRATIONS.length) {
    throw new StoreSetupError(
      `schema: '${schema}' was made by a newer version (${found}, this one knows ${MIGRATIONS.length}); update Whoa`,
    );
  }
  for (const [index, sql] of MIGRATIONS.entries()) {
    if (index < found) continue;
    await connection.query(sql.replaceAll('whoa.', qualifier));
    await connection.query(`INSERT INTO ${qualifier}migrations (version) VALUES ($1)`, [index + 1]);
  }
  if (found < MIGRATIONS.length) {
    await connection.query(FUNCTIONS.replaceAll('whoa.', qualifier));
  }
  await connection.query('COMMIT');
}

async function versionOf(connection: PooledConnection, qualifier: string): Promise<number | undefined> {
  const { rows } = await connection.query<{ found: boolean }>('SELECT to_regclass($1) IS NOT NULL AS found', [
    `${qualifier}migrations`,
  ]);
  if (!rows[0]?.found) return undefined;
  const versions = await connection.query<{ version: number | null }>(
    `SELECT max(version) AS version FROM ${qualifier}migrations`,
  );
  return versions.rows[0]?.version ?? undefined;
}
