import { type CancellationToken, interrupted, type Tool, type ToolResult } from '@whoa/core';
import { z } from 'zod';
import { defineFileTool } from './file-tool.ts';
import { holding } from './holding.ts';
import { notAFolder } from './place.ts';
import type { FileToolOptions } from './read.ts';
import { runRipgrep } from './ripgrep.ts';
import { type Root, rootFrom } from './root.ts';
import { openSearchScope, SEARCH_ARGS, type SearchScope } from './search-scope.ts';

const FILES_MAX = 1_000;

export interface FindInput {
  readonly glob: string;
  readonly path: string;
  readonly limit: number;
}

const input = z.object({
  glob: z.string().min(1).describe('Which files, as in .gitignore: *.ts, src/**/*.test.ts'),
  path: z.string().default('.').describe('Folder to search, relative to the root'),
  limit: z.int().min(1).max(FILES_MAX).default(200).describe('How many files to show'),
});

/** Finds files by name. */
export function findTool(options: FileToolOptions): Tool<FindInput> {
  const root = rootFrom(options.root);
  return defineFileTool({
    name: 'find',
    description: 'Find files by name with a glob. Ignored folders (.gitignore) and .git are left out.',
    input,
    effects: 'read',
    replay: 'safe',
    execute: (wanted, { token }) =>
      holding(openSearchScope(root, wanted.path), (scope) => search(root, wanted, { scope, token })),
  });
}

async function search(
  root: Root,
  { glob, path, limit }: FindInput,
  { scope, token }: { scope: SearchScope; token: CancellationToken },
): Promise<ToolResult> {
  if (scope.place.kind !== 'folder') throw notAFolder(path);
  const found: string[] = [];
  const { end } = await runRipgrep({
    args: [...SEARCH_ARGS, '--files', '--null', `--glob=${glob}`, '.'],
    cwd: scope.cwd,
    separator: '\0',
    notFrom: root.path,
    token,
    onRecord(record) {
      found.push(scope.fromRoot(record));
      return found.length > limit ? 'stop' : undefined;
    },
  });
  const files = await onlyInside(root, found.slice(0, limit), token);
  const result = describeFiles(files, { glob, partial: end === 'stopped' });
  if (token.isCancelled) throw interrupted(token, result);
  return result;
}

/** Names are shown only if they are found again inside: the search itself can be led outside by a link made meanwhile. */
async function onlyInside(root: Root, paths: readonly string[], token: CancellationToken): Promise<string[]> {
  const inside: string[] = [];
  for (const path of paths) {
    // Once killed nobody waits any more.
    if (token.level === 'kill') break;
    const kind = await kindOf(root, path);
    if (kind === 'file') inside.push(path);
  }
  return inside.sort();
}

async function kindOf(root: Root, path: string): Promise<string | undefined> {
  try {
    return await holding(root.locate(path), (place) => (place.shown === path ? place.kind : undefined));
  } catch {
    return undefined;
  }
}

function describeFiles(files: readonly string[], { glob, partial }: { glob: string; partial: boolean }): ToolResult {
  const more = partial ? `[${files.length} files shown, there may be more; narrow the glob or raise limit]` : undefined;
  const nothing = files.length === 0 && !partial ? `No file matches ${glob}.` : undefined;
  return {
    content: [...files, more ?? nothing].filter((line) => line !== undefined).join('\n'),
    details: { files: [...files], truncated: partial },
  };
}
