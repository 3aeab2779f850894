import type { CallResult, Content } from '../../tool/result.ts';
import type { RunEvent } from '../report/events.ts';
import type { AssistantMessage, AssistantPart, Message, UserMessage } from './message.ts';

/** A call that has no result yet. */
export interface OpenCall {
  readonly callId: string;
  readonly tool: string;
  readonly input: unknown;
  readonly isStarted: boolean;
  /** Its partial result so far. */
  readonly shown?: Content;
}

/**
 * Builds a history from the events of a run. The only code that knows what each event adds, so that a run, a resumed
 * run and an editor's session have the same history. After every method each call has at most one result.
 */
export class HistoryBuilder {
  #messages: Message[];
  readonly #open = new Map<string, OpenCall>();
  readonly #results: CallResult[] = [];
  #partial: AssistantPart[] = [];

  constructor(messages: readonly Message[] = []) {
    this.#messages = [...messages];
  }

  /** The complete messages, without a reply that is still streaming. */
  get messages(): readonly Message[] {
    return this.#messages;
  }

  /** Results of calls, in the order in which they arrived. */
  get results(): readonly CallResult[] {
    return this.#results;
  }

  get openCalls(): Iterable<OpenCall> {
    return this.#open.values();
  }

  isOpen(callId: string): boolean {
    return this.#open.has(callId);
  }

  /** The parts so far of a reply that is still streaming. */
  get partial(): readonly AssistantPart[] {
    return this.#partial;
  }

  /** Applies an event of a run. Events that add nothing to a history are ignored. */
  apply(event: RunEvent): void {
    switch (event.type) {
      case 'run-start':
        if (event.input !== undefined) this.addUser(event.input);
        break;
      case 'history-compacted':
        this.replace(event.messages);
        break;
      case 'steer-delivered':
        this.addUser(event.message);
        break;
      case 'turn-start':
        this.dropPartial();
        break;
      case 'text':
      case 'thinking':
        this.#addPart(event.type, event.text);
        break;
      case 'turn-end':
        this.addReply(event.message);
        break;
      case 'call-start':
        this.startCall(event.callId);
        break;
      case 'call-update':
        this.#change(event.callId, { shown: event.partial.content });
        break;
      case 'call-end':
        this.addResult(event.result);
        break;
      default:
    }
  }

  addUser(message: UserMessage): void {
    this.#messages.push(message);
  }

  addReply(message: AssistantMessage): void {
    this.dropPartial();
    // A reply that was cut before its first word leaves nothing that a provider would accept.
    if (message.content.length === 0) return;
    this.#messages.push(message);
    for (const part of message.content) if (part.type === 'call') this.openCall(part);
  }

  /** Notes that a call in the history has no result yet. */
  openCall({ callId, tool, input }: Pick<OpenCall, 'callId' | 'tool' | 'input'>): void {
    this.#open.set(callId, { callId, tool, input, isStarted: false });
  }

  startCall(callId: string): void {
    this.#change(callId, { isStarted: true });
  }

  /** Adds the result of an open call. A result of any other call is ignored. */
  addResult(result: CallResult, message: Message = { role: 'tool', ...result }): void {
    if (!this.#open.delete(result.callId)) return;
    this.#results.push(result);
    this.#messages.push(message);
  }

  replace(messages: readonly Message[]): void {
    this.#messages = [...messages];
  }

  dropPartial(): void {
    if (this.#partial.length > 0) this.#partial = [];
  }

  #change(callId: string, change: Partial<OpenCall>): void {
    const call = this.#open.get(callId);
    if (call !== undefined) this.#open.set(callId, { ...call, ...change });
  }

  #addPart(type: 'text' | 'thinking', text: string): void {
    const last = this.#partial.at(-1);
    if (last?.type === type) this.#partial[this.#partial.length - 1] = { type, text: last.text + text };
    else this.#partial.push({ type, text });
  }
}
