// MCP tasks, extension `io.modelcontextprotocol/tasks` of the 2026-07-28 protocol: what we read of its messages.
import type { CallToolResult, JSONRPCMessage } from '@modelcontextprotocol/client';
import { z } from 'zod';

export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

const MAX_ID_CHARS = 1_000;
const common = {
  taskId: z.string().min(1).max(MAX_ID_CHARS),
  statusMessage: z.string().optional(),
  pollIntervalMs: z.number().nonnegative().optional(),
};
const status = z.enum(['working', 'input_required', 'completed', 'failed', 'cancelled']);
const createdTask: z.ZodType<CreatedTask> = z.object({ ...common, status });

interface TaskCommon {
  readonly taskId: string;
  readonly statusMessage?: string | undefined;
  readonly pollIntervalMs?: number | undefined;
}

/** The response to a call that became a task. */
export interface CreatedTask extends TaskCommon {
  readonly status: ServerTask['status'];
}

/** What a task asks of its caller. */
export interface InputRequest {
  readonly method: string;
  readonly params?: Record<string, unknown> | undefined;
}

export interface AskingTask extends TaskCommon {
  readonly status: 'input_required';
  readonly inputRequests: Readonly<Record<string, InputRequest>>;
}

/** A task as `tasks/get` describes it. */
export type ServerTask =
  | AskingTask
  | (TaskCommon &
      (
        | { readonly status: 'working' | 'cancelled' }
        | { readonly status: 'completed'; readonly result: Record<string, unknown> }
        | { readonly status: 'failed'; readonly error: { readonly message: string } }
      ));

const record = z.record(z.string(), z.unknown());
const inputRequests = z.record(z.string(), z.object({ method: z.string(), params: record.optional() }));

export const serverTask: z.ZodType<ServerTask> = z.discriminatedUnion('status', [
  z.object({ ...common, status: z.enum(['working', 'cancelled']) }),
  z.object({ ...common, status: z.literal('input_required'), inputRequests }),
  z.object({ ...common, status: z.literal('completed'), result: record }),
  z.object({ ...common, status: z.literal('failed'), error: z.object({ message: z.string() }) }),
]);

export const acknowledgement: z.ZodType<object> = z.looseObject({});

const TASK_KEY = 'whoa/task';

/**
 * Turns a task in a response into a result that carries it. The library refuses such a response without showing it, and
 * calls a transport's earlier `onmessage` first, with the message that it then reads.
 */
export function wrapTaskResponse(message: JSONRPCMessage): void {
  const response = message as { result?: { resultType?: unknown } };
  if (response.result?.resultType !== 'task') return;
  // An error needs no structured content, whatever the tool declares.
  const carrier = { content: [], isError: true, _meta: { [TASK_KEY]: response.result } };
  Object.assign(response, { result: { resultType: 'complete', ...carrier } });
}

/** Finds the task that a call became. `invalid` is one that cannot be followed. */
export function parseTask({ _meta }: CallToolResult): CreatedTask | 'invalid' | undefined {
  const carried = _meta?.[TASK_KEY];
  if (carried === undefined) return undefined;
  const { data } = createdTask.safeParse(carried);
  return data ?? 'invalid';
}
