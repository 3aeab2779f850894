/** A piece of terminal output in one style. */
export interface AnsiSpan {
  readonly text: string;
  /** One of the eight terminal colours: 0 black, 1 red, 2 green, 3 yellow, 4 blue, 5 magenta, 6 cyan, 7 white. */
  readonly color?: number;
  readonly bold?: true;
  readonly dim?: true;
  readonly underline?: true;
}

type Style = Omit<AnsiSpan, 'text'>;

const ESC = '\u001b';
const BEL = '\u0007';
/** Escape sequences. The first group holds the parameters of a sequence that only sets a style. */
const ESCAPE = new RegExp(
  `[${ESC}\u009b](?:${[
    String.raw`\[?([\d;:]*)m`,
    String.raw`\[[0-?]*[ -/]*(?:[@-~]|$)`,
    String.raw`\][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\|$)`,
    String.raw`[PX^_][^${ESC}]*(?:${ESC}\\|$)`,
    '[ -/]*[0-~]',
    '$',
  ].join('|')})`,
  'g',
);
/** Everything but tabs and line feeds that a screen would act on instead of showing. */
const ACTED_ON = /[^\P{Cc}\t\n]|[\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;

/**
 * Parses terminal output: colours and weights become data, every other escape sequence is dropped, and of a line that
 * was overwritten only the last state is kept. The text of a span contains no control characters except tabs and line
 * feeds.
 *
 * @returns The spans, none of them empty.
 */
export function parseAnsi(output: string): AnsiSpan[] {
  const spans: AnsiSpan[] = [];
  let style: Style = {};
  let at = 0;
  const add = (text: string): void => {
    if (text !== '') spans.push({ text, ...style });
  };
  const text = output.replaceAll('\r\n', '\n');
  for (const found of text.matchAll(ESCAPE)) {
    add(text.slice(at, found.index));
    at = found.index + found[0].length;
    if (found[1] !== undefined) style = styleAfter(style, found[1]);
  }
  add(text.slice(at));
  return withoutOverwritten(spans);
}

/** Applies the parameters of a style sequence. */
function styleAfter(before: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map(Number);
  let { color, bold, dim, underline } = before as { color?: number; bold?: true; dim?: true; underline?: true };
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i]!;
    if (code === 0) color = bold = dim = underline = undefined;
    else if (code === 1) bold = true;
    else if (code === 2) dim = true;
    else if (code === 4) underline = true;
    else if (code === 22) bold = dim = undefined;
    else if (code === 24) underline = undefined;
    else if (code >= 30 && code <= 37) color = code - 30;
    else if (code >= 90 && code <= 97) color = code - 90;
    else if (code === 39) color = undefined;
    // Colours beyond the eight are left out, with their parameters.
    else if (code === 38 || code === 48) i += codes[i + 1] === 5 ? 2 : 4;
  }
  return withoutUndefined<Style>({ color, bold, dim, underline });
}

/** Leaves out fields without a value. */
export function withoutUndefined<T extends object>(fields: { [Name in keyof T]: T[Name] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

/** Text after a carriage return replaces what the line held before. */
function withoutOverwritten(spans: readonly AnsiSpan[]): AnsiSpan[] {
  const kept: AnsiSpan[] = [];
  /** Where the current line begins in `kept`. */
  let lineStart = 0;
  let isReturned = false;
  for (const { text, ...style } of spans) {
    for (const [piece] of text.matchAll(/\r|\n|[^\r\n]+/g)) {
      if (piece === '\r') {
        isReturned = true;
        continue;
      }
      if (isReturned && piece !== '\n') kept.length = lineStart;
      isReturned = false;
      const shown = piece.replace(ACTED_ON, '');
      if (shown !== '') kept.push({ text: shown, ...style });
      if (piece === '\n') lineStart = kept.length;
    }
  }
  return merged(kept);
}

function merged(spans: readonly AnsiSpan[]): AnsiSpan[] {
  const result: { text: string }[] = [];
  let last = '';
  for (const { text, ...style } of spans) {
    const now = JSON.stringify(style);
    if (result.length > 0 && now === last) result.at(-1)!.text += text;
    else result.push({ text, ...style });
    last = now;
  }
  return result as AnsiSpan[];
}
