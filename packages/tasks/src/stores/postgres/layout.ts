import { createHash } from 'node:crypto';
import { StoreSetupError } from '../../errors.ts';
import { FORMAT, wrongFormat } from '../../rules/format.ts';
import type { StoredSettings } from '../driver.ts';
import type { Connection } from './connection/driver.ts';
import { BATCH } from './sql/batch.ts';
import { CANCEL } from './sql/cancel.ts';
import { CREATE } from './sql/create.ts';
import { ENTRY } from './sql/entry.ts';
import { QUEUE } from './sql/queue.ts';
import { OPERATE, OVERVIEW, READ } from './sql/read.ts';
import { SESSION } from './sql/session.ts';
import { SHOW } from './sql/show.ts';
import { STAGE } from './sql/stage.ts';
import { TABLES } from './sql/tables.ts';
import { TAKE } from './sql/take.ts';
import { WORK } from './sql/work.ts';

/** The version of the functions. Each version has a separate schema, so that old processes keep theirs. */
const VERSION = 1;

const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,56}$/;
const FUNCTIONS = [ENTRY, SHOW, STAGE, QUEUE, CREATE, TAKE, SESSION, WORK, CANCEL, BATCH, READ, OVERVIEW, OPERATE].join(
  '\n',
);
/** Detects definitions that change without a new version: they would replace the functions that other processes use. */
const DIGEST = createHash('sha256').update(FUNCTIONS).digest('hex').slice(0, 16);

/** The lock timeout of a table change: everything else waits behind it. */
const LOCK_MS = 3_000;

/** Inserts the names of a store's schemas into SQL: `whoa.` is for the tables, `fn.` for the functions. */
export function qualify(sql: string, schema: string): string {
  return sql.replaceAll(/\bwhoa\./g, `"${schema}".`).replaceAll(/\bfn\./g, `"${functionsOf(schema)}".`);
}

/** Rejects a schema name that Postgres would truncate or change. */
export function checkSchema(schema: string): void {
  if (SCHEMA_NAME.test(schema)) return;
  throw new TypeError(
    `schema: '${schema}' is not a valid name; use up to 57 lowercase letters, digits and underscores`,
  );
}

function functionsOf(schema: string): string {
  return `${schema}_v${VERSION}`;
}

/**
 * Reads what exists as rows, in the transaction's own snapshot: names that Postgres resolves itself may come from a
 * cache that is older than the lock we hold.
 */
const FIND = `
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $2) AS functions,
  EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'layout') AS tables,
  EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'migrations') AS old
`;

/** A schema, and its database for error messages. */
export interface SchemaRef {
  readonly schema: string;
  readonly server: string;
}

/** What exists of a schema. */
interface FoundLayout {
  /** The format of its tables, if there are any. */
  readonly format: number | undefined;
  /** It has everything that this client needs. */
  readonly isComplete: boolean;
}

/** Finds out what exists of a schema. Throws if it exists but cannot be used. */
export async function findLayout(connection: Connection, { schema, server }: SchemaRef): Promise<FoundLayout> {
  const names = [schema, functionsOf(schema)];
  const { rows: found } = await connection.query<{ tables: boolean; functions: boolean; old: boolean }>(FIND, names);
  const { tables, functions, old } = found[0]!;
  if (old) {
    throw new StoreSetupError(
      `${server}: schema '${schema}' is of a version before the first release; drop it, or name another: DROP SCHEMA ${schema} CASCADE`,
    );
  }
  if (!tables) return { format: undefined, isComplete: false };
  const { rows } = await connection.query<{ format: number; digest: string | null }>(
    `SELECT l.format, f.digest FROM "${schema}".layout l
     LEFT JOIN "${schema}".functions f ON f.version = $1`,
    [VERSION],
  );
  const { format, digest } = rows[0]!;
  const wrong = wrongFormat(format);
  if (wrong !== undefined) throw new StoreSetupError(`${server}: schema '${schema}' ${wrong}`);
  if (!functions || digest === null) return { format, isComplete: false };
  if (digest !== DIGEST) {
    throw new StoreSetupError(
      `${server}: schema '${functionsOf(schema)}' has other functions than this build of Whoa (${digest}, not ${DIGEST}); use the same build everywhere, or another schema`,
    );
  }
  return { format, isComplete: true };
}

/** Creates what is missing. Several processes can call it at once: one does it, the others wait. */
export async function layOut(connection: Connection, ref: SchemaRef): Promise<void> {
  const { schema, server } = ref;
  // On any failure the caller drops the connection, which rolls everything back.
  await connection.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  await connection.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`whoa lays out ${schema}`]);
  if (!(await findLayout(connection, ref)).isComplete) {
    await connection.query(`SET LOCAL lock_timeout = ${LOCK_MS}`);
    await createSchema(connection, schema, server);
    const { rows } = await connection.query<{ tables: boolean }>(FIND, [schema, functionsOf(schema)]);
    if (!rows[0]!.tables) {
      await connection.query(qualify(TABLES, schema));
      await connection.query(qualify('INSERT INTO whoa.layout (format) VALUES ($1)', schema), [FORMAT]);
    }
    await createSchema(connection, functionsOf(schema), server);
    await connection.query(qualify(FUNCTIONS, schema));
    await connection.query(qualify('INSERT INTO whoa.functions (version, digest) VALUES ($1, $2)', schema), [
      VERSION,
      DIGEST,
    ]);
  }
  await connection.query('COMMIT');
}

/** Writes the settings that a client gives. Returns what the store holds then. */
export async function holdSettings(
  connection: Connection,
  schema: string,
  given: StoredSettings,
): Promise<StoredSettings> {
  const read = async (): Promise<StoredSettings> => {
    const sql = qualify('SELECT name, value FROM whoa.settings', schema);
    const { rows } = await connection.query<{ name: string; value: number }>(sql);
    return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
  };
  const held = await read();
  const changed = Object.entries(given).filter(([name, value]) => held[name as keyof StoredSettings] !== value);
  if (changed.length === 0) return held;
  const save = `INSERT INTO whoa.settings AS s (name, value) SELECT * FROM unnest($1::text[], $2::float8[])
    ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
  await connection.query(qualify(save, schema), [changed.map(([name]) => name), changed.map(([, value]) => value)]);
  return read();
}

/** Checks first: IF NOT EXISTS needs the permission to create even if there is nothing to create. */
async function createSchema(connection: Connection, name: string, server: string): Promise<void> {
  const { rowCount } = await connection.query('SELECT FROM pg_namespace WHERE nspname = $1', [name]);
  if (rowCount !== 0) return;
  try {
    await connection.query(`CREATE SCHEMA "${name}"`);
  } catch (error) {
    if ((error as { code?: string }).code !== '42501') throw error;
    throw new StoreSetupError(
      `${server}: schema '${name}' does not exist and this user may not create it; run 'whoa migrate' as a user that may, or let one do: CREATE SCHEMA ${name} AUTHORIZATION CURRENT_USER, with the name of this user`,
      { cause: error },
    );
  }
}
