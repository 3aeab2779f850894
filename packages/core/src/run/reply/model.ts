import { hasMethods, isObject, type Rule, SettingsError, unexpected } from '../../stop/settings.ts';
import type { Content } from '../../tool/result.ts';
import type { AssistantPart, ReplySource, StopReason } from '../history/message.ts';

/** A language model. Provider adapters implement this; core needs no provider package. */
export interface Model {
  readonly name: string;
  /** Added to every message it creates. */
  readonly source?: ReplySource;
  /** The longest reply that its requests allow, if they limit it. */
  readonly maxOutputTokens?: number | undefined;
  /**
   * Streams one reply. When the signal fires, stop immediately and close the connection; whatever is thrown then counts
   * as "stopped". Throw any other failure as a `ModelError`. Don't retry: the run does that.
   */
  stream(request: ModelRequest, options: { readonly signal: AbortSignal }): AsyncIterable<ModelPart>;
}

/** The rule for a setting that is a model. */
export const modelRule: Rule = (value, field) => {
  if (hasMethods(value, ['stream'])) return value;
  const advice = 'wrap an AI SDK model: fromAiSdk(model), from @whoa/ai-sdk';
  if (typeof value === 'string') throw new SettingsError(field, `the name of a model is not a model; ${advice}`);
  if (isObject(value) && ('doStream' in value || 'specificationVersion' in value))
    throw new SettingsError(field, advice);
  throw unexpected(field, value, `a model (an object with stream()); ${advice}`);
};

/** The request for one turn. */
export interface ModelRequest {
  readonly instructions?: string;
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly ModelTool[];
}

/** A message as a model may see it. It has no `details`. */
export type ModelMessage =
  | { readonly role: 'user'; readonly content: Content }
  | { readonly role: 'assistant'; readonly content: readonly AssistantPart[] }
  | {
      readonly role: 'tool';
      readonly callId: string;
      readonly tool: string;
      readonly content: Content;
      readonly isError: boolean;
    };

export interface ModelTool {
  readonly name: string;
  readonly description: string;
  readonly inputJsonSchema: Record<string, unknown>;
}

/** A piece of a streamed reply, in the order it arrived. */
export type ModelPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly text: string }
  /** Ends a block of thinking. Without a signature it is shown but never replayed. */
  | { readonly type: 'thinking-end'; readonly signature?: string }
  | { readonly type: 'call-start'; readonly callId: string; readonly tool: string }
  | { readonly type: 'call-arguments'; readonly callId: string; readonly text: string }
  /** The call is complete. Only complete calls can run. */
  | {
      readonly type: 'call-end';
      readonly callId: string;
      /** The provider's id, where it differs. */
      readonly providerId?: string;
      readonly tool: string;
      readonly input: unknown;
    }
  /** Model tokens of this reply so far. A later one replaces an earlier one, field by field. */
  | {
      readonly type: 'usage';
      readonly inputTokens?: number;
      readonly cachedInputTokens?: number;
      readonly outputTokens?: number;
    }
  | { readonly type: 'finish'; readonly stopReason: Exclude<StopReason, 'aborted'> };

/** Thrown when a provider refused a request, or its connection broke. `isRetryable` says whether a retry may help. */
export class ModelError extends Error {
  override readonly name: string = 'ModelError';
  readonly code: string = 'MODEL_ERROR';
  /** Whether the same request may be sent again. */
  readonly isRetryable: boolean;
  /** How long the provider asked us to wait. */
  readonly retryAfterMs: number | undefined;
  readonly status: number | undefined;

  constructor(
    message: string,
    options: { isRetryable: boolean; retryAfterMs?: number | undefined; status?: number | undefined; cause?: unknown },
  ) {
    super(message, { cause: options.cause });
    this.isRetryable = options.isRetryable;
    this.retryAfterMs = options.retryAfterMs;
    this.status = options.status;
  }
}
