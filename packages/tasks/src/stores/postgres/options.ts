import type { World } from '@whoa/core/embed';
import type { StoreOptions } from '../../store.ts';

export interface PostgresStoreOptions extends Omit<StoreOptions, 'shards'> {
  /** `postgres://user:password@host:5432/database?sslmode=verify-full`; the `PG…` environment variables without it. */
  readonly url?: string;
  /** Where the tables are. It is made if it does not exist. Stores with one schema share their tasks. */
  readonly schema?: string;
  /** How many connections this store may have, beside the one of this process that listens. */
  readonly maxConnections?: number;
  readonly connectTimeoutMs?: number;
  /** How long an operation waits for a lock, and its caller, a second more, for the answer. */
  readonly statementTimeoutMs?: number;
  /** Leads to the server itself, where `url` leads to a pooler that shares connections; defaults to `url`. */
  readonly listenUrl?: string;
  /** How often the connection that listens is tried. */
  readonly pollMs?: number;
  readonly world?: World;
}

export const MAX_CONNECTIONS = 10;
export const CONNECT_TIMEOUT_MS = 5_000;
export const STATEMENT_TIMEOUT_MS = 10_000;
export const POLL_MS = 10_000;
