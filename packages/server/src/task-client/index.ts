export type { FollowTaskOptions } from './follow.ts';
export { TaskApiError } from './task-api-error.ts';
export {
  type CancelManyOptions,
  type CancelTaskOptions,
  type ConversationView,
  createTaskClient,
  type NewTaskRequest,
  type QuestionAnswer,
  type StoppedTask,
  type TaskClient,
  type TaskClientOptions,
} from './task-client.ts';
