import type { Json, ToolResult } from '@whoa/core';
import { count, cutAround, cutLine, showName } from '../text.ts';
import type { FoundLine } from './found-lines.ts';
import type { GrepInput } from './grep-input.ts';
import { describeUnread } from './search-scope.ts';

/** Context lines for users. A model gets them only if it asks. */
export const CONTEXT_FOR_PEOPLE = 2;

const MAX_MODEL_LINE_CHARS = 200;
const MAX_MODEL_CHARS = 50_000;
const MAX_PEOPLE_LINE_CHARS = 300;
/** Above this size users see the matches without context. */
const MAX_PEOPLE_CONTEXT_CHARS = 100_000;

export interface SearchSummary {
  readonly wanted: GrepInput;
  readonly totalMatches: number;
  readonly totalFiles: number;
  /** Matches that were no longer where they were found. */
  readonly changed: number;
  readonly skippedRecords: number;
  readonly unread: readonly string[];
  /** Whether the totals are complete. */
  readonly isCounted: boolean;
  readonly isCancelled: boolean;
}

/** The model gets each matching line once, and the totals. Users also get the query and the context. */
export function describeSearch(lines: readonly FoundLine[], end: SearchSummary): ToolResult {
  const byFile = [...Map.groupBy(lines, ({ path }) => path)].sort(([a], [b]) => (a < b ? -1 : 1));
  const { wanted, unread, isCounted } = end;
  const totalMatches = end.totalMatches - end.changed;
  const matches = matchesWithContext(byFile, wanted);
  return {
    content: textFor(byFile, { ...end, totalMatches }),
    details: {
      pattern: wanted.pattern,
      path: wanted.path,
      ...(wanted.glob !== undefined && { glob: wanted.glob }),
      totalMatches,
      totalFiles: end.totalFiles,
      totalsAreWhole: isCounted,
      matches,
      truncated: !isCounted || matches.length < totalMatches,
      unread: [...unread],
    },
  };
}

type LinesOfFile = readonly [path: string, lines: readonly FoundLine[]];

function textFor(byFile: readonly LinesOfFile[], end: SearchSummary): string {
  const { wanted } = end;
  const text: string[] = [];
  let shown = 0;
  let characters = 0;
  for (const [path, lines] of byFile) {
    const asked = askedFor(lines, wanted.context);
    if (asked.length === 0 || characters > MAX_MODEL_CHARS) continue;
    text.push(showName(path));
    for (const line of asked) {
      if (characters > MAX_MODEL_CHARS) break;
      const shownLine = `${line.line}${line.kind === 'match' ? ':' : '-'} ${lineForModel(line, wanted)}`;
      characters += shownLine.length;
      shown += line.kind === 'match' ? 1 : 0;
      text.push(shownLine);
    }
  }
  return [...text, totalsFor(shown, end)].join('\n');
}

/** The matches with the context that the model asked for. */
function askedFor(lines: readonly FoundLine[], context: number): readonly FoundLine[] {
  const near = new Set<number>();
  for (const { kind, line } of lines) {
    if (kind === 'match') for (let offset = -context; offset <= context; offset++) near.add(line + offset);
  }
  return lines.filter(({ line }) => near.has(line));
}

/** Indentation matters only together with context lines. */
function lineForModel({ text, column, kind }: FoundLine, { context }: GrepInput): string {
  if (kind === 'context') return cutLine(text, MAX_MODEL_LINE_CHARS);
  const shownText = context > 0 ? text : text.trimStart();
  return cutAround(shownText, column - 1 - (text.length - shownText.length), MAX_MODEL_LINE_CHARS);
}

function totalsFor(shown: number, end: SearchSummary): string {
  const { wanted, totalMatches, totalFiles, changed, skippedRecords, unread, isCounted, isCancelled } = end;
  const isMore = totalMatches > shown || (!isCounted && !isCancelled);
  const notes = [
    isMore && !isCancelled ? `${shown} shown; narrow the search or raise limit` : '',
    isCancelled ? 'the search was stopped' : '',
    skippedRecords > 0 ? `${count(skippedRecords, 'very long line')} passed over` : '',
    changed > 0 ? `${count(changed, 'match', 'matches')} changed during the search and left out` : '',
    describeUnread(unread),
  ].filter((note) => note !== '');
  if (totalMatches === 0 && notes.length === 0) return `No match for ${wanted.pattern}.`;
  const atLeast = isCounted || isCancelled ? '' : 'at least ';
  const totals = `${atLeast}${count(totalMatches, 'match', 'matches')} in ${count(totalFiles, 'file')}`;
  return `[${[totals, ...notes].join('; ')}]`;
}

function matchesWithContext(byFile: readonly LinesOfFile[], { context }: GrepInput): Json[] {
  const reach = Math.max(context, CONTEXT_FOR_PEOPLE);
  let characters = 0;
  return byFile.flatMap(([path, lines]) =>
    lines.flatMap((match, index) => {
      if (match.kind !== 'match') return [];
      const around =
        characters > MAX_PEOPLE_CONTEXT_CHARS ? [] : lines.slice(Math.max(0, index - reach), index + reach + 1);
      const before = around.filter(({ line }) => line < match.line && match.line - line <= reach).map(lineForPeople);
      const after = around.filter(({ line }) => line > match.line && line - match.line <= reach).map(lineForPeople);
      characters += [...before, ...after].join('').length;
      return [{ path, line: match.line, column: match.column, text: lineForPeople(match), before, after }];
    }),
  );
}

function lineForPeople({ text }: FoundLine): string {
  return cutLine(text, MAX_PEOPLE_LINE_CHARS);
}
