/** Cuts a line, never within a character. `dropped` characters were already removed. */
export function cutLine(line: string, maxChars: number, dropped = 0): string {
  if (line.length <= maxChars) return line;
  const cut = line.slice(0, maxChars).replace(/[\uD800-\uDBFF]$/, '');
  return `${cut} [+${line.length + dropped - cut.length} characters]`;
}

/** Cuts a line at both ends, keeping the text at a position. */
export function cutAround(line: string, position: number, maxChars: number): string {
  const start = Math.max(0, Math.min(position - Math.floor(maxChars / 4), line.length - maxChars));
  if (start === 0) return cutLine(line, maxChars);
  const rest = line.slice(start).replace(/^[\uDC00-\uDFFF]/, '');
  return `[${line.length - rest.length} characters+] ${cutLine(rest, maxChars)}`;
}

const OBEYED = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;

/** Shows the name of a file on one line: as JSON if it has line feeds, escape sequences or the like. */
export function showName(name: string): string {
  if (name.search(OBEYED) === -1) return name;
  return JSON.stringify(name).replace(OBEYED, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Whether the bytes do not look like text. */
export function isBinary(bytes: Uint8Array): boolean {
  return bytes.subarray(0, 8_192).includes(0);
}

/** Decodes UTF-8 without loss, or returns `undefined`: text that does not round-trip must not be edited. */
export function decodeExactly(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** `1 match`, `2 matches`. */
export function count(amount: number, one: string, many: string = `${one}s`): string {
  return `${amount} ${amount === 1 ? one : many}`;
}
