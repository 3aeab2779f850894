import type { Client } from '@modelcontextprotocol/client';
import type { Answer, Conversation, Turn } from '../../adapter.ts';
import { within } from '../../clock.ts';
import { TurnLog } from '../../turn-log.ts';
import { describeError } from '../describe-error.ts';
import type { PieceTransport } from './stdio-transport.ts';
import { classifyTask, endOfCall, findTaskId, type McpTask, TaskRequests } from './tasks.ts';

/** What is called. */
export interface CallTarget {
  readonly client: Client;
  readonly hasTasks: boolean;
  readonly tool: string;
  readonly argumentsFor: (prompt: string) => Record<string, unknown>;
  readonly pieces?: PieceTransport;
  readonly questions: { readonly mode: 'allow' | 'by-check' };
  /** Aborts when the connection is closed. */
  readonly closing: AbortSignal;
}

/** Longer than any turn: the kit has its own limits. */
const CALL_MS = 2_000_000_000;
/** A server that makes a call a task reports it within this time. */
const HANDLE_MS = 2_000;
const POLL_MS = 40;

/** Calls of one tool. They know nothing of each other. */
export class McpConversation implements Conversation {
  readonly #target: CallTarget;
  #last: ToolCall | undefined;
  readonly startWithCancel?: NonNullable<Conversation['startWithCancel']>;

  constructor(target: CallTarget) {
    this.#target = target;
    const { pieces } = target;
    if (pieces !== undefined) this.startWithCancel = (prompt, order) => this.#startInOnePiece(prompt, order, pieces);
  }

  start(prompt: string): Turn {
    const call = new ToolCall(this.#target, prompt);
    this.#last = call;
    return call.log;
  }

  async cancel(): Promise<void> {
    await this.#last?.cancel();
  }

  #startInOnePiece(prompt: string, order: 'prompt-first' | 'cancel-first', pieces: PieceTransport): Turn {
    if (order === 'prompt-first') {
      pieces.joinNextTwo(() => this.#last?.abort());
      return this.start(prompt);
    }
    pieces.joinNextTwo();
    const params = { requestId: 'no-such-request' };
    this.#target.client.notification({ method: 'notifications/cancelled', params }).catch(() => {});
    return this.start(prompt);
  }
}

/** One call, and the task that it became. */
class ToolCall {
  readonly log: TurnLog & { id: () => Promise<string> };
  readonly #target: CallTarget;
  readonly #tasks: TaskRequests;
  readonly #abort = new AbortController();
  readonly #taskId = Promise.withResolvers<string>();
  readonly #asked = new Set<string>();

  constructor(target: CallTarget, prompt: string) {
    this.#target = target;
    this.#tasks = new TaskRequests(target.client);
    this.#taskId.promise.catch(() => {});
    this.log = Object.assign(new TurnLog(), { id: () => this.#taskId.promise });
    this.#run(prompt).catch((error: Error) => this.#fail(error));
  }

  /** Cancels the task, or the request if it is none. */
  async cancel(): Promise<void> {
    if (!this.#target.hasTasks) return this.abort();
    await within(HANDLE_MS, Promise.race([this.#taskId.promise, this.log.ended]));
    const id = await Promise.race([this.#taskId.promise, Promise.resolve(undefined)]).catch(() => undefined);
    if (id === undefined) this.abort();
    else await this.#tasks.cancel(id);
  }

  /** Cancels the request, as the official client does it on this transport. */
  abort(): void {
    this.#abort.abort();
  }

  async #run(prompt: string): Promise<void> {
    const { client, tool, argumentsFor } = this.#target;
    const { signal } = this.#abort;
    const call = { name: tool, arguments: argumentsFor(prompt) };
    const result = await client.callTool(call, { signal, timeout: CALL_MS });
    const taskId = findTaskId(result);
    if (taskId === undefined) {
      this.#taskId.reject(new Error('the call did not become a task'));
      this.log.record({ what: 'end', end: endOfCall(result) });
      return;
    }
    this.#taskId.resolve(taskId);
    await this.#follow(taskId);
  }

  async #follow(taskId: string): Promise<void> {
    const { closing } = this.#target;
    while (!closing.aborted) {
      const task = await this.#tasks.get(taskId);
      const end = classifyTask(task);
      if (end !== 'running') return this.log.record({ what: 'end', end });
      this.#ask(taskId, task);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    this.log.end('gone', 'the connection was closed');
  }

  #ask(taskId: string, { inputRequests = {} }: McpTask): void {
    for (const key of Object.keys(inputRequests)) {
      if (this.#asked.has(key)) continue;
      this.#asked.add(key);
      const answer = (chosen: Answer): void => {
        const response = chosen === 'allow' ? { action: 'accept', content: {} } : { action: 'cancel' };
        // A task that was cancelled meanwhile refuses the answer, and should.
        this.#tasks.answer(taskId, { [key]: response }).catch(() => {});
      };
      const { mode } = this.#target.questions;
      this.log.record({ what: 'question', answer, isWithdrawn: () => false });
      if (mode === 'allow') answer('allow');
    }
  }

  #fail(error: Error): void {
    this.#taskId.reject(error);
    if (!this.#abort.signal.aborted) {
      const { closing } = this.#target;
      this.log.end(closing.aborted ? 'gone' : 'error', describeError(error));
    } else if (this.#target.hasTasks) this.log.end('cancelled', 'the request was cancelled before it became a task');
    else this.log.end('gone', 'the request was cancelled, and has no answer');
  }
}
