import { type ApprovalAnswer, type ApprovalQuestion, formatQuestion } from '@whoa/core/approval';
import { describeLocation } from '@whoa/core/internal';
import type { Output, Style } from './boundary.ts';
import { type TypedInput, TypedLines } from './input/typed-lines.ts';
import type { Screen } from './screen.ts';
import { wrapLine } from './text/wrap.ts';

export interface TerminalAskOptions {
  readonly screen: Screen;
  readonly input?: TypedInput;
  readonly output?: Output;
  /** Returns the reader of the terminal if there is one already. */
  readonly lines?: () => TypedLines | undefined;
}

const CHOICES = '[y]es, [n]o, [a]lways, or say why not';
const MORE = '[Enter] shows the next page, [n]o denies it';
/** Prefixes for lines from the model and for our own notes. No line may start with anything else. */
const GUTTER = '  │ ';
const NOTE = '  · ';
/** Rows of a page that are not lines of the question. */
const ROWS_AROUND = 6;
const MIN_ROWS = 5;
/** The answer to a question that was withdrawn before the user answered. */
export const WITHDRAWN: ApprovalAnswer = { decision: 'no', why: 'cancelled before the user answered' };

/** Asks at a terminal, until the signal withdraws the question. */
type TerminalAsk = (question: ApprovalQuestion, context: { readonly signal: AbortSignal }) => Promise<ApprovalAnswer>;

/**
 * Asks the user at the terminal. The whole question is shown, page by page. Input that was typed before the last page
 * appeared is not an answer.
 */
export function createTerminalAsk({
  screen,
  input = process.stdin,
  output = process.stderr,
  lines,
}: TerminalAskOptions): TerminalAsk {
  return async (question, { signal }) => {
    if (!input.isTTY) return { decision: 'no', why: 'the user could not be asked: standard input is not a terminal' };
    if (signal.aborted) return WITHDRAWN;
    const held = screen.hold();
    const known = lines?.();
    const reader = known ?? new TypedLines({}, input, output);
    try {
      const pages = toPages(question, screen);
      for (const [index, page] of pages.entries()) {
        for (const line of page) held.note(line);
        const isLast = index === pages.length - 1;
        const prompt = `  ${isLast ? CHOICES : `page ${index + 1} of ${pages.length} · ${MORE}`}: `;
        const typed = (await reader.ask(prompt, { held, signal })) ?? 'n';
        if (signal.aborted) return WITHDRAWN;
        const answer = isLast ? answerFrom(typed) : refusalFrom(typed);
        if (answer !== undefined) return answer;
      }
      return { decision: 'no' };
    } finally {
      if (known === undefined) reader[Symbol.dispose]();
      held[Symbol.dispose]();
    }
  };
}

function toPages(question: ApprovalQuestion, screen: Screen): string[][] {
  const { tool, effects, alwaysScope, why } = question;
  const where = describeLocation(question);
  const width = screen.columns - GUTTER.length - 1;
  const lines = formatQuestion(question).flatMap((line, index) => {
    const style = diffStyle(question, index);
    return wrapLine(line.replaceAll('\n', ' ⏎ '), width).map((piece) =>
      style === undefined ? piece : screen.style(style, piece),
    );
  });
  const perPage = Math.max(MIN_ROWS, screen.rows - ROWS_AROUND);
  const pages: string[][] = [];
  for (let at = 0; at === 0 || at < lines.length; at += perPage) {
    pages.push(lines.slice(at, at + perPage).map((line) => GUTTER + line));
  }
  const title = `${screen.style('bold', tool)} wants to ${effects}${where === undefined ? '' : ` ${where}`}`;
  pages[0]!.unshift(`${screen.style('magenta', '?')} ${title}:`);
  const notes = [...(why === undefined ? [] : [`asked because ${why}`]), `always means: ${alwaysScope}`];
  pages.at(-1)!.push(...notes.flatMap((line) => wrapLine(line, width)).map((line) => NOTE + line));
  return pages;
}

/** The colour of a line of `formatQuestion`. The lines of a diff follow the line that names the file. */
function diffStyle({ change }: ApprovalQuestion, index: number): Style | undefined {
  const line = change?.diff[index - 1];
  return line?.startsWith('+') ? 'green' : line?.startsWith('-') ? 'red' : undefined;
}

function answerFrom(typed: string): ApprovalAnswer {
  if (/^a(lways)?$/i.test(typed)) return { decision: 'always' };
  if (/^y(es)?$/i.test(typed)) return { decision: 'yes' };
  return /^(n(o)?)?$/i.test(typed) ? { decision: 'no' } : { decision: 'no', why: typed };
}

/** On every page but the last, only a no is accepted. */
function refusalFrom(typed: string): ApprovalAnswer | undefined {
  const answer = answerFrom(typed);
  return typed === '' || answer.decision !== 'no' ? undefined : answer;
}
