import { type CallResult, type Content, type Message, type RunEvent, textOf } from '@whoa/core';
import type { AssistantMessage, UserMessage } from '@whoa/core/embed';

type AssistantPart = AssistantMessage['content'][number];

const LOST = 'Outcome unknown: the agent ended while this was running. It may have taken effect.';

interface OpenCall {
  readonly tool: string;
  isStarted: boolean;
  /** What it has shown so far. */
  shown?: Content;
}

/**
 * The history of a turn as it grows, from what the run tells. At every moment `ifEndedNow` is a valid history: should the
 * process die, it is what the next one finds.
 */
export class Journal {
  #messages: Message[];
  readonly #open = new Map<string, OpenCall>();
  #words: AssistantPart[] = [];

  constructor(history: readonly Message[], input: Content) {
    const said: UserMessage = { role: 'user', content: input };
    this.#messages = [...history, said];
  }

  /** How many messages there are; names the next one. */
  get length(): number {
    return this.#messages.length;
  }

  /** What has been said and done so far; calls that are under way have no result. */
  get soFar(): readonly Message[] {
    return this.#words.length === 0 ? this.#messages : [...this.#messages, cutOff(this.#words)];
  }

  hear(event: RunEvent): void {
    switch (event.type) {
      case 'turn-start':
        this.#words = [];
        break;
      case 'text':
      case 'thinking':
        this.#addWords(event.type, event.text);
        break;
      case 'turn-end':
        this.#addReply(event.message);
        break;
      case 'call-start': {
        const call = this.#open.get(event.callId);
        if (call !== undefined) call.isStarted = true;
        break;
      }
      case 'call-update': {
        const call = this.#open.get(event.callId);
        if (call !== undefined) call.shown = event.partial.content;
        break;
      }
      case 'call-end':
        if (this.#open.delete(event.result.callId)) this.#messages.push({ role: 'tool', ...event.result });
        break;
      case 'steer-delivered':
        this.#messages.push(event.message);
        break;
      default:
        break;
    }
  }

  /** The history if everything stopped at this moment and nobody could say how. */
  ifEndedNow(at: number): readonly Message[] {
    const ends = [...this.#open].map(([callId, call]): Message => ({ role: 'tool', ...lostCall(callId, call, at) }));
    return [...this.soFar, ...ends];
  }

  #addWords(type: 'text' | 'thinking', text: string): void {
    const last = this.#words.at(-1);
    if (last?.type === type) this.#words[this.#words.length - 1] = { type, text: last.text + text };
    else this.#words.push({ type, text });
  }

  #addReply(message: AssistantMessage): void {
    this.#words = [];
    if (message.content.length === 0) return;
    this.#messages.push(message);
    for (const part of message.content) {
      if (part.type === 'call') this.#open.set(part.callId, { tool: part.tool, isStarted: false });
    }
  }
}

function cutOff(content: readonly AssistantPart[]): AssistantMessage {
  return { role: 'assistant', content, stopReason: 'aborted' };
}

function lostCall(callId: string, { tool, isStarted, shown }: OpenCall, at: number): CallResult {
  const reason = { kind: 'shutdown', message: 'the agent ended in the middle', via: 'journal', at };
  const about = { callId, tool, isError: true, endedAt: at, reason };
  return isStarted
    ? {
        ...about,
        state: 'unknown',
        content: [LOST, ...(shown === undefined ? [] : ['So far it had shown:', textOf(shown)])].join('\n'),
      }
    : { ...about, state: 'not-started', content: 'Not started: the agent ended before. It had no effect.' };
}
