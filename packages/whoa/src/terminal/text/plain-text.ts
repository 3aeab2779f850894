import { toInertText } from '@whoa/core/internal';

/** Puts a text on one line and cuts it at `maxCharacters`. */
export function oneLine(text: string, maxCharacters: number): string {
  const whole = text.trim();
  // Cut it here too: the work must not grow with the text.
  const part = whole.slice(0, 4 * maxCharacters);
  const line = toInertText(part.replaceAll('\r\n', '\n')).replaceAll(/\s*[\n\t]\s*/g, ' ⏎ ');
  if (line.length <= maxCharacters && part === whole) return line;
  return `${line.slice(0, Math.max(0, maxCharacters - 1))}…`;
}
