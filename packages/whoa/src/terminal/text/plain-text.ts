import { toInertText } from '@whoa/core/approval';

/** A text from outside in one line, at most so long. */
export function oneLine(text: string, maxCharacters: number): string {
  const line = toInertText(text.replaceAll('\r\n', '\n'))
    .trim()
    .replaceAll(/\s*[\n\t]\s*/g, ' ⏎ ');
  return line.length <= maxCharacters ? line : `${line.slice(0, Math.max(0, maxCharacters - 1))}…`;
}
