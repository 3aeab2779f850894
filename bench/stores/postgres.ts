import pg from 'pg';
import type { PostgresStoreOptions } from '../../packages/tasks/src/ledger/postgres.ts';
import { startPostgres } from '../../test/servers/postgres.ts';
import type { Bare, BenchCase } from './bare.ts';

/** A PostgreSQL that flushes every commit to disk. */
export async function startPostgresCase(): Promise<BenchCase> {
  const server = await startPostgres({ durable: true });
  const config = { backend: 'postgres', url: server.url } as const;
  const bare = createBarePostgres(config);
  const admin = new pg.Client(server.url);
  await admin.connect();
  return {
    name: 'postgres',
    config,
    bare,
    cpuSeconds: async () => (await server.cpuMs()) / 1_000,
    async commands() {
      const { rows } = await admin.query<{ commits: string }>(
        'SELECT sum(xact_commit)::text AS commits FROM pg_stat_database WHERE datname = current_database()',
      );
      return Number(rows[0]!.commits);
    },
    async logBytes() {
      const { rows } = await admin.query<{ bytes: string }>(
        "SELECT (pg_current_wal_insert_lsn() - '0/0')::text AS bytes",
      );
      return Number(rows[0]!.bytes);
    },
    // The data is on disk, indexes included; memory is only its cache.
    async memoryBytes() {
      const { rows } = await admin.query<{ bytes: string }>(
        'SELECT pg_database_size(current_database())::text AS bytes',
      );
      return Number(rows[0]!.bytes);
    },
    async taskBytes() {
      // Space that updates have freed is reused.
      await admin.query('VACUUM FULL whoa.tasks, whoa.questions');
      const { rows } = await admin.query<{ bytes: string }>(
        `SELECT sum(pg_total_relation_size(c.oid))::text AS bytes FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = 'whoa' AND c.relkind = 'r' AND c.relname NOT IN ('journal', 'inputs')`,
      );
      return Number(rows[0]!.bytes);
    },
    async tidy() {
      await admin.query('VACUUM ANALYZE');
    },
    async [Symbol.asyncDispose]() {
      await bare[Symbol.asyncDispose]();
      await admin.end();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** NOTIFY, LISTEN and SELECT: the path of a cancel without its work. And one UPDATE of one row. */
export function createBarePostgres({ url }: Pick<PostgresStoreOptions, 'url'>): Bare {
  const commands = new pg.Pool({ connectionString: url, max: 10, allowExitOnIdle: true });
  const listener = new pg.Client(url);
  const ready = commands.query(
    `SELECT pg_advisory_lock(1);
     CREATE TABLE IF NOT EXISTS bare (key text PRIMARY KEY, status text, at int) WITH (fillfactor = 75);
     SELECT pg_advisory_unlock(1)`,
  );
  let connecting: Promise<unknown> | undefined;
  let isListening = false;
  return {
    async ring(name) {
      await commands.query({ name: 'ring', text: 'SELECT pg_notify($1, $2)', values: [name, 'x'] });
    },
    async writeAndRing(name) {
      const text = `WITH written AS (UPDATE bare SET status = $2, at = at + 1 WHERE key = $1) SELECT pg_notify($1, $2)`;
      await commands.query({ name: 'write-and-ring', text, values: [name, 'cancelling'] });
    },
    async listen(name, onRing) {
      await ready;
      connecting ??= listener.connect();
      await connecting;
      isListening = true;
      await commands.query("INSERT INTO bare VALUES ($1, 'running', 1) ON CONFLICT DO NOTHING", [name]);
      const read = async (): Promise<void> => {
        await commands.query({ name: 'read', text: 'SELECT status FROM bare WHERE key = $1', values: [name] });
        onRing();
      };
      listener.on('notification', () => {
        read().catch((error: unknown) => process.emitWarning(error as Error));
      });
      await listener.query(`LISTEN "${name}"`);
    },
    async publish(name, text) {
      await commands.query({ name: 'publish', text: 'SELECT pg_notify($1, $2)', values: [name, text] });
    },
    async subscribe(name, onText) {
      connecting ??= listener.connect();
      await connecting;
      isListening = true;
      listener.on('notification', ({ channel, payload = '' }) => channel === name && onText(payload));
      await listener.query(`LISTEN "${name}"`);
    },
    async write(key) {
      await ready;
      const text = 'UPDATE bare SET status = $2, at = at + 1 WHERE key = $1';
      const { rowCount } = await commands.query({ name: 'write', text, values: [key, 'running'] });
      if (rowCount === 0) await commands.query("INSERT INTO bare VALUES ($1, 'running', 1)", [key]);
    },
    async [Symbol.asyncDispose]() {
      await ready;
      if (isListening) await listener.end();
      await commands.end();
    },
  };
}
