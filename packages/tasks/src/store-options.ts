/** Options that every store accepts. */
export interface StoreOptions {
  /**
   * The number of shards. It is stored on the first connect. To increase it, pass the old number too: `[1, 16]`. Then
   * new tasks are spread over 16 shards, and existing data stays where it is.
   */
  readonly shards?: number | readonly number[];
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
  /** How many tasks of one tenant may run at the same time. Exact on one shard; several shards divide the limit. */
  readonly maxRunningPerTenant?: number;
  /** How many tasks of one agent may run at the same time. Exact on one shard; several shards divide the limit. */
  readonly maxRunningPerAgent?: number;
}
