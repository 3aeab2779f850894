import type { CallResult, Content } from '../tool/result.ts';

/** Why an assistant message ended. `aborted`: it was cut off by a cancel; the text so far is kept. */
export type StopReason = 'stop' | 'length' | 'tool_use' | 'error' | 'aborted';

export type AssistantPart =
  | { readonly type: 'text'; readonly text: string }
  /** Thinking is only replayed with its signature: providers refuse it without. */
  | { readonly type: 'thinking'; readonly text: string; readonly signature?: string }
  | { readonly type: 'call'; readonly callId: string; readonly tool: string; readonly input: unknown };

/** Model tokens, as the provider reported them. `complete: false`: a reply was cut off, so there may be more. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly complete: boolean;
}

export interface UserMessage {
  readonly role: 'user';
  readonly content: Content;
}

export interface AssistantMessage {
  readonly role: 'assistant';
  readonly content: readonly AssistantPart[];
  readonly stopReason: StopReason;
  readonly usage?: Usage;
}

/** The result of one call. Its `details` never reach a model. */
export interface ToolMessage extends CallResult {
  readonly role: 'tool';
}

export type Message = UserMessage | AssistantMessage | ToolMessage;

/** What a person or a program says to an agent. */
export type RunInput = Content | UserMessage;

export function userMessage(input: RunInput): UserMessage {
  return typeof input === 'object' && 'role' in input ? input : { role: 'user', content: input };
}

export function toolMessage(result: CallResult): ToolMessage {
  return { role: 'tool', ...result };
}

/** The words of an assistant message. */
export function wordsOf(message: AssistantMessage): string {
  return message.content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0, complete: true };

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    complete: a.complete && b.complete,
  };
}
