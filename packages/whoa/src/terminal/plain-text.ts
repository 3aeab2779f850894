const COMMANDS_TO_TERMINALS = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu;

/**
 * Text from outside (a model, a tool, another user's task) as a terminal may see it: nothing in it can move the cursor,
 * change a colour, or turn the direction of what is read. Lines and tabs stay.
 */
export function plainText(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(COMMANDS_TO_TERMINALS, '\u{fffd}');
}

/** The first line of a text from outside, at most so long. */
export function oneLine(text: string, charactersMax: number): string {
  const line = plainText(text)
    .trim()
    .replaceAll(/\s*[\n\t]\s*/g, ' ⏎ ');
  return line.length <= charactersMax ? line : `${line.slice(0, Math.max(0, charactersMax - 1))}…`;
}
