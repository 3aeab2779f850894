import { settings } from '@whoa/core/internal';
import type { Bus } from '../bus/bus.ts';
import type { RedisBusConfig } from '../bus/redis-bus.ts';

/** Options that every store accepts. */
export interface StoreOptions {
  /**
   * How many crashes without progress are charged to a task before it fails. A crash is charged to a task only if its
   * workers had crashed twice before, and no other task of that worker was such a suspect. Defaults to 3.
   */
  readonly maxAttempts?: number;
  /**
   * How long a task is kept after it ends. The store holds this value: it applies to all clients, from their next
   * connect. Clients that leave it out use what the store holds, at first 7 days.
   */
  readonly retentionMs?: number;
  /** How long an idle conversation's history is kept. Held by the store as `retentionMs` is; at first 90 days. */
  readonly conversationRetentionMs?: number;
  /** The maximum size of one task's journal. */
  readonly maxJournalBytes?: number;
  /** How many tasks of one tenant may be ready for one agent. Beyond that, `create` returns `full`. */
  readonly maxReady?: number;
  /** How many tasks of one tenant may run at the same time. */
  readonly maxRunningPerTenant?: number;
  /** How many tasks of one agent may run at the same time. */
  readonly maxRunningPerAgent?: number;
}

/** Options of stores that several processes share. */
export interface SharedStoreOptions {
  /**
   * What tells processes fast about changes: the address of a Redis server, or your own bus. It keeps nothing. All
   * processes of a store must use the same. Defaults to the database itself.
   */
  readonly bus?: string | RedisBusConfig | Bus | undefined;
}

const { boundedMs, count } = settings;
const keptMs = boundedMs({ max: 3_650 * 86_400_000 });

/** The rules for the options that every store has. */
export const STORE_RULES: settings.Rules<StoreOptions> = {
  maxAttempts: count(),
  retentionMs: keptMs,
  conversationRetentionMs: keptMs,
  maxJournalBytes: count(),
  maxReady: count(),
  maxRunningPerTenant: count(),
  maxRunningPerAgent: count(),
};
