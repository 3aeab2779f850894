/** Characters that a screen does not show as themselves: controls, direction marks, zero-width and blank ones, odd spaces. */
const UNSEEN =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800\uFFFC\u{1D159}]|(?! )\p{Zs}/gu;
/** Characters that a terminal or an editor acts on instead of showing. */
const OBEYED = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;

/** Makes every character visible, as in `<U+202E>`, except line feeds and tabs. */
export function toVisibleText(text: string): string {
  return text.replace(UNSEEN, (character) => visibleCharacter(character));
}

/**
 * Makes text safe to print on a terminal: nothing in it moves the cursor, changes a colour or turns the direction.
 *
 * @returns The text.
 */
export function toInertText(text: string): string {
  return text.replace(OBEYED, (character) => visibleCharacter(character));
}

/**
 * Formats text as one line: line feeds are marked, and a cut says how many characters are missing.
 *
 * @returns The line.
 */
export function toVisibleLine(text: string, maxCharacters: number): string {
  const line = toVisibleText(text.trim().replace(/\r?\n/g, '\n'))
    .replace(/ *[\n\t] */g, ' ⏎ ')
    .replace(/ {4,}/g, (spaces) => ` (${spaces.length} spaces) `);
  if (line.length <= maxCharacters) return line;
  // Keep the end too: an attacker would hide something there.
  const endLength = Math.floor(maxCharacters / 3);
  const cut = ` …(${line.length - maxCharacters} more)… `;
  return `${line.slice(0, Math.max(0, maxCharacters - endLength - cut.length))}${cut}${line.slice(-endLength)}`;
}

function visibleCharacter(character: string): string {
  if (character === '\n' || character === '\t') return character;
  return `<U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}>`;
}
