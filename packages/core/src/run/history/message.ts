import { cloneJson, copyJson, deepFreeze } from '../../tool/normalize.ts';
import type { CallResult, Content } from '../../tool/result.ts';

/** Why an assistant message ended. `aborted`: it was cut off by a cancel; the text so far is kept. */
export type StopReason = 'stop' | 'length' | 'tool-use' | 'error' | 'aborted';

export type AssistantPart =
  | { readonly type: 'text'; readonly text: string }
  /** Thinking is only replayed with its signature: providers refuse it without. */
  | { readonly type: 'thinking'; readonly text: string; readonly signature?: string }
  | {
      readonly type: 'call';
      /** Ours: unlike any other in its run, and safe for every provider. */
      readonly callId: string;
      /** The id it came with, where that is another. */
      readonly providerId?: string;
      readonly tool: string;
      readonly input: unknown;
    };

/** Model tokens, as the provider reported them. `complete: false`: a reply was cut off, so there may be more. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly complete: boolean;
}

/** What a person said. */
export interface UserMessage {
  readonly role: 'user';
  /** The sender's own name for it. No model is told. */
  readonly id?: string;
  readonly content: Content;
}

/** Who made a reply, as far as the adapter to its provider knows. For people and logs: no model is told. */
export interface ReplySource {
  readonly provider?: string;
  /** Which of the provider's APIs answered. */
  readonly api?: string;
  readonly model?: string;
}

/** One reply of a model: text, thinking and calls, with why it ended. */
export interface AssistantMessage extends ReplySource {
  readonly role: 'assistant';
  readonly content: readonly AssistantPart[];
  readonly stopReason: StopReason;
  readonly usage?: Usage;
}

/** The result of one call. Its `details` never reach a model. */
export interface ToolMessage extends CallResult {
  readonly role: 'tool';
}

/** One message of a history. It is plain JSON, so it can be stored. */
export type Message = UserMessage | AssistantMessage | ToolMessage;

/** What a person or a program says to an agent. */
export type RunInput = Content | UserMessage;

export function toolMessage(result: CallResult): ToolMessage {
  return recorded({ role: 'tool', ...result });
}

// Messages that are known to be frozen through and through: a long history is not copied again by every run.
const frozenMessages = new WeakSet<Message>();

export function isRecorded(value: object): boolean {
  return frozenMessages.has(value as Message);
}

/** The message as it enters a record: a frozen copy that shares nothing with what was handed in. */
export function recordMessage<Kind extends Message>(message: Kind): Kind {
  if (frozenMessages.has(message)) return message;
  if (message.role !== 'assistant') return recorded(cloneJson(message) as unknown as Kind);
  const content = message.content.map(recordPart);
  return recorded({
    ...message,
    content: Object.freeze(content),
    ...(message.usage && { usage: { ...message.usage } }),
  });
}

function recordPart(part: AssistantPart): AssistantPart {
  return Object.freeze(part.type === 'call' ? { ...part, input: copyJson(part.input) } : { ...part });
}

/** Freezes a message that shares nothing with anything else: it is in a record from now on. */
export function recorded<Kind extends Message>(message: Kind): Kind {
  frozenMessages.add(deepFreeze(message));
  return message;
}

/**
 * Reads the words of an assistant message.
 *
 * @returns The text, without thinking and calls.
 */
export function wordsOf({ content }: Pick<AssistantMessage, 'content'>): string {
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0, complete: true };

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    complete: a.complete && b.complete,
  };
}
