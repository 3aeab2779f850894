import { type CallResult, type Content, type Message, type RunEvent, toText } from '@whoa/core';
import type { AssistantMessage } from '@whoa/core/internal';
import { HistoryBuilder, type OpenCall } from '@whoa/core/internal';

type AssistantPart = AssistantMessage['content'][number];

const LOST = 'Outcome unknown: the agent ended while this was running. It may have taken effect.';

/**
 * The growing history of a prompt, built from the events of its run. At every moment `snapshotAt` is a valid history:
 * if the process dies, the next one finds it.
 */
export class Journal {
  /** The message id of the input. */
  readonly inputId: string;
  readonly #history: HistoryBuilder;
  /** How many more ids have been used than there are messages: no id may be reused when the history becomes shorter. */
  #missing: number;

  constructor(
    history: readonly Message[],
    input: Content,
    { namedBefore = 0 }: { readonly namedBefore?: number } = {},
  ) {
    this.#history = new HistoryBuilder(history);
    this.#missing = Math.max(0, namedBefore - history.length);
    this.inputId = this.nextId;
    this.#history.addUser({ role: 'user', content: input });
  }

  /** How many message ids have been used. */
  get named(): number {
    return this.#history.messages.length + this.#missing;
  }

  /** A message's id is its position in the history, so a replay uses the same ids. */
  get nextId(): string {
    return `m${this.named}`;
  }

  /** The messages so far. Running calls have no result. */
  get soFar(): readonly Message[] {
    const { messages, partial } = this.#history;
    return partial.length === 0 ? messages : [...messages, cutOff(partial)];
  }

  handle(event: RunEvent): void {
    // The input is there from the start.
    if (event.type === 'run-start') return;
    const { named } = this;
    this.#history.apply(event);
    this.#missing += Math.max(0, named - this.named);
  }

  /** The history if everything stopped right now and the ends of running calls were unknown. */
  snapshotAt(at: number): readonly Message[] {
    const ends = [...this.#history.openCalls].map((call): Message => ({ role: 'tool', ...createLostResult(call, at) }));
    return [...this.soFar, ...ends];
  }
}

function cutOff(content: readonly AssistantPart[]): AssistantMessage {
  return { role: 'assistant', content, stopReason: 'aborted' };
}

function createLostResult({ callId, tool, isStarted, shown }: OpenCall, at: number): CallResult {
  const reason = { kind: 'shutdown', message: 'the agent ended in the middle', via: 'journal', at };
  const about = { callId, tool, isError: true, endedAt: at, reason };
  return isStarted
    ? {
        ...about,
        state: 'unknown',
        content: [LOST, ...(shown === undefined ? [] : ['So far it had shown:', toText(shown)])].join('\n'),
      }
    : { ...about, state: 'not-started', content: 'Not started: the agent ended before. It had no effect.' };
}
