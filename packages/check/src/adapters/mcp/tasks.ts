// MCP tasks, extension `io.modelcontextprotocol/tasks` of the 2026-07-28 protocol: what the kit reads of them.
import type { CallToolResult, Client, JSONRPCMessage } from '@modelcontextprotocol/client';
import { z } from 'zod';
import type { TurnEnd } from '../../adapter.ts';

export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

const TASK_KEY = 'whoa-check/task';

const created = z.looseObject({ taskId: z.string().min(1) });
const task = z.looseObject({
  status: z.enum(['working', 'input_required', 'completed', 'failed', 'cancelled']),
  result: z.looseObject({ isError: z.boolean().optional() }).optional(),
  error: z.looseObject({ message: z.string() }).optional(),
  inputRequests: z.record(z.string(), z.unknown()).optional(),
});

/** A task as `tasks/get` describes it. */
export interface McpTask {
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';
  readonly result?: { readonly isError?: boolean | undefined } | undefined;
  readonly error?: { readonly message: string } | undefined;
  /** What it asks, each under a key. */
  readonly inputRequests?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Turns a task in a response into a result that carries it. The library refuses such a response without showing it, and
 * calls a transport's earlier `onmessage` first, with the message that it then reads.
 */
export function wrapTaskResponse(message: JSONRPCMessage): void {
  const response = message as { result?: { resultType?: unknown } };
  if (response.result?.resultType !== 'task') return;
  const carrier = { content: [], isError: true, _meta: { [TASK_KEY]: response.result } };
  Object.assign(response, { result: { resultType: 'complete', ...carrier } });
}

/** Returns the id of the task that a call became, if it did. */
export function findTaskId({ _meta }: CallToolResult): string | undefined {
  return created.safeParse(_meta?.[TASK_KEY]).data?.taskId;
}

export function getTask(client: Client, taskId: string): Promise<McpTask> {
  return client.request({ method: 'tasks/get', params: { taskId } }, task);
}

/** Cancels a task. Returns what the server said. */
export async function cancelTask(client: Client, taskId: string): Promise<string> {
  try {
    await client.request({ method: 'tasks/cancel', params: { taskId } }, z.looseObject({}));
    return 'the cancel was acknowledged';
  } catch (error) {
    const { code, message } = error as Error & { code?: unknown };
    return `the cancel was refused with ${String(code)}: ${message}`;
  }
}

/** Answers what a task asks, under the keys of its questions. */
export async function answerTask(client: Client, taskId: string, inputResponses: object): Promise<void> {
  await client.request({ method: 'tasks/update', params: { taskId, inputResponses } }, z.looseObject({}));
}

/** How a task stands. */
export function classifyTask({ status, result, error }: McpTask): TurnEnd | 'running' {
  if (status === 'working' || status === 'input_required') return 'running';
  if (status === 'cancelled') return { kind: 'cancelled', detail: 'the task is cancelled' };
  if (status === 'failed') return { kind: 'error', detail: `the task failed: ${error?.message ?? ''}` };
  return endOfCall(result ?? {});
}

/** How a call ended that has a result. */
export function endOfCall({ isError }: { readonly isError?: boolean | undefined }): TurnEnd {
  return isError === true
    ? { kind: 'error', detail: 'the result is an error' }
    : { kind: 'completed', detail: 'a result' };
}
