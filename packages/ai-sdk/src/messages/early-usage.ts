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
  const input = first(counts, ['input_tokens', 'prompt_tokens', 'promptTokenCount']);
  // Only Anthropic counts cache reads and writes separately from `input_tokens`.
  const written = first(counts, ['cache_creation_input_tokens']) ?? 0;
  const read = first(counts, ['cache_read_input_tokens']) ?? 0;
  const cached = written + read;
  // Only Gemini counts thinking separately from text.
  const thoughts = first(counts, ['thoughtsTokenCount']);
  const words = first(counts, ['output_tokens', 'completion_tokens', 'candidatesTokenCount']);
  const hasOutput = words !== undefined || thoughts !== undefined;
  if (input === undefined && !hasOutput) return undefined;
  return {
    type: 'usage',
    ...(input !== undefined && { inputTokens: input + cached, ...(read > 0 && { cachedInputTokens: read }) }),
    ...(hasOutput && { outputTokens: (words ?? 0) + (thoughts ?? 0) }),
  };
}

function first(counts: Counts, names: readonly string[]): number | undefined {
  return names.map((name) => counts[name]).find((count) => typeof count === 'number');
}
