import { createPostgresStore, type StoreOptions, type TaskStore } from '@whoa/tasks';
import type { StoreKind } from '@whoa/tasks/testing';
import pg from 'pg';

let schemas = 0;

/** The Postgres store under the contract: a schema for every case, in which time passes when told. */
export function postgresStoreKind(url: string): StoreKind {
  return {
    name: 'postgres',
    async createHarness() {
      const schema = `case_${process.pid}_${schemas++}`;
      const open = (options: StoreOptions): Promise<TaskStore> =>
        Promise.resolve(createPostgresStore({ ...options, url: url, schema, connectionsMax: 4 }));
      let now = Date.UTC(2030, 0, 1);
      const setClock = (): Promise<unknown> =>
        query(
          url,
          `CREATE OR REPLACE FUNCTION ${schema}.now_ms() RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT ${now}::float8'`,
        );
      {
        await using first = await open({});
        await first.due();
        await setClock();
      }
      return {
        open,
        openSecond: () => open({}),
        async advance(ms) {
          now += ms;
          await setClock();
        },
        async [Symbol.asyncDispose]() {
          await query(url, `DROP SCHEMA ${schema} CASCADE`);
        },
      };
    },
  };
}

/** Asks a database something, on a connection of its own. */
export async function query(url: string, sql: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql, values)).rows;
  } finally {
    await client.end();
  }
}
