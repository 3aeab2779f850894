import type { Content } from '../../tool/result.ts';
import type { Message, Usage } from '../history/message.ts';

/** Fewer bytes than most tokens have. */
const BYTES_PER_TOKEN = 3;
/** The longest reply that is expected. A longer one makes the reservations after it larger. */
const MAX_REPLY_TOKENS = 8_192;
/** What providers charge for an image depends on its size in pixels, not in bytes. */
const IMAGE_BYTES = 12_000;

const encoder = new TextEncoder();
const known = new WeakMap<Message, number>();

/** What the next request may use at most, as far as that can be told before. */
export function estimateUsage(
  messages: readonly Message[],
  { fixedBytes, maxOutputTokens = MAX_REPLY_TOKENS }: { fixedBytes: number; maxOutputTokens?: number | undefined },
): Usage {
  const bytes = messages.reduce((sum, message) => sum + measure(message), fixedBytes);
  const outputTokens = Math.min(maxOutputTokens, MAX_REPLY_TOKENS);
  return { inputTokens: Math.ceil(bytes / BYTES_PER_TOKEN), outputTokens, isComplete: false };
}

/** The bytes of a text as it is sent. */
export function countBytes(value: unknown): number {
  return encoder.encode(typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).length;
}

function measure(message: Message): number {
  const before = known.get(message);
  if (before !== undefined) return before;
  const bytes = message.role === 'assistant' ? countBytes(message.content) : measureContent(message.content);
  known.set(message, bytes);
  return bytes;
}

function measureContent(content: Content): number {
  if (typeof content === 'string') return countBytes(content);
  return content.reduce((sum, part) => sum + (part.type === 'text' ? countBytes(part.text) : IMAGE_BYTES), 0);
}
