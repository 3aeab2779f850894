import type { World } from '@whoa/core/embed';
import type { SharedStoreOptions, StoreOptions } from '../store-options.ts';

export interface PostgresStoreOptions extends StoreOptions, SharedStoreOptions {
  /** `postgres://user:password@host:5432/database?sslmode=verify-full`. Defaults to the `PG…` environment variables. */
  readonly url?: string | undefined;
  /** The schema of the tables. It is created if it does not exist. Stores with the same schema share their tasks. */
  readonly schema?: string | undefined;
  /** How many connections this store may open, in addition to this process's listening connection. */
  readonly maxConnections?: number | undefined;
  readonly connectTimeoutMs?: number | undefined;
  /** How long an operation waits for a lock. Its caller waits a second more for the response. */
  readonly statementTimeoutMs?: number | undefined;
  /** The address of the server itself, if `url` is a pooler that shares connections. Defaults to `url`. */
  readonly listenUrl?: string | undefined;
  /** How often the listening connection is checked. */
  readonly pollIntervalMs?: number | undefined;
  readonly world?: World | undefined;
}

export const MAX_CONNECTIONS = 10;
export const CONNECT_TIMEOUT_MS = 5_000;
export const STATEMENT_TIMEOUT_MS = 10_000;
export const POLL_MS = 10_000;
