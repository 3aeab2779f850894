import { StoreSetupError } from '../../../errors.ts';
import {
  type Connection,
  type ConnectionSettings,
  type Driver,
  introducedBackend,
  loadDriver,
  Sockets,
} from './driver.ts';
import { toStoreError } from './failures.ts';

/** The server's address and timeouts. */
export interface ServerOptions {
  readonly url: string | undefined;
  readonly connectTimeoutMs: number;
  readonly statementTimeoutMs: number;
}

/** A connection outside the pool. Queries on it may be sent at the same time, and are answered in order. */
export interface DedicatedConnection {
  readonly connection: InstanceType<Driver['Client']>;
  readonly sockets: Sockets;
}

/** A suspended server cannot time its statements out: stop waiting this much later. */
const ANSWER_MARGIN_MS = 1_000;

export function toConnectionSettings(options: ServerOptions, sockets: Sockets): ConnectionSettings {
  return {
    ...(options.url !== undefined && { connectionString: options.url }),
    application_name: 'whoa',
    keepAlive: true,
    stream: sockets.create,
    connectionTimeoutMillis: options.connectTimeoutMs,
    query_timeout: options.statementTimeoutMs + ANSWER_MARGIN_MS,
  };
}

/** Opens a separate connection; the caller must close it. */
export async function connectDedicated(
  options: ServerOptions,
  settings: ConnectionSettings & { readonly operation: string },
): Promise<DedicatedConnection> {
  const { Client } = await loadDriver();
  const sockets = new Sockets();
  const { operation, ...rest } = settings;
  const connection = new Client({ ...toConnectionSettings(options, sockets), ...rest });
  // Add the listener before connecting: an error without a listener would end the process.
  connection.on('error', () => {});
  try {
    await connection.connect();
    return { connection, sockets };
  } catch (error) {
    sockets.destroy();
    throw toStoreError(error, { operation, sent: false, changes: false, server: describeServer(options.url) });
  }
}

/** Returns whether there is no pooler between this connection and the server. */
export async function isOurOwn(connection: Connection): Promise<boolean> {
  const introduced = introducedBackend(connection);
  return introduced === undefined || introduced === (await readBackendPid(connection));
}

async function readBackendPid(connection: Connection): Promise<number> {
  const { rows } = await connection.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]!.pid;
}

/** How often two connections are compared before a pooler counts as keeping them apart. */
const COMPARISONS = 5;

/**
 * Throws if a pooler shares one server process between several connections, as PgBouncer does in transaction mode:
 * other programs would then receive our notifications instead of us. The check changes nothing.
 */
export async function checkSession(options: ServerOptions, { connection }: DedicatedConnection): Promise<void> {
  if (await isOurOwn(connection)) return;
  const other = await connectDedicated(options, { operation: 'watch', application_name: 'whoa asks' });
  try {
    const own = await readBackendPid(connection);
    for (let i = 0; i < COMPARISONS; i++) {
      if ((await readBackendPid(other.connection)) !== own && (await readBackendPid(connection)) === own) continue;
      throw new StoreSetupError(
        `${describeServer(options.url)} cannot be used to listen or migrate: a pooler in transaction mode shares its connections. Set a listenUrl that connects to the server itself, or to a pooler in session mode`,
      );
    }
  } finally {
    await other.sockets.endWithin(() => other.connection.end());
  }
}

/** Describes the address of a database for error messages, never with a password. */
export function describeServer(url: string | undefined): string {
  const { PGHOST = 'localhost', PGPORT = '5432', PGDATABASE = '' } = process.env;
  if (url === undefined) return `Postgres at ${PGHOST}:${PGPORT}/${PGDATABASE}`;
  try {
    const { host, pathname, searchParams } = new URL(url);
    return `Postgres at ${host || searchParams.get('host') || PGHOST}${pathname}`;
  } catch {
    // An address that cannot be parsed cannot be shown without its password.
    return 'Postgres';
  }
}
