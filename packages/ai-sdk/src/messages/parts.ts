import type { LanguageModelV4StreamPart, SharedV4ProviderMetadata } from '@ai-sdk/provider';
import type { ModelPart } from '@whoa/core/model';
import { createTruncatedReplyError, modelErrorFrom } from '../errors.ts';
import { encodeSignature, hasThoughtSignature, isProof, mergeMetadata } from '../signature.ts';
import { earlyUsage } from './early-usage.ts';

type Part = LanguageModelV4StreamPart;
type Reasoning = Extract<Part, { type: 'reasoning-start' | 'reasoning-delta' | 'reasoning-end' }>;
type Finish = Extract<Part, { type: 'finish' }>;

const STOP_REASONS: Partial<Record<Finish['finishReason']['unified'], 'length' | 'error' | 'tool-use'>> = {
  length: 'length',
  error: 'error',
  'content-filter': 'error',
  'tool-calls': 'tool-use',
};

/** Translates the parts of one reply from the AI SDK's format into ours. */
export class PartReader {
  readonly #model: string;
  readonly #thoughts = new Map<string, { metadata: SharedV4ProviderMetadata; shown: boolean }>();
  readonly #started = new Set<string>();
  #hasCalls = false;
  /** Whether any of the reply has arrived. */
  hasContent = false;

  constructor(model: string) {
    this.#model = model;
  }

  /** Translates one part into any number of ours. Throws `ModelError` where it reports a failure. */
  read(part: Part): readonly ModelPart[] {
    switch (part.type) {
      case 'text-delta':
        return part.delta === '' ? [] : this.#content({ type: 'text', text: part.delta });
      case 'reasoning-start':
      case 'reasoning-delta':
      case 'reasoning-end':
        return this.#reasoning(part);
      case 'tool-input-start':
        return part.providerExecuted ? [] : this.#startCall(part.id, part.toolName);
      case 'tool-input-delta':
        return this.#started.has(part.id) && part.delta !== ''
          ? [{ type: 'call-arguments', callId: part.id, text: part.delta }]
          : [];
      case 'tool-call':
        return part.providerExecuted ? [] : this.#endCall(part);
      case 'raw': {
        const usage = earlyUsage(part.rawValue);
        return usage === undefined ? [] : [usage];
      }
      case 'finish':
        return this.#finish(part);
      case 'error':
        throw modelErrorFrom(part.error, { model: this.#model, hasContent: this.hasContent });
      default:
        return [];
    }
  }

  #content(part: ModelPart): readonly ModelPart[] {
    this.hasContent = true;
    return [part];
  }

  #reasoning(part: Reasoning): readonly ModelPart[] {
    const thought = this.#thoughts.get(part.id) ?? { metadata: {}, shown: false };
    this.#thoughts.set(part.id, thought);
    thought.metadata = mergeMetadata(thought.metadata, part.providerMetadata);
    if (part.type === 'reasoning-start') {
      // What OpenAI sends at the start of a thought is not complete yet.
      for (const fields of Object.values(thought.metadata)) delete fields['reasoningEncryptedContent'];
      return [];
    }
    if (part.type === 'reasoning-delta') {
      if (part.delta === '') return [];
      thought.shown = true;
      return this.#content({ type: 'thinking', text: part.delta });
    }
    this.#thoughts.delete(part.id);
    const proven = isProof(thought.metadata);
    if (!proven) return thought.shown ? [{ type: 'thinking-end' }] : [];
    return [{ type: 'thinking-end', signature: encodeSignature({ metadata: thought.metadata }) }];
  }

  #startCall(callId: string, tool: string): readonly ModelPart[] {
    this.#started.add(callId);
    return this.#content({ type: 'call-start', callId, tool });
  }

  #endCall(part: Extract<Part, { type: 'tool-call' }>): readonly ModelPart[] {
    const { toolCallId: callId, toolName: tool, providerMetadata, input } = part;
    const parts: ModelPart[] = [];
    this.#hasCalls = true;
    if (!this.#started.has(callId))
      parts.push(...this.#startCall(callId, tool), { type: 'call-arguments', callId, text: input });
    if (hasThoughtSignature(providerMetadata))
      parts.push({ type: 'thinking-end', signature: encodeSignature({ metadata: providerMetadata, callId }) });
    return [...parts, { type: 'call-end', callId, tool, input: inputFrom(input) }];
  }

  #finish({ usage, finishReason: { unified, raw } }: Finish): readonly ModelPart[] {
    const inputTokens = usage.inputTokens.total;
    const outputTokens = usage.outputTokens.total;
    const cachedInputTokens = usage.inputTokens.cacheRead;
    // Packages of specification v3 cannot report a stream that just ends: they give no reason and no count.
    const saysNothing = unified === 'other' && raw === undefined;
    const isCut = saysNothing && inputTokens === undefined && outputTokens === undefined;
    if (unified === 'interrupted' || isCut) throw createTruncatedReplyError(this.#model);
    return [
      {
        type: 'usage',
        ...(inputTokens !== undefined && { inputTokens }),
        ...(cachedInputTokens && { cachedInputTokens }),
        ...(outputTokens !== undefined && { outputTokens }),
      },
      // Some servers send `stop`, or nothing, after calls.
      { type: 'finish', stopReason: STOP_REASONS[unified] ?? (this.#hasCalls ? 'tool-use' : 'stop') },
    ];
  }
}

/**
 * Parses the arguments of a call. Text that is not JSON stays text: the validation error then shows the model what was
 * wrong.
 */
function inputFrom(text: string): unknown {
  if (text.trim() === '') return {};
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
