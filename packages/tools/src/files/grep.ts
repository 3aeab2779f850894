import { type CancellationToken, interrupted, type Tool, type ToolContext, type ToolResult } from '@whoa/core';
import { z } from 'zod';
import { defineFileTool } from './file-tool.ts';
import { type FoundLine, parseRecord, verifyLines } from './found-lines.ts';
import { holding } from './holding.ts';
import type { FileToolOptions } from './read.ts';
import { runRipgrep } from './ripgrep.ts';
import { type Root, rootFrom } from './root.ts';
import { openSearchScope, SEARCH_ARGS, type SearchScope } from './search-scope.ts';
import { count, cutLine } from './text.ts';

const MATCHES_MAX = 1_000;
const CONTEXT_MAX = 10;
const LINE_CHARS_MAX = 300;

export interface GrepInput {
  readonly pattern: string;
  readonly path: string;
  readonly glob?: string | undefined;
  readonly ignoreCase: boolean;
  readonly literal: boolean;
  readonly context: number;
  readonly limit: number;
}

const input = z.object({
  pattern: z.string().min(1).describe('Regular expression (Rust syntax), or plain text with literal'),
  path: z.string().default('.').describe('File or folder to search, relative to the root'),
  glob: z.string().min(1).optional().describe('Only these files, as in .gitignore: *.ts, !*.test.ts'),
  ignoreCase: z.boolean().default(false),
  literal: z.boolean().default(false).describe('Take the pattern as plain text'),
  context: z.int().min(0).max(CONTEXT_MAX).default(0).describe('Lines to show around each match'),
  limit: z.int().min(1).max(MATCHES_MAX).default(100).describe('How many matching lines to show'),
});

/** Searches the content of files. What was found before a cancel is kept. */
export function grepTool(options: FileToolOptions): Tool<GrepInput> {
  const root = rootFrom(options.root);
  return defineFileTool({
    name: 'grep',
    description:
      'Search file contents with ripgrep. Ignored files (.gitignore), .git and binary files are left out. ' +
      'Answers path, line number and line.',
    input,
    effects: 'read',
    replay: 'safe',
    execute: (wanted, context) =>
      holding(openSearchScope(root, wanted.path), (scope) => search({ root, wanted, scope }, context)),
  });
}

interface Search {
  readonly root: Root;
  readonly wanted: GrepInput;
  readonly scope: SearchScope;
}

async function search({ root, wanted, scope }: Search, { token, update }: ToolContext): Promise<ToolResult> {
  const found: FoundLine[] = [];
  let matches = 0;
  const { end, passedOver } = await runRipgrep({
    args: argsFor(wanted, scope),
    cwd: scope.cwd,
    ...(scope.file && { stdin: scope.file.fd }),
    separator: '\n',
    notFrom: root.path,
    token,
    onRecord(record) {
      const line = parseRecord(record, scope);
      if (line?.kind === 'match' && ++matches > wanted.limit) return 'stop';
      if (line !== undefined) found.push(line);
      // Say how many and not which: what was found is not yet known to be inside.
      if (line?.kind === 'match' && isRound(matches))
        update({ content: `${count(matches, 'match', 'matches')} so far` });
      return undefined;
    },
  });
  const lines = await verifyLines(root, found, token);
  const changed = found.length - lines.length;
  const result = describeLines(lines, { wanted, partial: end === 'stopped', passedOver, changed, token });
  if (token.isCancelled) throw interrupted(token, result);
  return result;
}

/** 1, 2, 4, 8 …: often enough at the start, and never too often. */
function isRound(amount: number): boolean {
  return (amount & (amount - 1)) === 0;
}

function argsFor({ pattern, glob, ignoreCase, literal, context }: GrepInput, { file }: SearchScope): string[] {
  return [
    ...SEARCH_ARGS,
    '--json',
    // Found lines are looked up again by their place in the file, so they must not be converted.
    '--encoding=none',
    // What was found must be here when a cancel comes, and not in a buffer over there.
    '--line-buffered',
    ...(ignoreCase ? ['--ignore-case'] : []),
    ...(literal ? ['--fixed-strings'] : []),
    ...(context > 0 ? [`--context=${context}`] : []),
    ...(glob === undefined ? [] : [`--glob=${glob}`]),
    `--regexp=${pattern}`,
    '--',
    file === undefined ? '.' : '-',
  ];
}

interface SearchEnd {
  readonly wanted: GrepInput;
  readonly partial: boolean;
  readonly passedOver: number;
  readonly changed: number;
  readonly token: CancellationToken;
}

function describeLines(lines: readonly FoundLine[], search: SearchEnd): ToolResult {
  const { wanted, partial, passedOver, changed, token } = search;
  const byFile = Map.groupBy(lines, ({ path }) => path);
  const matches = lines.filter(({ kind }) => kind === 'match');
  const text: string[] = [];
  for (const [path, found] of [...byFile].sort(([a], [b]) => (a < b ? -1 : 1))) {
    text.push(path);
    for (const { line, kind, text: said } of found) {
      text.push(`${line}${kind === 'match' ? ':' : '-'} ${cutLine(said, LINE_CHARS_MAX)}`);
    }
  }
  const said = `${count(matches.length, 'match', 'matches')} in ${count(byFile.size, 'file')}`;
  const notes = [
    partial && !token.isCancelled ? `limit reached, there are more; narrow the search or raise limit` : '',
    passedOver > 0 ? `${count(passedOver, 'very long line')} passed over` : '',
    changed > 0 ? `${count(changed, 'line')} changed during the search and left out` : '',
  ].filter((note) => note !== '');
  text.push(
    matches.length === 0 && notes.length === 0 ? `No match for ${wanted.pattern}.` : `[${[said, ...notes].join('; ')}]`,
  );
  return {
    content: text.join('\n'),
    details: {
      matches: matches.map(({ path, line, column, text: found }) => ({
        path,
        line,
        column,
        text: cutLine(found, LINE_CHARS_MAX),
      })),
      files: byFile.size,
      truncated: partial,
    },
  };
}
