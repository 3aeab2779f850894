// For Whoa's own packages. Anything here may change in any release.

// Stores by kind. Others use `createTaskStore`.
export { createSqliteStore } from '../ledger/sqlite.ts';
export { createPostgresStore } from '../ledger/postgres.ts';

// What changed, for consumers.
export { FeedConsumer } from '../feed/consumer.ts';
export { createTotals } from '../feed/totals.ts';
export type { FeedEvent } from '../feed/feed.ts';

// What operators see.
export type { TenantPage, WorkerPage, QueuePage, QuestionPage } from '../overview.ts';

// The rest.
export { createSqliteSessions } from '../ledger/sqlite-sessions.ts';
export { getDefaultPath as getDefaultSqlitePath } from '../ledger/sqlite/database-file.ts';
export { RUNNER_RULES } from '../run/runner-rules.ts';
export { readStoreConfig } from '../ledger/store-config.ts';
export { mapInBatches } from '../operate/map-in-batches.ts';
export { readPages } from '../operate/read-pages.ts';
export { cancelBackground } from '../run/background.ts';
export { type PendingQuestion, PendingQuestions } from '../follow/pending-questions.ts';
export { readJournal } from '../run/journal/read-journal.ts';
export { findQuestionTask } from '../question.ts';
export type { AskingTask } from '../run/questions/approvals.ts';
