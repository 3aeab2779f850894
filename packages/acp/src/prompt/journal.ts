import { type CallResult, type Content, type Message, type RunEvent, toText } from '@whoa/core';
import type { AssistantMessage } from '@whoa/core/embed';
import { HistoryBuilder, type OpenCall } from '@whoa/core/internal';

type AssistantPart = AssistantMessage['content'][number];

const LOST = 'Outcome unknown: the agent ended while this was running. It may have taken effect.';

/**
 * The history of a turn as it grows, from what the run tells. At every moment `ifEndedNow` is a valid history: should the
 * process die, it is what the next one finds.
 */
export class Journal {
  /** The name of the input. */
  readonly inputId: string;
  readonly #history: HistoryBuilder;
  /** How many more messages have been named than there are: no name may be used again when the history becomes shorter. */
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

  /** How many messages have been named. */
  get named(): number {
    return this.#history.messages.length + this.#missing;
  }

  /** Messages are named by their place in the history, so a replay names them alike. */
  get nextId(): string {
    return `m${this.named}`;
  }

  /** What has been said and done so far; calls that are under way have no result. */
  get soFar(): readonly Message[] {
    const { messages, partial } = this.#history;
    return partial.length === 0 ? messages : [...messages, cutOff(partial)];
  }

  handle(event: RunEvent): void {
    // Its input is there from the beginning.
    if (event.type === 'run-start') return;
    const { named } = this;
    this.#history.apply(event);
    this.#missing += Math.max(0, named - this.named);
  }

  /** The history if everything stopped at this moment and nobody could say how. */
  ifEndedNow(at: number): readonly Message[] {
    const ends = [...this.#history.openCalls].map((call): Message => ({ role: 'tool', ...lostCall(call, at) }));
    return [...this.soFar, ...ends];
  }
}

function cutOff(content: readonly AssistantPart[]): AssistantMessage {
  return { role: 'assistant', content, stopReason: 'aborted' };
}

function lostCall({ callId, tool, isStarted, shown }: OpenCall, at: number): CallResult {
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
