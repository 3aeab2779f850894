export { createCheckedStore, rulesOf } from './checked-store.ts';
export {
  createConversations,
  type StoreConversations,
  type StoreConversationsOptions,
  type StoreMessageOptions,
} from './conversation/conversations.ts';
export type { StoreReply } from './conversation/reply.ts';
export type {
  Beat,
  BeatAnswer,
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  HeldTask,
  Orders,
  SessionRef,
  SweepAnswer,
  TakeAnswer,
  TakenTask,
  TakeRequest,
  TaskLoad,
  TaskOrders,
} from './delivery.ts';
export type {
  CreateRequest,
  DriverBatch,
  End,
  ListRequest,
  ReadRequest,
  StopRequest,
  StoreDriver,
  StoreRules,
} from './driver.ts';
export {
  JournalFullError,
  JournalGapError,
  LeaseLostError,
  StoreBusyError,
  StoreClosedError,
  StoreSetupError,
  TaskUnknownError,
} from './errors.ts';
export { createTaskStore, type TaskStoreConfig } from './factory.ts';
export { type Followed, type FollowOptions, followTask } from './follow.ts';
export { shardOf } from './id.ts';
export type { JournalEvent, Kept, KeptError } from './journal-event.ts';
export type { PageRequest, TaskCounts, TenantPage, WorkerPage, WorkerRecord } from './overview.ts';
export {
  type CancellationRegistry,
  type CancellationRegistryOptions,
  createCancellationRegistry,
  type RegisteredTask,
  type Registration,
  type SetStatusReceipt,
} from './registry.ts';
export {
  type ApprovalCommand,
  type Approvals,
  type AskingTask,
  createApprovals,
  type TaskApprovalsOptions,
} from './run/approvals.ts';
export {
  type Background,
  type BackgroundWork,
  backgroundKey,
  cancelBackground,
  createBackground,
  type StartingTask,
} from './run/background.ts';
export {
  CANCEL_TOPIC,
  type CancelMessage,
  type CancelPayload,
  type CancelTarget,
  type ChannelListener,
  type ChannelMessage,
  createCancelMessage,
  createEventChannel,
  type EventChannel,
  TASK_CATEGORY,
} from './run/channel.ts';
export type { CancellationChecker } from './run/checker.ts';
export {
  type Runner,
  type RunnerEvent,
  type RunnerOptions,
  type StartedTask,
  StoreFullError,
  TaskRejectedError,
  type WorkOptions,
} from './run/runner.ts';
export { createRunner } from './run/store-runner.ts';
export type { HeldContext, HeldWork, TaskContext, TaskFunction, Work } from './run/work.ts';
export {
  type FinalStatus,
  isFinal,
  type Move,
  type MoveAnswer,
  move,
  type Refusal,
  type TaskStatus,
} from './status.ts';
export type {
  Batch,
  CreateOptions,
  CreateReceipt,
  FinishReceipt,
  Hint,
  ListFilter,
  ListPage,
  PushedOrder,
  ReadOptions,
  ReleaseReceipt,
  Repeatable,
  SendReceipt,
  StoreCancelReceipt,
  StoreOptions,
  TaskStore,
  WatchFilter,
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
  type KeyRef,
  type NewTask,
  type NumberedCommand,
  responseOf,
  type Stage,
  type StopOrder,
  type TaskHead,
  type TaskOutcome,
  type TaskRecord,
  type TaskRef,
  type TaskResponse,
} from './task.ts';
export { UnknownOutcomeError } from './unknown-outcome.ts';
