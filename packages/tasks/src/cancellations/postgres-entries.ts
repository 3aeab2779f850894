import { systemClock } from '@whoa/core/embed';
import { PostgresBus } from '../bus/postgres-bus.ts';
import { loadDriver, type Pool, Sockets } from '../ledger/postgres/connection/driver.ts';
import { type Entries, KEPT_MS, TIMEOUT_MS } from './entries.ts';
import { createTable, deleteExpired, type Row, readEntry, toFields, writeField } from './sql.ts';

interface PostgresEntriesOptions {
  readonly url?: string | undefined;
  readonly table?: string | undefined;
  readonly now: () => number;
}

const MAX_CONNECTIONS = 2;
/** How often a silent connection of the bus is checked. */
const CHECK_MS = 10_000;
const NO_SUCH_TABLE = '42P01';
const NOTIFY = 'SELECT pg_notify(n.channel, n.piece) FROM unnest($1::text[], $2::text[]) AS n (channel, piece)';
/** Two processes created it at the same time. */
const EXISTS = ['42P07', '42710', '23505'];

/** Entries in a table of a Postgres database. */
export function createPostgresEntries(options: PostgresEntriesOptions): Entries {
  const { table = 'whoa_cancellations', now } = options;
  const sockets = new Sockets();
  let opened: Promise<Pool> | undefined;
  const connect = (): Promise<Pool> => (opened ??= openPool(options.url, sockets));
  const create = async (pool: Pool): Promise<void> => {
    await pool.query(createTable(table)).catch((error: { code?: string }) => {
      if (!EXISTS.includes(`${error.code}`)) throw error;
    });
  };
  const ask = async (text: string, values: readonly (string | number)[]): Promise<Row | undefined> => {
    const pool = await connect();
    const query = (): Promise<{ rows: Row[] }> => pool.query<Row>(text, [...values]);
    const { rows } = await query().catch(async (error: { code?: string }) => {
      if (error.code !== NO_SUCH_TABLE) throw error;
      await create(pool);
      return query();
    });
    return rows[0];
  };
  return {
    async write(taskId, field, value) {
      const at = now();
      const row = await ask(writeField(table, field), [taskId, value, at + KEPT_MS, at]);
      if (field === 'ended') await ask(deleteExpired(table, 'FOR UPDATE SKIP LOCKED'), [at]);
      return toFields(row!);
    },
    async read(taskId) {
      const row = await ask(readEntry(table), [taskId, now()]);
      return row && toFields(row);
    },
    openBus: () =>
      new PostgresBus({
        inbox: table,
        server: { url: options.url, connectTimeoutMs: TIMEOUT_MS, statementTimeoutMs: TIMEOUT_MS },
        clock: systemClock,
        pollIntervalMs: CHECK_MS,
        notify: async (channels, pieces) => (await connect()).query(NOTIFY, [channels, pieces]),
      }),
    async close() {
      const pool = await opened?.catch(() => undefined);
      // A suspended server never confirms the end.
      await sockets.endWithin(async () => pool?.end());
    },
  };
}

async function openPool(url: string | undefined, sockets: Sockets): Promise<Pool> {
  const { Pool: Connections } = await loadDriver();
  const pool = new Connections({
    ...(url !== undefined && { connectionString: url }),
    application_name: 'whoa',
    max: MAX_CONNECTIONS,
    stream: sockets.create,
    connectionTimeoutMillis: TIMEOUT_MS,
    query_timeout: TIMEOUT_MS,
  });
  // Without a listener an error of an idle connection would end the process. The failing call reports it.
  pool.on('error', () => {});
  return pool;
}
