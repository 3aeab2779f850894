import type { Content, Json, ToolResult } from './result.ts';

/** Removes secrets from a text, and counts them. */
export type Redact = (text: string) => { readonly text: string; readonly count: number };

/** Replaces a text that could not be redacted: it may contain a secret. */
const UNREDACTED = 'It ended, but what it returned could not be redacted.';

/** Redacts all texts of a result and adds up the counts. If that fails, the whole result is replaced. */
export function redactResult<Result extends ToolResult & { readonly error?: string }>(
  result: Result,
  redact: Redact | undefined,
): Result & { readonly redacted?: number } {
  if (redact === undefined) return result;
  let redacted = 0;
  const clean = (text: string): string => {
    const { text: cleaned, count } = redact(text);
    if (typeof cleaned !== 'string' || !Number.isSafeInteger(count))
      throw new TypeError('redact: expected it to return { text, count }');
    redacted += count;
    return cleaned;
  };
  const { content, details, error } = result;
  try {
    const cleaned = {
      content: cleanContent(content, clean),
      ...(details !== undefined && { details: cleanJson(details, clean) }),
      ...(error !== undefined && { error: clean(error) }),
    };
    return redacted === 0 ? result : Object.freeze({ ...result, ...cleaned, redacted });
  } catch {
    const { details: _, ...rest } = result;
    const replaced = { ...rest, content: UNREDACTED, ...(error !== undefined && { error: UNREDACTED }) };
    return Object.freeze(replaced as Result);
  }
}

function cleanContent(content: Content, clean: (text: string) => string): Content {
  if (typeof content === 'string') return clean(content);
  return Object.freeze(
    content.map((part) => (part.type === 'text' ? Object.freeze({ ...part, text: clean(part.text) }) : part)),
  );
}

function cleanJson(value: Json, clean: (text: string) => string): Json {
  if (typeof value === 'string') return clean(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return Object.freeze(value.map((one: Json) => cleanJson(one, clean)));
  const entries = Object.entries(value).flatMap(([name, one]) =>
    one === undefined ? [] : [[clean(name), cleanJson(one, clean)]],
  );
  return Object.freeze(Object.fromEntries(entries) as { readonly [key: string]: Json });
}
