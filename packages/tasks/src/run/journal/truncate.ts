import type { Json } from '@whoa/core';

/** Text is not cut shorter than this, except names and ids. */
const MIN_TEXT_CHARS = 64;

type Fields = { readonly [key: string]: Json | undefined };

export function measureBytes(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/**
 * Makes an entry small enough. Details and inputs are removed first, then the ends of long texts are cut; a note with
 * the number of bytes replaces each. Thinking is removed completely: its signature would no longer match. `cut` is the
 * number of missing bytes.
 */
export function truncateEntry(entry: Json, maxBytes: number): Json {
  const before = measureBytes(entry);
  for (let chars = Math.max(MIN_TEXT_CHARS, maxBytes); chars >= MIN_TEXT_CHARS; chars /= 2) {
    const cut = marked(shortened(entry, chars), before);
    if (measureBytes(cut) <= maxBytes) return cut;
  }
  const { type } = entry as { readonly type?: Json };
  return marked({ ...(type !== undefined && { type }) }, before);
}

function marked(entry: Json, before: number): Json {
  return { ...(isFields(entry) ? entry : { value: entry }), cut: before - measureBytes(entry) };
}

function shortened(value: Json, chars: number): Json {
  if (typeof value === 'string') return value.length <= chars ? value : shortText(value, chars);
  if (typeof value !== 'object' || value === null) return value;
  if (isList(value)) return value.filter((one) => !isThinking(one)).map((one) => shortened(one, chars));
  if (value['type'] === 'image') return { type: 'text', text: `[image, ${measureBytes(value)} bytes cut]` };
  const kept: Record<string, Json> = {};
  for (const [name, part] of Object.entries(value)) {
    if (part === undefined) continue;
    const isWhole = measureBytes(part) <= MIN_TEXT_CHARS;
    // Don't cut these in half: half an input could be taken for a whole one, and half of the details is useless.
    if ((name === 'details' || name === 'input') && !isWhole && !isMessage(part)) {
      kept[name] = { cut: true, bytes: measureBytes(part) };
    } else kept[name] = shortened(part, chars);
  }
  return kept;
}

function shortText(text: string, chars: number): string {
  const kept = text.slice(0, chars).toWellFormed();
  return `${kept}… [${Buffer.byteLength(text) - Buffer.byteLength(kept)} bytes cut]`;
}

/** The `input` of a run is a message, and is handled as one. */
function isMessage(value: Json): boolean {
  return isFields(value) && value['role'] !== undefined;
}

function isThinking(value: Json): boolean {
  return isFields(value) && value['type'] === 'thinking';
}

function isFields(value: Json): value is Fields {
  return typeof value === 'object' && value !== null && !isList(value);
}

function isList(value: readonly Json[] | Fields): value is readonly Json[] {
  return Array.isArray(value);
}

/** Whether a value is the note that replaces something cut. */
export function isTruncated(value: unknown): boolean {
  const { cut, bytes } = (value ?? {}) as { readonly cut?: unknown; readonly bytes?: unknown };
  return cut === true && typeof bytes === 'number';
}
