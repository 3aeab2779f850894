import type { Client } from '@modelcontextprotocol/client';
import type { Answer, Conversation, Turn } from '../../adapter.ts';
import { within } from '../../clock.ts';
import { TurnLog } from '../../turn-log.ts';
import { describeError } from '../describe-error.ts';
import type { PieceWriter } from '../frames.ts';
import { answerTask, cancelTask, classifyTask, endOfCall, findTaskId, getTask, type McpTask } from './tasks.ts';

/** What is called. */
export interface CallTarget {
  readonly client: Client;
  readonly hasTasks: boolean;
  readonly tool: string;
  readonly argumentsFor: (prompt: string) => Record<string, unknown>;
  readonly writer: PieceWriter | undefined;
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
export function createConversation(target: CallTarget): Conversation {
  const { client, writer } = target;
  let last: ToolCall | undefined;
  const start = (prompt: string): Turn => (last = new ToolCall(target, prompt));
  const startWithCancel: Conversation['startWithCancel'] =
    writer &&
    ((prompt, order) => {
      writer.joinNextTwo(order === 'prompt-first' ? () => last?.abort() : undefined);
      if (order === 'cancel-first') cancelUnknownRequest(client).catch(() => {});
      return start(prompt);
    });
  return {
    start,
    cancel: async () => last?.cancel(),
    ...(startWithCancel && { startWithCancel }),
  };
}

export async function cancelUnknownRequest(client: Client): Promise<void> {
  await client.notification({ method: 'notifications/cancelled', params: { requestId: 'no-such-request' } });
}

/** One call, and the task that it became. */
class ToolCall extends TurnLog {
  readonly #target: CallTarget;
  readonly #abort = new AbortController();
  readonly #asked = new Set<string>();

  constructor(target: CallTarget, prompt: string) {
    super();
    this.#target = target;
    this.#run(prompt).catch((error: Error) => this.#fail(error));
  }

  /** Cancels the task, or the request if it is none. */
  async cancel(): Promise<void> {
    const { hasTasks, client } = this.#target;
    if (!hasTasks) return this.abort();
    await within(HANDLE_MS, Promise.race([this.id(), this.ended]));
    const id = await Promise.race([this.id(), Promise.resolve(undefined)]).catch(() => undefined);
    if (id === undefined) this.abort();
    else await cancelTask(client, id);
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
      this.named.reject(new Error('the call did not become a task'));
      this.record({ what: 'end', end: endOfCall(result) });
      return;
    }
    this.named.resolve(taskId);
    await this.#follow(taskId);
  }

  async #follow(taskId: string): Promise<void> {
    const { client, closing } = this.#target;
    while (!closing.aborted) {
      const task = await getTask(client, taskId);
      const end = classifyTask(task);
      if (end !== 'running') return this.record({ what: 'end', end });
      this.#ask(taskId, task);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    this.end('gone', 'the connection was closed');
  }

  #ask(taskId: string, { inputRequests = {} }: McpTask): void {
    const { client, questions } = this.#target;
    for (const key of Object.keys(inputRequests)) {
      if (this.#asked.has(key)) continue;
      this.#asked.add(key);
      const answer = (chosen: Answer): void => {
        const response = chosen === 'allow' ? { action: 'accept', content: {} } : { action: 'cancel' };
        // A task that was cancelled meanwhile refuses the answer, and should.
        answerTask(client, taskId, { [key]: response }).catch(() => {});
      };
      this.record({ what: 'question', answer, isWithdrawn: () => false });
      if (questions.mode === 'allow') answer('allow');
    }
  }

  #fail(error: Error): void {
    const { closing, hasTasks } = this.#target;
    this.named.reject(error);
    if (!this.#abort.signal.aborted) this.end(closing.aborted ? 'gone' : 'error', describeError(error));
    else if (hasTasks) this.end('cancelled', 'the request was cancelled before it became a task');
    else this.end('gone', 'the request was cancelled, and has no answer');
  }
}
