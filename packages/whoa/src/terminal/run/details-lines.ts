import type { CallResult } from '@whoa/core';
import { type DiffHunk, type PlanEntry, toInertText } from '@whoa/core/internal';
import { type DetailsView, parseAnsi, toDetailsView } from '@whoa/core/view';
import type { Style } from '../boundary.ts';
import type { Screen } from '../screen.ts';
import { measureColumns, wrapLine } from '../text/wrap.ts';

type Look = Pick<Screen, 'style' | 'columns'>;
type View<Kind extends DetailsView['kind']> = Extract<DetailsView, { kind: Kind }>;

interface LineOptions {
  /** Show everything, not only the most telling lines. */
  readonly isFull: boolean;
}

/** Prefixes every line, so that no output can be mistaken for a line of ours. */
const GUTTER = '  │ ';
const DIFF_LINES = 40;
const OUTPUT_LINES = 8;
const LIST_LINES = 5;
const FULL_LINES = 10_000;
const COLORS: readonly Style[] = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

/** Describes what a call did, as lines below its end. */
export function detailsLines(result: CallResult, look: Look, { isFull }: LineOptions): string[] {
  const view = toDetailsView(result.details, result.content);
  // The line of the end has the error already.
  if (result.state === 'not-started' || (result.isError && view.kind !== 'output' && view.kind !== 'diff')) return [];
  return toLines(view, { isFull, look }).map((line) => look.style('dim', GUTTER) + line);
}

interface Context extends LineOptions {
  readonly look: Look;
}

function toLines(view: DetailsView, context: Context): string[] {
  switch (view.kind) {
    case 'diff':
      return diffLines(view, context);
    case 'output':
      return outputLines(view, context);
    case 'matches':
      return matchLines(view, context);
    case 'files':
      return [
        `${counted(view.paths.length, 'file')}${view.isPartial ? ' and more' : ''}`,
        ...some(view.paths, context),
      ];
    case 'file':
      return [
        [view.path, view.lines !== undefined && counted(view.lines, 'line')].filter(Boolean).join(', '),
        ...(context.isFull ? view.text.split('\n') : []),
      ].flatMap((line) => fit(line, context.look));
    case 'plan':
      return view.entries.flatMap((entry) => planLine(entry, context.look));
    case 'images':
      return [
        ...view.images.flatMap(({ mediaType }) => fit(`an image (${mediaType})`, context.look)),
        ...textLines(view.text, context),
      ];
    case 'json':
      return view.text === '' ? textLines(JSON.stringify(view.value), context) : textLines(view.text, context);
    case 'text':
      return textLines(view.text, context);
  }
}

function diffLines({ path, isNew, added, removed, hunks }: View<'diff'>, context: Context): string[] {
  const { look } = context;
  const lines = hunks.flatMap((hunk) => hunkLines(hunk, look));
  const title = fit(`${isNew ? 'created' : 'changed'} ${path} +${added} -${removed}`, look);
  return [...title, ...cut(lines, { first: DIFF_LINES }, context)];
}

const SIGNS = {
  add: { sign: '+', style: 'green' },
  remove: { sign: '-', style: 'red' },
  context: { sign: ' ', style: 'dim' },
} as const;

/** Colours the lines of a hunk, each with its number in the new file, or in the old one if it was removed. */
function hunkLines({ lines }: DiffHunk, look: Look): string[] {
  const width = Math.max(...lines.map(({ oldLine = 0, newLine = 0 }) => `${Math.max(oldLine, newLine)}`.length));
  return lines.flatMap(({ kind, text, oldLine, newLine }) => {
    const { sign, style } = SIGNS[kind];
    const number = `${newLine ?? oldLine ?? ''}`.padStart(width);
    return fit(`${number} ${sign} ${text}`, look).map((line) => look.style(style, line));
  });
}

function outputLines({ head, tail, omittedBytes, logPath }: View<'output'>, context: Context): string[] {
  const { look } = context;
  const text = omittedBytes === 0 ? tail : `${head}\n… ${omittedBytes} bytes left out …\n${tail}`;
  const lines = text.trim() === '' ? [] : linesWithStyle(parseAnsi(text.trimEnd()), look);
  const log = logPath === undefined ? [] : fit(`all of it: ${logPath}`, look).map((line) => look.style('dim', line));
  return [...cut(lines, { last: OUTPUT_LINES }, context), ...log];
}

/** Splits spans into lines that fit, each with its colours. */
function linesWithStyle(spans: ReturnType<typeof parseAnsi>, look: Look): string[] {
  const lines: string[] = [''];
  let used = 0;
  for (const { text, color, bold, dim, underline } of spans) {
    const names = [color !== undefined && COLORS[color], bold && 'bold', dim && 'dim', underline && 'underline'];
    const styles = names.filter(Boolean) as Style[];
    for (const [index, part] of text.split('\n').entries()) {
      if (index > 0) [used] = [0, lines.push('')];
      const pieces = wrapLine(part, getWidth(look), used);
      for (const [at, piece] of pieces.entries()) {
        if (at > 0) [used] = [0, lines.push('')];
        if (piece !== '') lines[lines.length - 1] += styles.reduce((shown, one) => look.style(one, shown), piece);
        used += measureColumns(piece);
      }
    }
  }
  return lines;
}

function matchLines({ pattern, total, files, isPartial, matches }: View<'matches'>, context: Context): string[] {
  const more = isPartial ? ' at least' : '';
  const title = `${counted(total, 'match', 'matches')} of ${pattern} in ${counted(files, 'file')}${more}`;
  const lines = matches.map(({ path, line, text }) => `${path}:${line}: ${text.trim()}`);
  return [...fit(title, context.look), ...some(lines, context)];
}

const PLAN_SIGNS: Readonly<Record<PlanEntry['status'], { readonly sign: string; readonly style: Style }>> = {
  pending: { sign: '☐', style: 'white' },
  in_progress: { sign: '▸', style: 'cyan' },
  completed: { sign: '☑', style: 'dim' },
  cancelled: { sign: '☒', style: 'dim' },
};

function planLine({ content, status }: PlanEntry, look: Look): string[] {
  const { sign, style } = PLAN_SIGNS[status];
  return fit(`${sign} ${content}`, look).map((line) => look.style(style, line));
}

function textLines(text: string, context: Context): string[] {
  if (text.trim() === '') return [];
  const lines = parseAnsi(text.trimEnd())
    .map((span) => span.text)
    .join('')
    .split('\n');
  const fitting = lines.flatMap((line) => fit(line, context.look));
  return cut(fitting, { last: OUTPUT_LINES }, context);
}

/** The first of some texts, each on one line. */
function some(texts: readonly string[], context: Context): string[] {
  const lines = texts
    .map((text) => fit(text, context.look))
    .map(([first = '', ...rest]) => (rest.length === 0 ? first : `${first.slice(0, -2)}…`));
  return cut(lines, { first: LIST_LINES }, context);
}

/** Keeps the first lines, or the last ones. */
function cut(lines: readonly string[], limit: { first: number } | { last: number }, context: Context): string[] {
  const most = context.isFull ? FULL_LINES : 'first' in limit ? limit.first : limit.last;
  if (lines.length <= most) return [...lines];
  const hint = context.isFull ? '' : '; --output full shows them';
  const more = context.look.style('dim', `… ${counted(lines.length - most, 'more line')}${hint}`);
  return 'first' in limit ? [...lines.slice(0, most), more] : [more, ...lines.slice(-most)];
}

/** Wraps a text of one line, with what a terminal would obey made visible. */
function fit(text: string, look: Look): string[] {
  return wrapLine(toInertText(text.replaceAll(/\r?\n/g, ' ⏎ ')), getWidth(look));
}

function getWidth({ columns }: Look): number {
  return columns - GUTTER.length - 1;
}

function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
