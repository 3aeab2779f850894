import { type CancellationToken, createInterruptedError, type Tool, type ToolResult } from '@whoa/core';
import { z } from 'zod';
import { strictInput } from '../../strict-input.ts';
import { defineFileTool } from '../file-tool.ts';
import { notAFolder } from '../path/resolved-path.ts';
import { type Root, rootFrom } from '../path/root.ts';
import { usingResource } from '../path/using-resource.ts';
import type { FileToolOptions } from '../read.ts';
import { count, showName } from '../text.ts';
import { createGlobFilter } from './glob-filter.ts';
import { runRipgrep } from './ripgrep.ts';
import {
  describeUnread,
  kindInside,
  openSearchScope,
  SEARCH_ARGS,
  type SearchScope,
  unreadInside,
} from './search-scope.ts';

const MAX_FILES = 1_000;
/** How many paths are checked at a time, and how long that may continue after a cancel. */
const MAX_TOGETHER = 16;
const FINAL_READ_TIMEOUT_MS = 50;

export interface FindInput {
  readonly glob: string;
  readonly path: string;
  readonly limit: number;
}

const input = strictInput({
  glob: z.string().min(1).describe('Which files, as in .gitignore: *.ts, src/**/*.test.ts'),
  path: z.string().default('.').describe('Folder to search, relative to the root'),
  limit: z.int().min(1).max(MAX_FILES).default(200).describe('How many files to show'),
});

/**
 * Creates a tool that finds files by name.
 *
 * @returns The tool `find`.
 */
export function createFindTool(options: FileToolOptions): Tool<FindInput> {
  const root = rootFrom(options.root);
  return defineFileTool({
    name: 'find',
    description: 'Find files by name with a glob. Ignored folders (.gitignore) and .git are left out.',
    inputSchema: input,
    effects: 'read',
    replay: 'safe',
    execute: (wanted, { token }) =>
      usingResource(openSearchScope(root, wanted.path), (scope) => search(root, wanted, { scope, token })),
  });
}

async function search(
  root: Root,
  { glob, path, limit }: FindInput,
  { scope, token }: { scope: SearchScope; token: CancellationToken },
): Promise<ToolResult> {
  if (scope.resolved.kind !== 'folder') throw notAFolder(path);
  const found: string[] = [];
  const filter = createGlobFilter(glob);
  const { end, unread: stderrTail } = await runRipgrep({
    args: [...SEARCH_ARGS, ...filter.args, '--files', '--null', '.'],
    cwd: scope.cwd,
    separator: '\0',
    token,
    onRecord(record) {
      if (filter.accepts(scope.fromHere(record))) found.push(scope.fromRoot(record));
      return found.length > limit ? 'stop' : undefined;
    },
  });
  const files = await onlyInside(root, found.slice(0, limit), token);
  const unread = await unreadInside(root, stderrTail, scope);
  const result = describeFiles(files, { glob, unread, partial: end === 'stopped', token });
  if (token.isCancelled) throw createInterruptedError(token, result);
  return result;
}

/** Keeps only paths that resolve inside the root: a link made meanwhile can lead the search itself outside. */
async function onlyInside(root: Root, paths: readonly string[], token: CancellationToken): Promise<string[]> {
  const inside: string[] = [];
  const cancelled = token.isCancelled ? performance.now() : undefined;
  for (let start = 0; start < paths.length; start += MAX_TOGETHER) {
    if (isLate(token, cancelled)) break;
    const some = paths.slice(start, start + MAX_TOGETHER);
    const kinds = await Promise.all(some.map((path) => kindInside(root, path)));
    inside.push(...some.filter((_path, index) => kinds[index] === 'file'));
  }
  return inside.sort();
}

/** A cancelled search returns what was found, but does not wait until all of it is checked. */
function isLate({ isCancelled, level }: CancellationToken, since: number | undefined): boolean {
  if (!isCancelled || level === 'kill') return level === 'kill';
  return since === undefined || performance.now() - since > FINAL_READ_TIMEOUT_MS;
}

interface SearchSummary {
  readonly glob: string;
  readonly unread: readonly string[];
  readonly partial: boolean;
  readonly token: CancellationToken;
}

function describeFiles(files: readonly string[], { glob, unread, partial, token }: SearchSummary): ToolResult {
  const more = partial && !token.isCancelled ? 'there may be more; narrow the glob or raise limit' : '';
  const notes = [more, describeUnread(unread)].filter((note) => note !== '');
  const shown = token.isCancelled ? `${count(files.length, 'file')} so far` : `${count(files.length, 'file')} shown`;
  const isWhole = !token.isCancelled && notes.length === 0;
  const last = isWhole
    ? files.length === 0
      ? [`No file matches ${glob}.`]
      : []
    : [`[${[shown, ...notes].join(', ')}]`];
  return {
    content: [...files.map(showName), ...last].join('\n'),
    details: { files: [...files], truncated: partial, unread: [...unread] },
  };
}
