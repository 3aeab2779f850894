import { createInterruptedError, type Tool, type ToolContext, type ToolResult } from '@whoa/core';
import { defineFileTool } from '../file-tool.ts';
import { type Root, rootFrom } from '../path/root.ts';
import { usingResource } from '../path/using-resource.ts';
import type { FileToolOptions } from '../read.ts';
import { count } from '../text.ts';
import { type FoundLine, parseRecord, verifyLines } from './found-lines.ts';
import { createGlobFilter } from './glob-filter.ts';
import { type GrepInput, grepInput } from './grep-input.ts';
import { CONTEXT_FOR_PEOPLE, describeSearch } from './grep-result.ts';
import { runRipgrep } from './ripgrep.ts';
import { openSearchScope, SEARCH_ARGS, type SearchScope, unreadInside } from './search-scope.ts';

/** The search stops counting after this many matching lines. */
const MAX_COUNTED = 10_000;

/**
 * Creates a tool that searches the content of files. Matches found before a cancel are kept.
 *
 * @returns The tool `grep`.
 */
export function createGrepTool(options: FileToolOptions): Tool<GrepInput> {
  const root = rootFrom(options.root);
  return defineFileTool({
    name: 'grep',
    description:
      'Search file contents with ripgrep. Ignored files (.gitignore), .git and binary files are left out. ' +
      'Shows path, line number and line; ask for context only when you need the lines around.',
    inputSchema: grepInput,
    effects: 'read',
    replay: 'safe',
    execute: (wanted, context) =>
      usingResource(openSearchScope(root, wanted.path), (scope) => search({ root, wanted, scope }, context)),
  });
}

interface Search {
  readonly root: Root;
  readonly wanted: GrepInput;
  readonly scope: SearchScope;
}

async function search({ root, wanted, scope }: Search, { token, update }: ToolContext): Promise<ToolResult> {
  const found = new Findings(wanted);
  const filter = createGlobFilter(scope.file === undefined ? wanted.glob : undefined);
  const { end, skippedRecords, unread } = await runRipgrep({
    args: argsFor(wanted, { file: scope.file, filterArgs: filter.args }),
    cwd: scope.cwd,
    ...(scope.file && { stdin: scope.file.fd }),
    separator: '\n',
    token,
    onRecord(record) {
      const line = parseRecord(record, scope);
      if (line === undefined || !filter.accepts(scope.fromHere(line.name))) return undefined;
      found.add(line);
      // Report only the number: the lines are not yet known to be inside the root.
      if (line.kind === 'match' && isRound(found.matches))
        update({ content: `${count(found.matches, 'match', 'matches')} so far` });
      return found.matches === MAX_COUNTED ? 'stop' : undefined;
    },
  });
  const lines = await verifyLines(root, found.lines, token);
  const result = describeSearch(lines, {
    wanted,
    totalMatches: found.matches,
    totalFiles: found.files.size,
    changed: countMatches(found.lines) - countMatches(lines),
    skippedRecords,
    unread: await unreadInside(root, unread, scope),
    isCounted: end === 'done',
    isCancelled: token.isCancelled,
  });
  if (token.isCancelled) throw createInterruptedError(token, result);
  return result;
}

/** Collects the lines to show, and counts the others. */
class Findings {
  readonly lines: FoundLine[] = [];
  readonly files: Set<string> = new Set();
  readonly #limit: number;
  readonly #context: number;
  #last: FoundLine | undefined;
  matches = 0;

  constructor({ limit, context }: GrepInput) {
    this.#limit = limit;
    this.#context = Math.max(context, CONTEXT_FOR_PEOPLE);
  }

  add(line: FoundLine): void {
    if (line.kind === 'match') {
      this.matches++;
      this.files.add(line.path);
      if (this.matches <= this.#limit) this.#last = line;
    }
    // Past the limit, keep only context of the last shown match.
    const isShown = this.matches <= this.#limit || (this.#last?.path === line.path && this.#isNear(line));
    if (isShown) this.lines.push(this.matches > this.#limit ? { ...line, kind: 'context' } : line);
  }

  #isNear({ line }: FoundLine): boolean {
    return line - this.#last!.line <= this.#context;
  }
}

function countMatches(lines: readonly FoundLine[]): number {
  return lines.filter(({ kind }) => kind === 'match').length;
}

/** 1, 2, 4, 8 …: often enough at the start, and never too often. */
function isRound(amount: number): boolean {
  return (amount & (amount - 1)) === 0;
}

function argsFor(
  { pattern, ignoreCase, literal, context }: GrepInput,
  { file, filterArgs }: { file: SearchScope['file']; filterArgs: readonly string[] },
): string[] {
  return [
    ...SEARCH_ARGS,
    ...filterArgs,
    '--json',
    // Lines are checked by their byte offset, so ripgrep must not convert them.
    '--encoding=none',
    // Matches must reach us before a cancel, not stay in ripgrep's buffer.
    '--line-buffered',
    ...(ignoreCase ? ['--ignore-case'] : []),
    ...(literal ? ['--fixed-strings'] : []),
    `--context=${Math.max(context, CONTEXT_FOR_PEOPLE)}`,
    `--regexp=${pattern}`,
    '--',
    file === undefined ? '.' : '-',
  ];
}
