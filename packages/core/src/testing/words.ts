import { type Message, toReplyText } from '../run/history/message.ts';
import type { RunEvent } from '../run/report/events.ts';

/** The text of each reply that users were shown, in order. */
export class Words {
  #shown: string[] = [];
  #reply = '';
  #isWhole = true;

  event(event: RunEvent): void {
    if (event.type === 'text') this.#reply += event.text;
    if (event.type === 'turn-start') this.#next();
    if (event.type === 'history-compacted') {
      this.#isWhole = false;
      this.#shown = [];
    }
  }

  /** False once the history was shortened: then it no longer holds the earlier messages. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /**
   * Returns the first reply that was shown but is missing from the messages, or is there with different text or in the
   * wrong place.
   */
  missingFrom(messages: readonly Message[]): string | undefined {
    this.#next();
    const replies = messages.flatMap((message) => (message.role === 'assistant' ? [toReplyText(message)] : []));
    let from = 0;
    for (const reply of this.#shown) {
      const at = replies.indexOf(reply, from);
      if (at === -1) return reply;
      from = at + 1;
    }
    return undefined;
  }

  #next(): void {
    if (this.#reply !== '') this.#shown.push(this.#reply);
    this.#reply = '';
  }
}

/** Finds what is not paired in a history: a call without its one result, or a result without its call. */
export function findUnpaired(messages: readonly Message[]): string | undefined {
  const open = new Map<string, number>();
  for (const message of messages) {
    if (message.role === 'assistant') {
      for (const part of message.content)
        if (part.type === 'call') open.set(part.callId, (open.get(part.callId) ?? 0) + 1);
    } else if (message.role === 'tool') {
      const left = open.get(message.callId) ?? 0;
      if (left === 0) return `a result of ${message.callId} without its call`;
      open.set(message.callId, left - 1);
    }
  }
  for (const [callId, left] of open) if (left > 0) return `no result of ${callId}`;
  return undefined;
}
