// Start here.
export { createTaskClient, type TaskClient } from './task-client.ts';
export { TaskApiError } from './task-api-error.ts';

// Requests and responses.
export type { CancelTaskOptions, ConversationView, QuestionAnswer, StoppedTask } from './task-client.ts';
