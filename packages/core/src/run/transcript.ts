import { isList, unexpected } from '../stop/settings.ts';
import type { CallResult } from '../tool/result.ts';
import { readMessage } from './given-messages.ts';
import {
  type AssistantMessage,
  addUsage,
  type Message,
  NO_USAGE,
  recordMessage,
  toolMessage,
  type Usage,
  type UserMessage,
  wordsOf,
} from './message.ts';

/** The history of one run as it grows. After every method every call has at most one result, and `close` makes it one. */
export class Transcript {
  #messages: Message[] = [];
  readonly #calls: CallResult[] = [];
  readonly #open = new Map<string, string>();
  readonly #onUsage: ((usage: Usage) => void) | undefined;
  #usage: Usage = NO_USAGE;
  #text = '';

  constructor(onUsage?: (usage: Usage) => void) {
    this.#onUsage = onUsage;
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

  /** Takes over what was said before. Throws `SettingsError` if that is no history. */
  begin(history: readonly Message[], input: UserMessage): void {
    this.replace(history);
    this.addUser(input);
  }

  addUser(message: UserMessage): void {
    this.#messages.push(recordMessage(message));
  }

  /** Returns the message as it stands in the record. */
  addReply(reply: AssistantMessage): AssistantMessage {
    const message = recordMessage(reply);
    if (message.usage) this.addUsage(message.usage);
    this.#text = wordsOf(message);
    // A reply that was cut before its first word leaves nothing that a provider would accept.
    if (message.content.length === 0) return message;
    this.#messages.push(message);
    for (const part of message.content) if (part.type === 'call') this.#open.set(part.callId, part.tool);
    return message;
  }

  addUsage(usage: Usage): void {
    this.#usage = addUsage(this.#usage, usage);
    this.#onUsage?.(usage);
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
    if (!isList(messages)) throw unexpected('history', messages, 'a list of messages');
    this.#messages = messages.map((message, index) => readMessage(message, `history[${index}]`));
  }
}
