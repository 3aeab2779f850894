import type { CallResult } from '../tool/result.ts';
import {
  type AssistantMessage,
  addUsage,
  type Message,
  NO_USAGE,
  toolMessage,
  type Usage,
  wordsOf,
} from './message.ts';

/** The history of one run as it grows. After every method every call has at most one result, and `close` makes it one. */
export class Transcript {
  #messages: Message[];
  readonly #calls: CallResult[] = [];
  readonly #open = new Map<string, string>();
  #usage: Usage = NO_USAGE;
  #text = '';

  constructor(history: readonly Message[]) {
    this.#messages = [...history];
  }

  get messages(): readonly Message[] {
    return this.#messages;
  }

  get calls(): readonly CallResult[] {
    return this.#calls;
  }

  get usage(): Usage {
    return this.#usage;
  }

  /** The words of the last reply. */
  get text(): string {
    return this.#text;
  }

  addUser(message: Message): void {
    this.#messages.push(message);
  }

  addReply(message: AssistantMessage): void {
    if (message.usage) this.#usage = addUsage(this.#usage, message.usage);
    // A reply that was cut before its first word leaves nothing that a provider would accept.
    if (message.content.length === 0) return;
    this.#messages.push(message);
    this.#text = wordsOf(message);
    for (const part of message.content) if (part.type === 'call') this.#open.set(part.callId, part.tool);
  }

  addResult(result: CallResult): void {
    if (!this.#open.delete(result.callId)) return;
    this.#calls.push(result);
    this.#messages.push(toolMessage(result));
  }

  /** Gives every call that still has no result one that says it was not started. */
  close(explain: (call: { id: string; tool: string }) => CallResult): void {
    for (const [id, tool] of this.#open) this.addResult(explain({ id, tool }));
  }

  replace(messages: readonly Message[]): void {
    this.#messages = [...messages];
  }
}
