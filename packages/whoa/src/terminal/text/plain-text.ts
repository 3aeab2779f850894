import { toInertText } from '@whoa/core/approval';

/** Puts a text on one line and cuts it at `maxCharacters`. */
export function oneLine(text: string, maxCharacters: number): string {
  const line = toInertText(text.replaceAll('\r\n', '\n'))
    .trim()
    .replaceAll(/\s*[\n\t]\s*/g, ' ⏎ ');
  return line.length <= maxCharacters ? line : `${line.slice(0, Math.max(0, maxCharacters - 1))}…`;
}
