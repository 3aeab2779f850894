export type { FollowTaskOptions } from './follow.ts';
export { TaskApiError } from './task-api-error.ts';
export {
  type ApproveReceipt,
  type CancelManyOptions,
  type CancelTaskOptions,
  type ConversationView,
  createTaskClient,
  type NewTaskRequest,
  type StoppedTask,
  type TaskClient,
  type TaskClientOptions,
} from './task-client.ts';
