// For Whoa's own packages. Anything here may change in any release.

export { createSqliteSessions } from '../stores/sqlite-sessions.ts';
export { getDefaultPath as getDefaultSqlitePath } from '../stores/sqlite/database-file.ts';
export { readStoreConfig } from '../stores/factory.ts';
export { cancelBackground } from '../run/background.ts';
export { type PendingQuestion, PendingQuestions } from '../follow/pending-questions.ts';
export { findQuestionTask } from '../question.ts';
export type { AskingTask } from '../run/questions/approvals.ts';
