import type { CallToolResult } from '@modelcontextprotocol/client';
import type { CancellationToken } from '@whoa/core';
import { type Clock, waitUntilLevel } from '@whoa/core/embed';
import { describeError } from '@whoa/core/internal';
import { LostAnswerError } from './lost-answer.ts';
import type { AskingTask, CreatedTask, ServerTask } from './server-task.ts';

const POLL_MS = 1_000;
const MIN_POLL_MS = 20;
const MAX_POLL_MS = 10_000;
/** How often the status of a stopping task is read. */
const STOP_POLL_MS = 100;
/** How long a task may take to stop. Usually the ladder ends the wait earlier. */
const MAX_STOP_MS = 60_000;
/** After this many failed questions in a row, a task counts as lost. */
const MAX_FAILURES = 3;

/** Thrown when the server confirmed that the task of a call was cancelled. */
export class TaskCancelledError extends Error {
  override readonly name: string = 'TaskCancelledError';
}

/** Thrown when the task of a call failed. */
export class TaskFailedError extends Error {
  override readonly name: string = 'TaskFailedError';
}

/** The requests about one task. */
export interface TaskRequests {
  /** Returns the task; `until` is the level that ends the request. */
  get(until: 'drain' | 'kill'): Promise<ServerTask>;
  /** Asks the server to cancel the task. */
  cancel(): Promise<void>;
  /** Answers what a task asks, and throws where it cannot be answered. */
  answer(task: AskingTask): Promise<void>;
  /** Whether to ask again after a failure. */
  canRetry(error: unknown): boolean;
  parseResult(result: unknown): CallToolResult;
}

export interface FollowOptions {
  /** The name of the server, for messages. */
  readonly name: string;
  readonly token: CancellationToken;
  readonly clock: Clock;
  /** Aborts when the connection is closed permanently. */
  readonly closing: AbortSignal;
  readonly onStatus: (message: string) => void;
}

/**
 * Follows the task that a call became to its end. A cancel is sent as `tasks/cancel`; then the server is asked how the task
 * ended, until it has ended or the token reaches `kill`.
 *
 * @throws {@link TaskCancelledError}, {@link TaskFailedError}, or {@link LostAnswerError} when its end is unknown.
 */
export async function followTask(
  created: CreatedTask,
  requests: TaskRequests,
  options: FollowOptions,
): Promise<CallToolResult> {
  const { token, onStatus } = options;
  let { pollIntervalMs } = created;
  let isFirst = created.status === 'working';
  let failures = 0;
  while (!token.isCancelled) {
    if (isFirst || failures > 0) await pause(toPollMs(pollIntervalMs), 'drain', options);
    if (token.isCancelled) break;
    isFirst = true;
    const task = await ask(requests, 'drain');
    if (token.isCancelled) break;
    if (task.status === 'lost') {
      if (++failures < MAX_FAILURES && requests.canRetry(task.error)) continue;
      throw await cancelRemoteTask(toLost(task.error, options), requests);
    }
    failures = 0;
    ({ pollIntervalMs } = task);
    if (task.statusMessage !== undefined) onStatus(task.statusMessage);
    if (task.status === 'input_required') {
      await requests.answer(task).catch(async (error: Error) => {
        throw await cancelRemoteTask(error, requests);
      });
    }
    if (task.status !== 'working' && task.status !== 'input_required') return toCallResult(task, requests, options);
  }
  return stopTask(requests, options);
}

type TaskResponse = ServerTask | { readonly status: 'lost'; readonly error: unknown };

function ask(requests: TaskRequests, until: 'drain' | 'kill'): Promise<TaskResponse> {
  return requests.get(until).catch((error: unknown) => ({ status: 'lost', error }));
}

/** Tells the server to stop, then asks until it says how the task ended. */
async function stopTask(requests: TaskRequests, options: FollowOptions): Promise<CallToolResult> {
  const { token, clock, name } = options;
  const limit = clock.now() + MAX_STOP_MS;
  let failures = 0;
  // A refusal proves nothing, for example because the task has just ended: ask the task.
  await requests.cancel().catch(() => undefined);
  while (token.level !== 'kill' && clock.now() < limit) {
    const task = await ask(requests, 'kill');
    if (task.status === 'lost') {
      if (++failures >= MAX_FAILURES || !requests.canRetry(task.error)) throw toLost(task.error, options);
    } else if (task.status !== 'working' && task.status !== 'input_required')
      return toCallResult(task, requests, options);
    else failures = 0;
    await pause(STOP_POLL_MS, 'kill', options);
  }
  throw new LostAnswerError(`The MCP server '${name}' was asked to cancel its task and did not confirm the end`);
}

function toCallResult(task: ServerTask, requests: TaskRequests, { name }: FollowOptions): CallToolResult {
  if (task.status === 'completed') return requests.parseResult(task.result);
  if (task.status === 'failed') throw new TaskFailedError(task.error.message);
  throw new TaskCancelledError(`The MCP server '${name}' cancelled the task`);
}

/** A task that is no longer followed must not continue unseen. */
async function cancelRemoteTask(error: Error, requests: TaskRequests): Promise<Error> {
  await requests.cancel().catch(() => undefined);
  return error;
}

function toLost(error: unknown, { name }: FollowOptions): LostAnswerError {
  if (error instanceof LostAnswerError) return error;
  const words = `The MCP server '${name}' could not say how its task ended (${describeError(error)})`;
  return new LostAnswerError(words, { cause: error });
}

function toPollMs(ms = POLL_MS): number {
  return Math.min(Math.max(ms, MIN_POLL_MS), MAX_POLL_MS);
}

/** Waits until the time has passed, the token reaches the level or the connection is closed. */
async function pause(ms: number, until: 'drain' | 'kill', { clock, token, closing }: FollowOptions): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const wake = (): void => resolve();
  const timer = clock.setTimer(ms, wake);
  closing.addEventListener('abort', wake, { once: true });
  if (closing.aborted) wake();
  await waitUntilLevel(promise, token, until);
  timer[Symbol.dispose]();
  closing.removeEventListener('abort', wake);
}
