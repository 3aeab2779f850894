import type { TaskStore } from '@whoa/tasks';
import { createPostgresStore } from '@whoa/tasks/internal';
import type { StoreOptions } from '@whoa/tasks/store';
import type { StoreKind } from '@whoa/tasks/testing';
import pg from 'pg';

/** The contract is about results, not speed: a busy machine may take this long. */
const PATIENT = { connectTimeoutMs: 60_000, statementTimeoutMs: 60_000 };

/** The Postgres store under the contract. Each case gets an empty schema, in which the test controls the time. */
export async function openPostgresKind(url: string): Promise<StoreKind & AsyncDisposable> {
  const client = new pg.Client(url);
  await client.connect();
  // Creating a schema and its functions takes longer than a case. Emptied, it serves the next one.
  const idle: CaseSchema[] = [];
  let schemas = 0;
  return {
    name: 'postgres',
    async createHarness() {
      const schema = idle.pop() ?? (await createSchema(client, { url, name: `case_${schemas++}` }));
      let now = Date.UTC(2030, 0, 1);
      await schema.setClock(now);
      const open = (options: StoreOptions): TaskStore =>
        createPostgresStore({ ...options, url, schema: schema.name, maxConnections: 4, ...PATIENT });
      return {
        open: (options) => Promise.resolve(open(options)),
        openSecond: (options = {}) => Promise.resolve(open(options)),
        async advance(ms) {
          now += ms;
          await schema.setClock(now);
        },
        async setFormat(format) {
          await client.query(`UPDATE ${schema.name}.layout SET format = ${format}`);
        },
        async [Symbol.asyncDispose]() {
          await schema.empty();
          idle.push(schema);
        },
      };
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}

interface CaseSchema {
  readonly name: string;
  setClock(now: number): Promise<unknown>;
  /** Restores every table to its content in the new schema. */
  empty(): Promise<void>;
}

async function createSchema(client: pg.Client, { url, name }: { url: string; name: string }): Promise<CaseSchema> {
  {
    await using store = createPostgresStore({ url, schema: name, ...PATIENT });
    await store.list({ tenant: 'acme' });
  }
  // A table, because replacing the function would discard every plan.
  await client.query(`CREATE TABLE ${name}_v3.clock AS SELECT 0::float8 AS ms`);
  await client.query(
    `CREATE OR REPLACE FUNCTION ${name}_v3.now_ms() RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT ms FROM ${name}_v3.clock'`,
  );
  const { rows } = await client.query<{ table: string }>(
    'SELECT quote_ident(tablename) AS table FROM pg_tables WHERE schemaname = $1',
    [name],
  );
  const tables = rows.map(({ table }) => `${name}.${table}`);
  const initial = new Map<string, string>();
  for (const table of tables) {
    const all = await client.query<{ rows: string }>(`SELECT json_agg(t)::text AS rows FROM ${table} t`);
    initial.set(table, all.rows[0]!.rows ?? '[]');
  }
  return {
    name,
    setClock: (now) => client.query(`UPDATE ${name}_v3.clock SET ms = ${now}`),
    async empty() {
      await client.query(`TRUNCATE ${tables.join(', ')} RESTART IDENTITY`);
      for (const [table, json] of initial) {
        if (json === '[]') continue;
        await client.query(`INSERT INTO ${table} SELECT * FROM json_populate_recordset(NULL::${table}, $1)`, [json]);
      }
    },
  };
}
