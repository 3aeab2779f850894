import type { CallResult, Content, ContentPart, Json } from './result.ts';

/** The most characters of one content that a model is shown. */
export const CONTENT_CHARACTERS_MAX = 100_000;

/** The most bytes of details that are kept with one result. */
export const DETAILS_BYTES_MAX = 262_144;

/** A result within the limits. What was cut is said, with how much it was. */
export function boundResult(result: CallResult): CallResult {
  const content = boundContent(result.content);
  if (result.details === undefined) return content === result.content ? result : { ...result, content };
  return { ...result, content, details: boundDetails(result.details) };
}

/** Content within the limit: head and tail are kept, and the cut says how much is missing. */
export function boundContent(content: Content, charactersMax: number = CONTENT_CHARACTERS_MAX): Content {
  if (typeof content === 'string') return boundText(content, charactersMax);
  let left = charactersMax;
  let isCut = false;
  const parts: ContentPart[] = content.map((part) => {
    if (part.type !== 'text') return part;
    const text = boundText(part.text, Math.max(left, 0));
    left -= part.text.length;
    if (text === part.text) return part;
    isCut = true;
    return { type: 'text', text };
  });
  return isCut ? parts : content;
}

function boundText(text: string, max: number): string {
  if (text.length <= max) return text;
  const half = Math.floor(max / 2);
  // `toWellFormed` mends a character that the cut went through.
  const head = text.slice(0, half).toWellFormed();
  const tail = text.slice(text.length - half).toWellFormed();
  return `${head}\n[… ${text.length - 2 * half} of ${text.length} characters cut …]\n${half === 0 ? '' : tail}`;
}

function boundDetails(details: Json): Json {
  let bytes: number;
  try {
    bytes = Buffer.byteLength(JSON.stringify(details));
  } catch {
    // Not JSON after all (a cycle, a bigint): nobody could store or show it.
    return { cut: 'the details were not JSON' };
  }
  return bytes <= DETAILS_BYTES_MAX
    ? details
    : { cut: 'the details were too large', bytes, bytesMax: DETAILS_BYTES_MAX };
}
