// Texts that try to take over a screen, and the parts that may reach it.

/** Pieces that a terminal obeys or hides. */
const PIECES: readonly string[] = [
  '\u001b]0;owned\u0007',
  '\u001b]52;c;ZXZpbA==\u0007',
  '\u001b]8;;http://evil\u001b\\click\u001b]8;;\u001b\\',
  '\u001b[2J\u001b[H',
  '\u001b[31mred\u001b[0m',
  '\u001b[?1049h',
  '\u001bP$q"p\u001b\\',
  '\u001bc',
  '\u009b31m',
  '\u009d0;owned\u009c',
  '\u0007',
  '\b\b\b\b',
  '\r',
  '\u000e\u000f',
  '\u007f',
  '\u0085',
  '\u202ereversed\u202c',
  '\u2066isolated\u2069',
  '\u200f',
  '\u2028',
  '\u2029',
  '\ufdd0x:0\ufdd1',
  '\n✔ done',
  '\n  [y]es, [n]o, [a]lways, or say why not: y',
  '\t',
  '`',
  '```',
  '<!-- -->',
  '\u200b',
  '\u00a0',
  '\u{e0041}',
  '\ud800',
  '\ufeff',
];
const WORDS = [
  'rm -rf ~',
  'git status',
  'x',
  '日本',
  'größer',
  '😀',
  '%s',
  '$HOME',
  '"',
  "'",
  '\\',
  '/',
  ';',
  ' '.repeat(80),
];

/** Makes hostile texts, the same for the same chance. */
export function hostileText(random: () => number, maxPieces = 6): string {
  const pick = (from: readonly string[]): string => from[Math.floor(random() * from.length)]!;
  const pieces = 1 + Math.floor(random() * maxPieces);
  return Array.from({ length: pieces }, () => pick(WORDS) + pick(PIECES)).join(random() < 0.5 ? '' : ' ');
}

/** Characters that must not reach a screen. */
const OBEYED = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;
/** Our own escapes: styles, clearing a line, and the progress indicator behind the cursor. */
const OURS = ['\\[(?:\\d+m|K|\\?7[lh])', '[78]'].map((end) => new RegExp(`(?:\\r(?=\u001b))?\u001b${end}`, 'g'));

/** Control characters in a terminal's output that are not ours. */
export function findObeyed(output: string): string[] {
  const rest = OURS.reduce((text, pattern) => text.replace(pattern, ''), output).replace(/\r+\n/g, '\n');
  return [...rest.matchAll(OBEYED)].map(([character]) => character).filter((one) => one !== '\n' && one !== '\t');
}

/**
 * The form in which a screen must show a text without hiding anything; implemented independently of the code under
 * test.
 */
export function shownForm(text: string): string {
  return Array.from(text)
    .map((character) => {
      const code = character.codePointAt(0)!;
      const isSeen =
        character === '\n' || character === '\t' || character === ' ' || /[\p{L}\p{M}\p{N}\p{P}\p{S}]/u.test(character);
      const isHidden = /\p{Default_Ignorable_Code_Point}/u.test(character) || code === 0x2800;
      return isSeen && !isHidden ? character : `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>`;
    })
    .join('');
}
