const ESC = '\u001b';
const BEL = '\u0007';
/** How escape sequences end: with a final byte, or with a terminator, or cut off. */
const SEQUENCES = [
  String.raw`\[[0-?]*[ -/]*(?:[@-~]|$)`, // colours and cursor movements
  String.raw`\][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\|$)`, // titles and links
  String.raw`[PX^_][^${ESC}]*(?:${ESC}\\|$)`, // strings for the terminal
  '[ -/]*[0-~]',
  '$',
];
const ESCAPES = new RegExp(`[${ESC}\u009b](?:${SEQUENCES.join('|')})`, 'g');
/** Every control character except tabs and line ends. */
const CONTROLS = /[^\P{Cc}\t\n]/gu;

/** Terminal output as a reader sees it: no escapes, no control characters, overwritten lines only in their last state. */
export function plainText(output: string): string {
  if (output === '') return '';
  return output
    .replace(ESCAPES, '')
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map(lastOverwrite)
    .join('\n')
    .replace(CONTROLS, '');
}

/** Text after a carriage return overwrites the line. */
function lastOverwrite(line: string): string {
  const parts = line.split('\r').filter((part) => part !== '');
  return parts.at(-1) ?? '';
}
