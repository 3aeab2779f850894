import type { Content, ContentPart, Json } from './result.ts';

/** The most characters of one content that a model gets. */
export const MAX_CONTENT_CHARACTERS = 100_000;

/** The most bytes of details that are kept with one result. */
export const MAX_DETAILS_BYTES = 262_144;

/** Limits content: head and tail are kept, and the cut says how much is missing. */
export function boundContent(content: Content, maxCharacters: number = MAX_CONTENT_CHARACTERS): Content {
  if (typeof content === 'string') return boundText(content, maxCharacters);
  let left = maxCharacters;
  let isCut = false;
  const parts: ContentPart[] = content.map((part) => {
    if (part.type !== 'text') return part;
    const text = boundText(part.text, Math.max(left, 0));
    left -= part.text.length;
    if (text === part.text) return part;
    isCut = true;
    return Object.freeze({ type: 'text', text });
  });
  return isCut ? Object.freeze(parts) : content;
}

function boundText(text: string, max: number): string {
  if (text.length <= max) return text;
  const half = Math.floor(max / 2);
  // `toWellFormed` repairs a character that the cut split.
  const head = text.slice(0, half).toWellFormed();
  const tail = text.slice(text.length - half).toWellFormed();
  return `${head}\n[… ${text.length - 2 * half} of ${text.length} characters cut …]\n${tail}`;
}

/** Limits details: larger ones are replaced by a note with their size. They are already JSON. */
export function boundDetails(details: Json): Json {
  const text = JSON.stringify(details);
  // One UTF-16 unit takes at most three bytes of UTF-8.
  if (text.length * 3 <= MAX_DETAILS_BYTES) return details;
  const bytes = new TextEncoder().encode(text).length;
  return bytes <= MAX_DETAILS_BYTES
    ? details
    : Object.freeze({ cut: 'the details were too large', bytes, maxBytes: MAX_DETAILS_BYTES });
}
