/** A piece of a line in one style. */
export interface Span {
  readonly column: number;
  readonly text: string;
  readonly color: string;
  readonly isBold: boolean;
  readonly isDim: boolean;
}

const COLORS = ['#484f58', '#ff7b72', '#3fb950', '#d29922', '#58a6ff', '#bc8cff', '#39c5cf', '#b1bac4'];
const ESCAPE = '\u001b';
const CODES = new RegExp(`${ESCAPE}\\[([\\d;]*)m`, 'g');

/** Gives every line the style that the line before ended in: a terminal sends only changes. */
export function carryStyles(lines: readonly string[]): string[] {
  let codes: string[] = [];
  return lines.map((line) => {
    const begins = codes.length === 0 ? '' : `${ESCAPE}[${codes.join(';')}m`;
    for (const [, found = ''] of line.matchAll(CODES)) {
      for (const code of found.split(';')) codes = Number(code) === 0 ? [] : [...codes, code];
    }
    return line.trim() === '' ? '' : begins + line;
  });
}

/** Reads a line with the escapes that colour it. */
export function readStyled(line: string): Span[] {
  const spans: Span[] = [];
  let style = { color: '', isBold: false, isDim: false };
  let column = 0;
  for (const [index, piece] of line.split(`${ESCAPE}[`).entries()) {
    const [, codes = '', rest = piece] = index === 0 ? [] : (/^([\d;]*)m(.*)$/s.exec(piece) ?? []);
    if (index > 0) for (const code of codes.split(';')) style = restyle(style, Number(code));
    if (rest !== '') spans.push({ column, text: rest, ...style });
    column += rest.length;
  }
  return spans;
}

function restyle(style: Omit<Span, 'column' | 'text'>, code: number): Omit<Span, 'column' | 'text'> {
  if (code === 0) return { color: '', isBold: false, isDim: false };
  if (code === 1) return { ...style, isBold: true };
  if (code === 2) return { ...style, isDim: true };
  if (code === 22) return { ...style, isBold: false, isDim: false };
  if (code === 39) return { ...style, color: '' };
  return code >= 30 && code <= 37 ? { ...style, color: COLORS[code - 30]! } : style;
}
