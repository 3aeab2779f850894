// A task as MCP describes it.
import type { Result } from '@modelcontextprotocol/server';
import { isFinalStatus, type TaskRecord, type TaskRef, type TaskStore } from '@whoa/tasks';
import { readOpenQuestions } from '../tasks/read-questions.ts';
import { toInputRequests } from './task-questions.ts';

const POLL_MS = 1_000;
const MAX_STATUS_CHARS = 1_000;

/** Describes a task as `tasks/get` does. Its questions are shown only to a caller that can answer them. */
export async function describeTask(
  store: TaskStore,
  ref: TaskRef,
  { canAnswer }: { readonly canAnswer: boolean },
): Promise<Result | undefined> {
  const task = await store.get(ref);
  if (task === undefined) return undefined;
  const asked = canAnswer ? await readOpenQuestions(store, task) : [];
  const questions = asked.filter(({ kind }) => kind !== 'client');
  if (questions.length === 0) return { ...describeHandle(task), ...toMcpStatus(task) };
  return { ...describeHandle(task), status: 'input_required', inputRequests: toInputRequests(questions) };
}

/** Describes a task without its result and its questions, as the response to the call that created it. */
export function describeHandle(task: TaskRecord): Result {
  const { id, createdAt, startedAt = createdAt, endedAt = startedAt } = task;
  const statusMessage = messageFor(task);
  return {
    taskId: id,
    status: toMcpStatus(task).status,
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(endedAt).toISOString(),
    ttlMs: null,
    pollIntervalMs: POLL_MS,
    ...(statusMessage !== undefined && { statusMessage: statusMessage.slice(0, MAX_STATUS_CHARS) }),
  };
}

/** `failed` means an error of the protocol, so an agent that failed has completed, with an error as its result. */
function toMcpStatus(task: TaskRecord): { readonly status: string; readonly result?: Result } {
  if (!isFinalStatus(task.status)) return { status: 'working' };
  if (task.status === 'cancelled') return { status: 'cancelled' };
  // A result inside another one says itself of which type it is.
  return { status: 'completed', result: { resultType: 'complete', ...toMcpResult(task) } };
}

function messageFor({ status, waiting = 0, outcome, id }: TaskRecord): string | undefined {
  if (status === 'init') return 'waits for a worker';
  if (status === 'cancelling') return 'is being stopped';
  if (status === 'cancelled') return `cancelled (${outcome?.reason?.kind ?? 'user'}). ${outcome?.answer ?? ''}`.trim();
  if (status !== 'running') return undefined;
  return waiting > 0 ? `waits for an answer: whoa approve ${id}` : 'runs';
}

/** Returns the result of the call that created a task. */
export function toMcpResult({ status, outcome }: TaskRecord): Result {
  const text = status === 'failed' ? (outcome?.error?.message ?? 'It failed') : (outcome?.answer ?? '');
  const words = status === 'cancelled' ? `Cancelled (${outcome?.reason?.kind ?? 'user'}).\n${text}`.trim() : text;
  return { content: [{ type: 'text', text: words }], ...(status !== 'success' && { isError: true }) };
}
