import { type Content, type Json, toText } from '../tool/result.ts';
import { withoutUndefined } from './ansi.ts';
import { type DiffHunk, parseDiff } from './diff.ts';

/** A line that a search found. */
interface FoundMatch {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  /** Where the match begins in `text`, counted from 1. */
  readonly column?: number;
}

/** A step of a plan. */
export interface PlanEntry {
  readonly content: string;
  readonly status: 'pending' | 'in_progress' | 'completed' | 'cancelled';
  readonly priority: 'high' | 'medium' | 'low';
}

/** What people see of a call. `json` is for details in their own shape, `text` for calls without details. */
export type DetailsView =
  | {
      readonly kind: 'diff';
      readonly path: string;
      readonly isNew: boolean;
      readonly added: number;
      readonly removed: number;
      /** Empty where the versions were too large to compare. */
      readonly hunks: readonly DiffHunk[];
    }
  | {
      readonly kind: 'matches';
      readonly pattern: string;
      readonly total: number;
      readonly files: number;
      /** There may be more than `total`. */
      readonly isPartial: boolean;
      readonly matches: readonly FoundMatch[];
    }
  | {
      readonly kind: 'output';
      readonly command?: string;
      /** As the terminal got it, escape sequences included: print it by `parseAnsi`. */
      readonly head: string;
      readonly tail: string;
      readonly bytes: number;
      readonly lines: number;
      /** What is missing between `head` and `tail`. */
      readonly omittedBytes: number;
      /** How the process ended; left out while it runs. */
      readonly exit?: string;
      /** A file with all of it. */
      readonly logPath?: string;
      readonly processesEnded?: number;
      readonly survivors?: number;
    }
  | { readonly kind: 'files'; readonly paths: readonly string[]; readonly isPartial: boolean }
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly lines?: number;
      readonly bytes?: number;
      readonly text: string;
    }
  | { readonly kind: 'plan'; readonly entries: readonly PlanEntry[] }
  | {
      readonly kind: 'images';
      readonly images: readonly { readonly mediaType: string; readonly data: string }[];
      readonly text: string;
    }
  | { readonly kind: 'json'; readonly value: Json; readonly text: string }
  | { readonly kind: 'text'; readonly text: string };

/**
 * Describes what a call returned, for people. It goes by the shape of `details`, not by the name of the tool, so your own
 * tools are shown as well as ours: `{ path, diff }` is a change of a file, `{ output: { tail, … } }` the output of a
 * command, `{ matches: [{ path, line, text }] }` a search, `{ plan: [{ content, status }] }` a plan. Details of any
 * shape are accepted; unexpected ones are shown as JSON.
 *
 * @returns The view.
 */
export function toDetailsView(details: Json | undefined, content: Content = ''): DetailsView {
  const parts = typeof content === 'string' ? [] : content;
  const images = parts.filter((part) => part.type === 'image').map(({ mediaType, data }) => ({ mediaType, data }));
  if (images.length > 0) return { kind: 'images', images, text: toText(parts.filter(({ type }) => type === 'text')) };
  const text = toText(content);
  if (details === undefined || details === null) return { kind: 'text', text };
  const views = isRecord(details) ? VIEWS.map((toView) => toView(details, text)) : [];
  return views.find((view) => view !== undefined) ?? { kind: 'json', value: details, text };
}

type View<Kind extends DetailsView['kind']> = Extract<DetailsView, { kind: Kind }>;
type Fields = { readonly [name: string]: Json | undefined };
type ToView = (details: Fields, text: string) => DetailsView | undefined;

const VIEWS: readonly ToView[] = [planView, diffView, outputView, matchesView, filesView, fileView];

function planView({ plan }: Fields): DetailsView | undefined {
  if (!Array.isArray(plan)) return undefined;
  const entries = plan.filter(isRecord).map(({ content, status, priority }) => ({
    content: toPlainText(content),
    status: findAllowed(status, ['pending', 'in_progress', 'completed', 'cancelled']) ?? 'pending',
    priority: findAllowed(priority, ['high', 'medium', 'low']) ?? 'medium',
  }));
  return { kind: 'plan', entries };
}

function diffView(fields: Fields): DetailsView | undefined {
  const { path, diff, oldText, newText, created, linesAdded, linesRemoved } = fields;
  const isCompared = typeof diff === 'string' || diff === null;
  if (typeof path !== 'string' || (!isCompared && typeof newText !== 'string')) return undefined;
  const hunks = isCompared ? parseDiff(diff ?? '') : [wholeChange(toPlainText(oldText), toPlainText(newText))];
  const isNew = isCompared ? created === true : typeof oldText !== 'string';
  const added = findNumber(linesAdded) ?? countLines(hunks, 'add');
  return { kind: 'diff', path, isNew, added, removed: findNumber(linesRemoved) ?? countLines(hunks, 'remove'), hunks };
}

/** Two texts as one hunk, without comparing them. */
function wholeChange(before: string, after: string): DiffHunk {
  const splitLines = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'));
  return {
    oldStart: 1,
    newStart: 1,
    lines: [
      ...splitLines(before).map((text, index) => ({ kind: 'remove' as const, text, oldLine: index + 1 })),
      ...splitLines(after).map((text, index) => ({ kind: 'add' as const, text, newLine: index + 1 })),
    ],
  };
}

function outputView(details: Fields): DetailsView | undefined {
  const { command, output, logPath, cleanup } = details;
  if (!isRecord(output) || typeof output['tail'] !== 'string') return undefined;
  const { head, tail, bytes, lines, omittedBytes } = output;
  const { ended, survivors } = isRecord(cleanup) ? cleanup : {};
  return withoutUndefined<View<'output'>>({
    kind: 'output',
    command: textOrNone(command),
    head: toPlainText(head),
    tail,
    bytes: findNumber(bytes) ?? tail.length,
    lines: findNumber(lines) ?? 0,
    omittedBytes: findNumber(omittedBytes) ?? 0,
    exit: describeExit(details),
    logPath: textOrNone(logPath),
    processesEnded: findNumber(ended),
    survivors: findNumber(survivors),
  });
}

function describeExit({ exitCode, signal, timedOut }: Fields): string | undefined {
  if (timedOut === true) return 'stopped at its time limit';
  if (typeof signal === 'string') return `ended by ${signal}`;
  return typeof exitCode === 'number' ? `exit code ${exitCode}` : undefined;
}

function matchesView(details: Fields): DetailsView | undefined {
  const { pattern, matches, totalMatches, totalFiles, truncated, totalsAreWhole } = details;
  if (!Array.isArray(matches)) return undefined;
  const found = matches.filter(isRecord).flatMap((match): FoundMatch[] => {
    const { path, line, text, column } = match;
    if (typeof path !== 'string' || typeof line !== 'number') return [];
    return [{ path, line, text: toPlainText(text), ...(typeof column === 'number' && { column }) }];
  });
  return {
    kind: 'matches',
    pattern: toPlainText(pattern),
    total: findNumber(totalMatches) ?? found.length,
    files: findNumber(totalFiles) ?? new Set(found.map(({ path }) => path)).size,
    isPartial: truncated === true || totalsAreWhole === false,
    matches: found,
  };
}

function filesView({ files, entries, truncated }: Fields): DetailsView | undefined {
  const listed = files ?? entries;
  if (!Array.isArray(listed)) return undefined;
  const paths = listed.flatMap((one) => {
    if (typeof one === 'string') return [one];
    const { name, path, kind } = isRecord(one) ? one : {};
    const called = path ?? name;
    return typeof called === 'string' ? [kind === 'folder' || kind === 'directory' ? `${called}/` : called] : [];
  });
  return { kind: 'files', paths, isPartial: truncated === true };
}

function fileView({ path, firstLine, lines, bytes }: Fields, text: string): DetailsView | undefined {
  if (typeof path !== 'string' || typeof firstLine !== 'number') return undefined;
  const counts = { lines: findNumber(lines), bytes: findNumber(bytes) };
  return withoutUndefined<View<'file'>>({ kind: 'file', path, ...counts, text });
}

function countLines(hunks: readonly DiffHunk[], kind: 'add' | 'remove'): number {
  return hunks.reduce((sum, { lines }) => sum + lines.filter((line) => line.kind === kind).length, 0);
}

function toPlainText(value: Json | undefined): string {
  return textOrNone(value) ?? '';
}

function textOrNone(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function findNumber(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function findAllowed<const T extends string>(value: unknown, allowed: readonly T[]): T | undefined {
  return allowed.find((one) => one === value);
}

function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
