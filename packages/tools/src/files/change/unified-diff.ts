import { formatPatch, structuredPatch } from 'diff';

/** Give up a longer comparison: it blocks the event loop. */
const MAX_DIFF_MS = 100;
const MAX_DIFF_CHARS = 4_000_000;
const MAX_SHOWN_CHARS = 100_000;

export interface FileDiff {
  /** Unified, empty if no line differs; `null` where the versions are too large or too different to compare. */
  readonly diff: string | null;
  readonly linesAdded: number;
  readonly linesRemoved: number;
  /** The first line of each change in the new version. */
  readonly changedLines: readonly number[];
}

/** Compares two versions of a file. */
export function createDiff(path: string, before: string, after: string): FileDiff {
  const replaced = { linesAdded: countLines(after), linesRemoved: countLines(before), changedLines: [1] };
  if (before.length + after.length > MAX_DIFF_CHARS) return { diff: null, ...replaced };
  const options = { context: 3, timeout: MAX_DIFF_MS };
  const patch = structuredPatch(path, path, before, after, undefined, undefined, options);
  if (patch === undefined) return { diff: null, ...replaced };
  const text = formatPatch(patch);
  const lines = patch.hunks.flatMap((hunk) => hunk.lines);
  return {
    diff: text.length > MAX_SHOWN_CHARS ? null : lines.length === 0 ? '' : text.slice(text.indexOf('---')),
    linesAdded: lines.filter((line) => line.startsWith('+')).length,
    linesRemoved: lines.filter((line) => line.startsWith('-')).length,
    changedLines: patch.hunks.map(
      ({ newStart, lines: shown }) => newStart + shown.findIndex((line) => !line.startsWith(' ')),
    ),
  };
}

function countLines(text: string): number {
  return text === '' ? 0 : text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
}
