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
      /** Our own id: unique in its run, and safe for every provider. */
      readonly callId: string;
      /** The provider's id, where it differs. */
      readonly providerId?: string;
      readonly tool: string;
      readonly input: unknown;
      /** The calls of this reply that must have succeeded before it starts, if its planner requires it. */
      readonly dependsOn?: readonly string[];
    };

/** Model tokens, as the provider reported them. `isComplete: false`: a reply was cut off, so there may be more. */
export interface Usage {
  readonly inputTokens: number;
  /** How many of the input tokens the provider read from its cache. */
  readonly cachedInputTokens?: number;
  readonly outputTokens: number;
  readonly isComplete: boolean;
}

/** A user's message. */
export interface UserMessage {
  readonly role: 'user';
  /** The sender's own id for it. Never sent to a model. */
  readonly id?: string;
  /** The runtime wrote it to tell the model what happened. It is not shown as a person's words. */
  readonly isNotice?: true;
  readonly content: Content;
}

/** What created a reply, if the provider adapter knows it. For users and logs; never sent to a model. */
export interface ReplySource {
  readonly provider?: string;
  /** Which of the provider's APIs replied. */
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

/** The input of an agent, from a user or a program. */
export type RunInput = Content | UserMessage;

export function toolMessage(result: CallResult): ToolMessage {
  return recorded({ role: 'tool', ...result });
}

// Messages that are known to be deeply frozen, so that a long history is not copied again by every run.
const frozenMessages = new WeakSet<Message>();

export function isRecorded(value: object): boolean {
  return frozenMessages.has(value as Message);
}

/** Returns the message to record: a frozen copy that shares nothing with the original. */
export function recordMessage<Kind extends Message>(message: Kind): Kind {
  if (frozenMessages.has(message)) return message;
  if (message.role !== 'assistant') return recorded(cloneJson(message) as unknown as Kind);
  const content = Object.freeze(message.content.map(recordPart));
  return recorded({ ...message, content, ...(message.usage && { usage: { ...message.usage } }) });
}

function recordPart(part: AssistantPart): AssistantPart {
  return Object.freeze(part.type === 'call' ? { ...part, input: copyJson(part.input) } : { ...part });
}

/** Freezes a message that shares nothing with other objects, so that it can be recorded. */
export function recorded<Kind extends Message>(message: Kind): Kind {
  frozenMessages.add(deepFreeze(message));
  return message;
}

/**
 * Returns the text of an assistant message.
 *
 * @returns The text, without thinking and calls.
 */
export function toReplyText({ content }: Pick<AssistantMessage, 'content'>): string {
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** The usage before the first reply. */
export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0, isComplete: true };

/**
 * Adds two usages. The sum is complete only if both are.
 *
 * @returns The sum.
 */
export function addUsage(a: Usage, b: Usage): Usage {
  const cachedInputTokens = (a.cachedInputTokens ?? 0) + (b.cachedInputTokens ?? 0);
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    ...(cachedInputTokens > 0 && { cachedInputTokens }),
    outputTokens: a.outputTokens + b.outputTokens,
    isComplete: a.isComplete && b.isComplete,
  };
}
