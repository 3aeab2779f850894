import { StoreBusyError } from '../../errors.ts';
import { describeAddition, type MigratedStore, type MigrationMode } from '../migration/addition.ts';
import { checkSession, connectDedicated, describeServer } from './connection/connect.ts';
import type { Connection } from './connection/driver.ts';
import { toStoreError } from './connection/failures.ts';
import {
  checkSchema,
  createIndexes,
  findLayout,
  isUsable,
  layOut,
  type SchemaRef,
  toFunctionsSchema,
  writeFormat,
} from './layout.ts';
import { CONNECT_TIMEOUT_MS, type PostgresStoreOptions, STATEMENT_TIMEOUT_MS } from './options.ts';

/** Connects to the server itself if `url` is a pooler. */
export async function migratePostgres(
  { schema = 'whoa', url, listenUrl = url, connectTimeoutMs = CONNECT_TIMEOUT_MS }: PostgresStoreOptions,
  mode: MigrationMode,
): Promise<MigratedStore> {
  checkSchema(schema);
  const options = { url: listenUrl, connectTimeoutMs, statementTimeoutMs: STATEMENT_TIMEOUT_MS };
  const ref = { schema, server: describeServer(listenUrl) };
  const settings = { operation: 'migrate', application_name: 'whoa migrate', query_timeout: 0 };
  const alone = await connectDedicated(options, settings);
  try {
    await checkSession(options, alone);
    const { connection } = alone;
    if (mode !== 'plan') await prepare(connection, ref);
    if (mode === 'finish') await writeFormat(connection, schema);
    const { format, hasFunctions, missing } = await findLayout(connection, ref);
    const store = `${ref.server}, schema '${schema}'`;
    if (format === undefined) return { store, missing: [] };
    const functions = hasFunctions ? [] : [`functions ${toFunctionsSchema(schema)}`];
    return { store, format, missing: [...missing.map(describeAddition), ...functions] };
  } catch (error) {
    throw toStoreError(error, { operation: 'migrate', sent: true, changes: mode !== 'plan', server: ref.server });
  } finally {
    await alone.sockets.endWithin(() => alone.connection.end());
  }
}

async function prepare(connection: Connection, ref: SchemaRef): Promise<void> {
  const lock = 'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS mine';
  const { rows } = await connection.query<{ mine: boolean }>(lock, [`whoa migrates ${ref.schema}`]);
  if (!rows[0]!.mine) {
    throw new StoreBusyError(`${ref.server}: schema '${ref.schema}' is being migrated by another process; wait for it`);
  }
  if (!isUsable(await findLayout(connection, ref))) await layOut(connection, ref);
  // Creating an index takes as long as it takes. It waits for other transactions without blocking any.
  await connection.query('SET statement_timeout = 0; SET lock_timeout = 0');
  await createIndexes(connection, ref);
}
