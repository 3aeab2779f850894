import type { World } from '@whoa/core';
import type { StoreOptions } from '../../store.ts';

export interface PostgresStoreOptions extends StoreOptions {
  /** `postgres://user:password@host:5432/database?sslmode=verify-full`; the `PG…` environment variables without it. */
  readonly url?: string;
  /** Where the tables are. It is made if it does not exist. Stores with one schema share their tasks. */
  readonly schema?: string;
  /** How many connections this store may have, beside the one that listens. */
  readonly connectionsMax?: number;
  readonly connectTimeoutMs?: number;
  /** No operation may take longer; the database ends it. */
  readonly statementTimeoutMs?: number;
  /** How often the doorbell is tried. */
  readonly pollMs?: number;
  readonly world?: World;
}

export const CONNECTIONS_MAX = 10;
export const CONNECT_TIMEOUT_MS = 5_000;
export const STATEMENT_TIMEOUT_MS = 10_000;
export const POLL_MS = 2_000;
