import type { TaskClient } from '@whoa/server/task-client';
import type { TaskRecord } from '@whoa/tasks';
import type { Me } from '../api/session.ts';

/** What a call on the page needs to know of its task. */
export interface CallContext {
  readonly task: TaskRecord;
  readonly client: TaskClient;
  readonly me: Me;
  readonly now: number;
}
