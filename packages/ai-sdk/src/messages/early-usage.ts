import { settings } from '@whoa/core/internal';
import type { ModelPart } from '@whoa/core/model';

type Counts = Readonly<Record<string, unknown>>;
const isRecord = settings.isObject as (value: unknown) => value is Counts;

/**
 * Reads the tokens of a reply that may be cut off from an event of its provider: Anthropic, Gemini, OpenAI-compatible.
 *
 * @returns What it reports, if anything.
 */
export function earlyUsage(raw: unknown): ModelPart | undefined {
  if (!isRecord(raw)) return undefined;
  const message = isRecord(raw['message']) ? raw['message'] : raw;
  const counts = [message['usage'], raw['usageMetadata']].find(isRecord);
  if (counts === undefined) return undefined;
  const inputTokens = sumInput(counts);
  const outputTokens = toOutput(counts);
  if (inputTokens === undefined && outputTokens === undefined) return undefined;
  return {
    type: 'usage',
    ...(inputTokens !== undefined && { inputTokens }),
    ...(outputTokens !== undefined && { outputTokens }),
  };
}

function sumInput(counts: Counts): number | undefined {
  const tokens = first(counts, ['input_tokens', 'prompt_tokens', 'promptTokenCount']);
  // Only Anthropic counts cache reads and writes separately from `input_tokens`.
  const cached = ['cache_creation_input_tokens', 'cache_read_input_tokens'].map((name) => first(counts, [name]) ?? 0);
  return tokens === undefined ? undefined : cached.reduce((sum, count) => sum + count, tokens);
}

function toOutput(counts: Counts): number | undefined {
  const tokens = first(counts, ['output_tokens', 'completion_tokens', 'candidatesTokenCount']);
  // Only Gemini counts thinking separately from text.
  const thoughts = first(counts, ['thoughtsTokenCount']);
  return tokens === undefined && thoughts === undefined ? undefined : (tokens ?? 0) + (thoughts ?? 0);
}

function first(counts: Counts, names: readonly string[]): number | undefined {
  return names.map((name) => counts[name]).find((count) => typeof count === 'number');
}
