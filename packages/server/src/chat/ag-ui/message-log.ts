import type { AgUiEvent, AgUiMessage } from './ag-ui-messages.ts';

type ToolCall = NonNullable<Extract<AgUiMessage, { role: 'assistant' }>['toolCalls']>[number];

interface LoggedMessage {
  readonly id: string;
  readonly role: 'assistant' | 'reasoning' | 'user' | 'tool';
  content: string;
  readonly toolCalls: ToolCall[];
  readonly toolCallId?: string;
}

/** The messages of a thread as a reader has them, so that the output of a step can be withdrawn. */
export class MessageLog {
  readonly #before: readonly AgUiMessage[];
  #made: LoggedMessage[] = [];
  #stepFrom = 0;

  constructor(before: readonly AgUiMessage[]) {
    this.#before = before;
  }

  startStep(): void {
    this.#stepFrom = this.#made.length;
  }

  /** Withdraws the output of the current step. Returns the event with the remaining messages. */
  reset(): AgUiEvent {
    this.#made = this.#made.slice(0, this.#stepFrom);
    return { type: 'MESSAGES_SNAPSHOT', messages: [...this.#before, ...this.#made.map(toMessage)] };
  }

  say(id: string, role: LoggedMessage['role']): void {
    this.#made.push({ id, role, content: '', toolCalls: [] });
  }

  add(id: string, words: string): void {
    this.#made.findLast((message) => message.id === id)!.content += words;
  }

  /** Adds a call to the output of the current step, or to a new message. Returns the id of the message. */
  call(toolCallId: string, name: string, newId: string): string {
    const last = this.#made.slice(this.#stepFrom).at(-1);
    if (last?.role !== 'assistant') this.say(newId, 'assistant');
    const message = this.#made.at(-1)!;
    message.toolCalls.push({ id: toolCallId, type: 'function', function: { name, arguments: '' } });
    return message.id;
  }

  hasCall(toolCallId: string): boolean {
    return this.#findCall(toolCallId) !== undefined;
  }

  addInput(toolCallId: string, text: string): void {
    this.#findCall(toolCallId)!.function.arguments += text;
  }

  answer(id: string, toolCallId: string, content: string): void {
    this.#made.push({ id, role: 'tool', content, toolCalls: [], toolCallId });
  }

  #findCall(toolCallId: string): ToolCall | undefined {
    return this.#made.flatMap(({ toolCalls }) => toolCalls).find(({ id }) => id === toolCallId);
  }
}

function toMessage({ content, toolCalls, ...message }: LoggedMessage): AgUiMessage {
  const hasContent = content !== '' || message.role !== 'assistant';
  const parts = {
    ...(hasContent && { content }),
    ...(toolCalls.length > 0 && { toolCalls: structuredClone(toolCalls) }),
  };
  return { ...message, ...parts } as AgUiMessage;
}
