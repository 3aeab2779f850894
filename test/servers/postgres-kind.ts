import { createPostgresStore, type TaskStore } from '@whoa/tasks';
import type { StoreOptions } from '@whoa/tasks/store';
import type { StoreKind } from '@whoa/tasks/testing';
import pg from 'pg';

let schemas = 0;

/** The Postgres store under the contract: a schema for every case, in which time passes when told. */
/** The contract is about what a store does, not how fast: a busy machine may take this long for one statement. */
const BUSY_MS = 60_000;

export function postgresStoreKind(url: string): StoreKind {
  return {
    name: 'postgres',
    createHarness() {
      const schema = `case_${process.pid}_${schemas++}`;
      let now = Date.UTC(2030, 0, 1);
      const setClock = (): Promise<unknown> =>
        query(
          url,
          `CREATE OR REPLACE FUNCTION ${schema}_v1.now_ms() RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT ${now}::float8'`,
        );
      let isLaidOut = false;
      const open = async (options: StoreOptions): Promise<TaskStore> => {
        const store = createPostgresStore({ ...options, url, schema, maxConnections: 4, statementTimeoutMs: BUSY_MS });
        if (isLaidOut) return store;
        isLaidOut = true;
        await store.list({ tenant: 'acme' });
        await setClock();
        return store;
      };
      return Promise.resolve({
        open,
        openSecond: () => open({}),
        async advance(ms) {
          now += ms;
          if (isLaidOut) await setClock();
        },
        async setFormat(format) {
          await query(url, `UPDATE ${schema}.layout SET format = ${format}`);
        },
        async [Symbol.asyncDispose]() {
          await query(url, `DROP SCHEMA IF EXISTS ${schema}, ${schema}_v1 CASCADE`);
        },
      });
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
