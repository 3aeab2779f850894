import { isList, unexpected } from '../../stop/settings.ts';
import type { Call } from '../../tool/call/call.ts';
import type { CallResult } from '../../tool/result.ts';
import { readMessage } from './given-messages.ts';
import { HistoryBuilder } from './history-builder.ts';
import {
  type AssistantMessage,
  addUsage,
  type Message,
  NO_USAGE,
  recordMessage,
  toolMessage,
  toReplyText,
  type Usage,
  type UserMessage,
} from './message.ts';

/** The growing history of one run, in frozen messages, and its usage. `close` gives every call a result. */
export class Transcript {
  readonly #history = new HistoryBuilder();
  readonly #onUsage: ((usage: Usage) => void) | undefined;
  #usage: Usage = NO_USAGE;
  #text = '';
  #answers = '';

  constructor(onUsage?: (usage: Usage) => void) {
    this.#onUsage = onUsage;
  }

  get messages(): readonly Message[] {
    return this.#history.messages;
  }

  get calls(): readonly CallResult[] {
    return this.#history.results;
  }

  get usage(): Usage {
    return this.#usage;
  }

  /** The text of the last reply, after those that answered earlier messages. */
  get text(): string {
    return this.#text;
  }

  /**
   * Takes over the earlier messages and adds the input, or opens calls of the last reply that were not started. Throws
   * `SettingsError` if the messages are not a valid history.
   */
  begin(history: readonly Message[], next: UserMessage | readonly Call[]): void {
    this.replace(history);
    if ('role' in next) this.addUser(next);
    else for (const { id: callId, tool, input } of next) this.#history.openCall({ callId, tool, input });
  }

  addUser(message: UserMessage): void {
    this.#history.addUser(recordMessage(message));
  }

  addReply(reply: AssistantMessage): AssistantMessage {
    const message = recordMessage(reply);
    if (message.usage) this.addUsage(message.usage);
    this.#text = [this.#answers, toReplyText(message)].filter(Boolean).join('\n\n');
    // A reply without calls is an answer, even if a steering message follows it.
    if (!message.content.some(({ type }) => type === 'call')) this.#answers = this.#text;
    this.#history.addReply(message);
    return message;
  }

  addUsage(usage: Usage): void {
    this.#usage = addUsage(this.#usage, usage);
    this.#onUsage?.(usage);
  }

  addResult(result: CallResult): void {
    if (this.#history.isOpen(result.callId)) this.#history.addResult(result, toolMessage(result));
  }

  /** Gives every call that still has no result one that says it was not started. */
  close(describeStoppedCall: (call: { id: string; tool: string }) => CallResult): void {
    for (const { callId, tool } of this.#history.openCalls) this.addResult(describeStoppedCall({ id: callId, tool }));
  }

  replace(messages: readonly Message[], field = 'history'): void {
    if (!isList(messages)) throw unexpected(field, messages, 'a list of messages');
    this.#history.replace(messages.map((message, index) => readMessage(message, `${field}[${index}]`)));
  }
}
