// `subscriptions/listen` for tasks. The library serves the request without them, because they are an extension.
import type { JSONRPCNotification, JSONRPCResponse, RequestId, Result } from '@modelcontextprotocol/server';
import type { TaskRecord, TaskStore } from '@whoa/tasks';
import { fieldsOf, type McpCaller, MISSING_TASKS, readAbilities } from '../host.ts';
import { describeTask } from '../task-state.ts';
import { TaskChanges } from './task-changes.ts';

export const LISTEN = 'subscriptions/listen';
export const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
export const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';
const MISSING_CAPABILITY = -32_021;
/** How many tasks one request can listen to. The acknowledgement names those that it does. */
const MAX_TASKS = 100;

/** A request to listen to tasks. */
export interface ListenRequest {
  readonly id: RequestId;
  readonly taskIds: readonly string[];
  readonly hasTasks: boolean;
  readonly canAsk: boolean;
}

/** Reads a request to listen to tasks from a message; `undefined` if it is another message. */
export function readListenRequest(message: unknown): ListenRequest | undefined {
  const { id, method, params } = fieldsOf(message);
  const { notifications, _meta } = fieldsOf(params);
  const { taskIds } = fieldsOf(notifications);
  if (method !== LISTEN || (typeof id !== 'string' && typeof id !== 'number')) return undefined;
  if (!Array.isArray(taskIds) || !taskIds.every((one) => typeof one === 'string')) return undefined;
  return { id, taskIds, ...readAbilities(_meta) };
}

/** The response to a host that listens to tasks without declaring that it knows them. */
export function refuseListening({ id }: ListenRequest): JSONRPCResponse {
  const message = 'Missing required client capability';
  return { jsonrpc: '2.0', id, error: { code: MISSING_CAPABILITY, message, data: MISSING_TASKS } };
}

export interface ListenParts {
  readonly store: TaskStore;
  readonly caller: McpCaller;
  readonly onError: (error: unknown) => void;
}

/** What one request listens to, as messages. */
export interface TaskListening {
  readonly acknowledgement: JSONRPCNotification;
  /** Ends when all tasks have ended, or by its `return`. */
  readonly changes: AsyncIterator<JSONRPCNotification, undefined>;
  /** Sent after the last change. */
  readonly end: JSONRPCResponse;
}

/** Listens to the tasks of a request that its caller may see. The others are not acknowledged. */
export async function listenToTasks(request: ListenRequest, parts: ListenParts): Promise<TaskListening> {
  const { store, caller, onError } = parts;
  const tasks = await findTasks(request, parts);
  const canAnswer = caller.mayApprove && request.canAsk;
  const states = new TaskChanges(tasks, { store, onError, describe: (ref) => describeTask(store, ref, { canAnswer }) });
  const _meta = { [SUBSCRIPTION]: request.id };
  const notify = (method: string, params: Result): JSONRPCNotification => ({
    jsonrpc: '2.0',
    method,
    params: { ...params, _meta },
  });
  return {
    acknowledgement: notify(ACKNOWLEDGED, { notifications: { taskIds: tasks.map(({ id }) => id) } }),
    changes: {
      async next() {
        const { value } = await states.next();
        if (value === undefined) return { value, done: true };
        return { value: notify('notifications/tasks', value), done: false };
      },
      async return() {
        await states.return();
        return { value: undefined, done: true };
      },
    },
    end: { jsonrpc: '2.0', id: request.id, result: { resultType: 'complete', _meta } },
  };
}

async function findTasks({ taskIds }: ListenRequest, { store, caller }: ListenParts): Promise<TaskRecord[]> {
  const ids = [...new Set(taskIds)].slice(0, MAX_TASKS);
  const found = await Promise.all(ids.map((id) => store.get({ tenant: caller.tenant, id })));
  return found.filter((task) => task !== undefined);
}
