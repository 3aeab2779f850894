export {
  createConversations,
  type StoreConversations,
  type StoreConversationsOptions,
  type StoreMessageOptions,
  type StoreReply,
} from './conversation/conversations.ts';
export { JournalFullError, JournalGapError, LeaseLostError, StoreBusyError, StoreClosedError } from './errors.ts';
export { createTaskStore, type TaskStoreConfig } from './factory.ts';
export { shardOf } from './id.ts';
export {
  type CancellationRegistry,
  createCancellationRegistry,
  type RegisteredTask,
  type SetStatusReceipt,
} from './registry.ts';
export { type Approvals, createApprovals } from './run/approvals.ts';
export {
  CANCEL_TOPIC,
  type CancelMessage,
  type ChannelListener,
  type ChannelMessage,
  createCancelMessage,
  createEventChannel,
  type EventChannel,
  TASK_CATEGORY,
} from './run/channel.ts';
export {
  type Runner,
  type RunnerEvent,
  type RunnerOptions,
  TaskRejectedError,
  type WorkOptions,
} from './run/runner.ts';
export { createRunner } from './run/store-runner.ts';
export type { TaskContext, Work } from './run/work.ts';
export {
  type FinalStatus,
  isFinal,
  type Move,
  type MoveAnswer,
  move,
  type Refusal,
  type TaskStatus,
} from './status.ts';
export {
  ATTEMPTS_MAX,
  type Batch,
  type Claim,
  COMMANDS_MAX,
  type CreateOptions,
  type CreateReceipt,
  type FinishReceipt,
  type Hint,
  JOURNAL_BYTES_MAX,
  type ListFilter,
  type ListPage,
  NONCES_MAX,
  type Orders,
  type PushedOrder,
  type ReadOptions,
  type ReleaseReceipt,
  type Repeatable,
  type SendReceipt,
  type StoreCancelReceipt,
  type StoreOptions,
  type TaskStore,
  type WatchFilter,
} from './store.ts';
export { createMemoryStore, type MemoryStoreOptions } from './stores/memory.ts';
export { createPostgresStore, type PostgresStoreOptions } from './stores/postgres.ts';
export { createRedisStore, type RedisStoreOptions } from './stores/redis.ts';
export { defaultPath as defaultSqlitePath } from './stores/sqlite/place.ts';
export { createSqliteStore, type SqliteStoreOptions } from './stores/sqlite.ts';
export {
  createSqliteSessions,
  type KeptSession,
  type SessionsFilter,
  type SqliteSessions,
} from './stores/sqlite-sessions.ts';
export {
  type Command,
  type ConversationRecord,
  type ConversationRef,
  type JournalEntry,
  type NewTask,
  type NumberedCommand,
  responseOf,
  type StopOrder,
  type TaskOutcome,
  type TaskRecord,
  type TaskRef,
  type TaskResponse,
} from './task.ts';
export { UnknownOutcomeError } from './unknown-outcome.ts';
