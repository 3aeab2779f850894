// Stores: where tasks are kept.
export { createTaskStore, type TaskStoreConfig } from './stores/factory.ts';
export { createMemoryStore } from './stores/memory.ts';
export { createSqliteStore } from './stores/sqlite.ts';
export { createRedisStore } from './stores/redis.ts';
export { createPostgresStore } from './stores/postgres.ts';
export type { TaskStore, ClientStore } from './store.ts';
export type { WorkerStore } from './delivery.ts';

// Prepare a store for this version, while processes of two versions use it.
export { migrateStore, type MigrationPlan } from './migration/migration.ts';
export type { MigrationMode } from './migration/addition.ts';

// Tasks.
export type {
  NewTask,
  TaskRef,
  TaskSummary,
  TaskRecord,
  TaskActivity,
  TaskOutcome,
  TaskResponse,
  TaskCommand,
  JournalEntry,
} from './task.ts';
export type { Question, AnswerReceipt } from './question.ts';
export { type TaskStatus, isFinalStatus } from './status.ts';
export type { JournalEvent } from './journal-event.ts';
export type {
  CreateReceipt,
  SendReceipt,
  StoreCancelReceipt,
  RemoveReceipt,
  ListFilter,
  ListPage,
} from './store.ts';
export type {
  OperatorStore,
  TaskCounts,
  PageRequest,
  TenantPage,
  WorkerPage,
  ConversationPage,
  Queue,
  QueuePage,
  QuestionPage,
  PauseTarget,
} from './overview.ts';

// Runners: run tasks, in this process or in workers.
export { createRunner } from './run/store-runner.ts';
export type { Runner, StartedTask, AdoptedTask, RunnerOptions, RunnerEvent } from './run/runner.ts';
export type { TaskHandler as Work, TaskContext, SelfManagedWork } from './run/work.ts';
export { createTaskApprovals, type TaskApprovals } from './run/questions/approvals.ts';
export type { TaskEngine, EngineFactory } from './engine.ts';
export { createBackground, type Background, createBackgroundKey } from './run/background.ts';

// Operate a store: cancel many tasks, requeue, erase.
export { cancelTasks, type CancelTasksRequest, type CancelledTasks } from './operate/cancel-tasks.ts';
export { requeueTask, type RequeueReceipt, listPoisonTasks } from './operate/requeue.ts';
export { eraseRecords, type EraseTarget, type EraseReceipt } from './operate/erase.ts';
export { readFleetLoad, type FleetLoad } from './operate/fleet.ts';

// Follow a task from any process.
export { followTask, type FollowEvent } from './follow/follow.ts';

// Conversations on a store.
export { createStoreConversations, type StoreConversations } from './conversation/conversations.ts';
export type { StoreReply } from './conversation/reply.ts';
export type { ConversationRef, ConversationRecord } from './task.ts';

// Errors.
export { StoreSetupError, StoreBusyError, StoreClosedError, TaskNotFoundError, LeaseLostError } from './errors.ts';
export { StoreFullError, TaskRejectedError } from './run/runner.ts';
export { UnknownOutcomeError } from './unknown-outcome.ts';
