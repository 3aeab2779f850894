/** What a screen does not show as itself: controls, direction marks, characters without width, spaces that are no space. */
const UNSEEN =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800]|(?! )\p{Zs}/gu;
/** What a terminal or an editor obeys instead of showing it. */
const OBEYED = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;

/**
 * A text in which nothing is hidden: every character that a screen would not show stands as `<U+202E>`. Line feeds and
 * tabs stay.
 */
export function toVisibleText(text: string): string {
  return text.replace(UNSEEN, (character) => visibleCharacter(character));
}

/**
 * Makes text that a terminal only shows: nothing in it moves the cursor, changes a colour or turns the direction.
 *
 * @returns The text.
 */
export function toInertText(text: string): string {
  return text.replace(OBEYED, (character) => visibleCharacter(character));
}

/**
 * The text in one line: line feeds are marked, and what has no room is counted.
 *
 * @returns The line.
 */
export function toVisibleLine(text: string, maxCharacters: number): string {
  const line = toVisibleText(text.trim().replace(/\r?\n/g, '\n'))
    .replace(/ *[\n\t] */g, ' ⏎ ')
    .replace(/ {4,}/g, (spaces) => ` (${spaces.length} spaces) `);
  if (line.length <= maxCharacters) return line;
  // The end too: that is where something would be put to be overlooked.
  const endLength = Math.floor(maxCharacters / 3);
  const cut = ` …(${line.length - maxCharacters} more)… `;
  return `${line.slice(0, Math.max(0, maxCharacters - endLength - cut.length))}${cut}${line.slice(-endLength)}`;
}

function visibleCharacter(character: string): string {
  if (character === '\n' || character === '\t') return character;
  return `<U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}>`;
}
