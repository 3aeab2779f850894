// Start here: a store, and a runner that runs tasks from it.
export { createTaskStore } from './ledger/factory.ts';
export type { TaskStoreConfig } from './ledger/store-config.ts';
export { createRunner } from './run/store-runner.ts';
export { followTask, type FollowEvent } from './follow/follow.ts';
export { createStoreConversations, type StoreConversations } from './conversation/conversations.ts';

// Stores.
export { createMemoryStore } from './ledger/memory.ts';
export type { TaskStore } from './store.ts';
export { migrateStore, type MigrationPlan } from './ledger/migration/migration.ts';

// Tasks.
export type {
  NewTask,
  TaskRef,
  TaskSummary,
  TaskRecord,
  TaskOutcome,
  TaskCommand,
  JournalEntry,
  ConversationRef,
  ConversationRecord,
} from './task.ts';
export { type TaskStatus, isFinalStatus } from './ledger/rules/status.ts';
export type { JournalEvent } from './run/journal/journal-event.ts';
export type { CreateReceipt, SendReceipt, StoreCancelReceipt, ListFilter, ListPage } from './store.ts';
export type { StoreReply } from './conversation/reply.ts';

// Runners: run tasks, in this process or in workers.
export type { Runner, StartedTask, RunnerOptions } from './run/runner.ts';
export type { RunnerEvent } from './delivery/worker-context.ts';
export type { TaskHandler, TaskContext, SelfManagedWork } from './run/work.ts';
export { createBackground, type Background, createBackgroundKey } from './run/background.ts';
export type { TaskEngine, EngineFactory } from './delivery/engine.ts';
export type { OfferSource } from './delivery/offer-source.ts';

// Approvals by users who are elsewhere.
export { createTaskApprovals, type TaskApprovals } from './run/questions/approvals.ts';
export type { AnswerReceipt, Question } from './question.ts';

// Operate a store: cancel many tasks, requeue, erase.
export { cancelTasks } from './operate/cancel-tasks.ts';
export { requeueTask, type RequeueReceipt, listPoisonTasks } from './operate/requeue.ts';
export { eraseRecords, type EraseTarget, type EraseReceipt } from './operate/erase.ts';
export { haltTasks, type HaltReceipt } from './operate/halt.ts';
export { readFleetLoad, type FleetLoad } from './operate/fleet.ts';
export type { TaskCounts, PageRequest, PauseTarget } from './overview.ts';

// Errors.
export { StoreSetupError, StoreBusyError, StoreClosedError, TaskNotFoundError, LeaseLostError } from './errors.ts';
export { StoreFullError, TaskRejectedError } from './run/runner.ts';
export { UnknownOutcomeError } from './unknown-outcome.ts';
