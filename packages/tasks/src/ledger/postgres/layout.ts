import { createHash } from 'node:crypto';
import { SettingsError } from '@whoa/core';
import { StoreSetupError } from '../../errors.ts';
import type { StoredSettings } from '../driver.ts';
import type { Addition, Limit } from '../migration/addition.ts';
import { FORMAT, wrongFormat } from '../rules/format.ts';
import { ADDITIONS } from './additions.ts';
import type { Connection } from './connection/driver.ts';
import { RULE_FILES } from './sql/rule-files.ts';

/** The version of the functions. Each version has a separate schema, so that old processes keep theirs. */
const VERSION = 3;

const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,56}$/;
const { 'tables.sql': TABLES = '', ...FUNCTION_FILES } = RULE_FILES;
const FUNCTIONS = Object.values(FUNCTION_FILES).join('\n');
/** Detects definitions that change without a new version: they would replace the functions that other processes use. */
const DIGEST = createHash('sha256').update(FUNCTIONS).digest('hex').slice(0, 16);

/** The lock timeout of a table change: everything else waits behind it. */
const LOCK_MS = 1_000;

/** Inserts the names of a store's schemas into SQL: `whoa.` is for the tables, `fn.` for the functions. A text that ends so stays. */
export function qualify(sql: string, schema: string): string {
  return sql.replaceAll(/\bwhoa\.(?!')/g, `"${schema}".`).replaceAll(/\bfn\./g, `"${toFunctionsSchema(schema)}".`);
}

/** Rejects a schema name that Postgres would truncate or change. */
export function checkSchema(schema: string): void {
  if (SCHEMA_NAME.test(schema)) return;
  throw new SettingsError(
    'schema',
    `'${schema}' is not a valid name; use up to 57 lowercase letters, digits and underscores`,
  );
}

/** The schema of this version's functions. */
export function toFunctionsSchema(schema: string): string {
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

/** The names of all columns and of the complete indexes. */
const PARTS = `
SELECT c.relname || '.' || a.attname FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND NOT a.attisdropped
UNION ALL
SELECT c.relname FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND i.indisvalid
`;

/** A schema, and its database for error messages. */
export interface SchemaRef {
  readonly schema: string;
  readonly server: string;
  readonly limits?: readonly Limit[] | undefined;
}

/** What exists of a schema. */
interface FoundLayout {
  /** The format of its tables, if there are any. */
  readonly format: number | undefined;
  readonly hasFunctions: boolean;
  /** What this version adds to the tables and they do not have. */
  readonly missing: readonly Addition[];
}

/** Returns whether it has everything that this client needs: without an index it is only slower. */
export function isUsable({ hasFunctions, missing }: FoundLayout): boolean {
  return hasFunctions && !missing.some((one) => 'table' in one);
}

/** Finds out what exists of a schema. Throws if it exists but cannot be used. */
export async function findLayout(connection: Connection, { schema, server, limits }: SchemaRef): Promise<FoundLayout> {
  const wanted = ADDITIONS.filter((one) => !('limit' in one) || limits?.includes(one.limit!));
  const names = [schema, toFunctionsSchema(schema)];
  const { rows: found } = await connection.query<{ tables: boolean; functions: boolean; old: boolean }>(FIND, names);
  const { tables, functions, old } = found[0]!;
  if (old) {
    throw new StoreSetupError(
      `${server}: schema '${schema}' is from before the first release; choose another schema, or drop it: DROP SCHEMA ${schema} CASCADE`,
    );
  }
  if (!tables) return { format: undefined, hasFunctions: false, missing: wanted };
  const { rows } = await connection.query<{ format: number; digest: string | null; parts: readonly string[] }>(
    `SELECT l.format, f.digest, ARRAY(${PARTS}) AS parts FROM "${schema}".layout l
     LEFT JOIN "${schema}".functions f ON f.version = $2`,
    [schema, VERSION],
  );
  const { format, digest, parts } = rows[0]!;
  const wrong = wrongFormat(format);
  if (wrong !== undefined) throw new StoreSetupError(`${server}: schema '${schema}' ${wrong}`);
  const hasFunctions = functions && digest !== null;
  if (hasFunctions && digest !== DIGEST) {
    throw new StoreSetupError(
      `${server}: schema '${toFunctionsSchema(schema)}' has other functions than this build of Whoa (${digest}, not ${DIGEST}); use the same build everywhere, or another schema`,
    );
  }
  const isMissing = (one: Addition): boolean =>
    !parts.includes('index' in one ? one.index : `${one.table}.${'column' in one ? one.column : 'ctid'}`);
  return { format, hasFunctions, missing: wanted.filter(isMissing) };
}

/** Creates what is missing. Several processes can call it at the same time: one does it, the others wait. */
export async function layOut(connection: Connection, ref: SchemaRef): Promise<void> {
  const { schema, server } = ref;
  // On any failure the caller drops the connection, which rolls everything back.
  await connection.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  await connection.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`whoa lays out ${schema}`]);
  const found = await findLayout(connection, ref);
  if (!isUsable(found)) {
    const isNew = found.format === undefined;
    await connection.query(`SET LOCAL lock_timeout = ${LOCK_MS}`);
    await createSchema(connection, schema, server);
    await createSchema(connection, toFunctionsSchema(schema), server);
    if (isNew) {
      await connection.query(qualify(TABLES, schema));
      await connection.query(qualify('INSERT INTO whoa.layout (format) VALUES ($1)', schema), [FORMAT]);
    }
    for (const one of found.missing) {
      if ('columns' in one) {
        const storage = one.storage === undefined ? '' : ` WITH (${one.storage})`;
        await connection.query(qualify(`CREATE TABLE whoa.${one.table} (${one.columns})${storage}`, schema));
      } else if ('column' in one) {
        await connection.query(qualify(`ALTER TABLE whoa.${one.table} ADD COLUMN ${one.column} ${one.type}`, schema));
        // An index of a table with rows would keep writers waiting: `createIndexes` adds it.
      } else if (isNew) await connection.query(qualify(`CREATE INDEX ${one.index} ON whoa.${one.on}`, schema));
    }
    if (!found.hasFunctions) {
      await connection.query(qualify(FUNCTIONS, schema));
      await connection.query(qualify('INSERT INTO whoa.functions (version, digest) VALUES ($1, $2)', schema), [
        VERSION,
        DIGEST,
      ]);
    }
  }
  await connection.query('COMMIT');
}

/** Creates the missing indexes while others write. One that was never completed is of no use, and is created again. */
export async function createIndexes(connection: Connection, ref: SchemaRef): Promise<void> {
  const { missing } = await findLayout(connection, ref);
  for (const one of missing) {
    if (!('index' in one)) continue;
    await connection.query(qualify(`DROP INDEX CONCURRENTLY IF EXISTS whoa.${one.index}`, ref.schema));
    await connection.query(qualify(`CREATE INDEX CONCURRENTLY ${one.index} ON whoa.${one.on}`, ref.schema));
  }
}

/** Writes the newest format. Running operations end before; those that wait for the lock see the new format. */
export async function writeFormat(connection: Connection, schema: string): Promise<void> {
  const sql = `BEGIN; SET LOCAL lock_timeout = ${LOCK_MS}; LOCK TABLE whoa.layout IN ACCESS EXCLUSIVE MODE;
    UPDATE whoa.layout SET format = greatest(format, ${FORMAT}); COMMIT`;
  await connection.query(qualify(sql, schema));
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
      `${server}: schema '${name}' does not exist and this user may not create it; run 'whoa migrate' as a user who may, or have one run: CREATE SCHEMA ${name} AUTHORIZATION CURRENT_USER, with the name of this user`,
      { cause: error },
    );
  }
}
