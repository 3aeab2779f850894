import type { Dirent } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import { type CancellationToken, createInterruptedError, type Json, type Tool, type ToolResult } from '@whoa/core';
import { z } from 'zod';
import { strictInput } from '../../strict-input.ts';
import { makerOfTemp } from '../change/temp-files.ts';
import { defineFileTool } from '../file-tool.ts';
import { notAFolder, notFound, type ResolvedPath } from '../path/resolved-path.ts';
import { rootFrom } from '../path/root.ts';
import { usingResource } from '../path/using-resource.ts';
import type { FileToolOptions } from '../read.ts';
import { showName } from '../text.ts';

const MAX_ENTRIES = 500;
/** Larger folders are listed in part, because all entries would have to be sorted first. */
const MAX_SCANNED = 20_000;

export interface LsInput {
  readonly path: string;
}

const input = strictInput({
  path: z.string().default('.').describe('Folder to list, relative to the root'),
});

/**
 * Creates a tool that lists a folder.
 *
 * @returns The tool `ls`.
 */
export function createLsTool(options: FileToolOptions): Tool<LsInput> {
  const root = rootFrom(options.root);
  return defineFileTool({
    name: 'ls',
    description: `List a folder, at most ${MAX_ENTRIES} entries, sorted; folders end with /, links with @.`,
    inputSchema: input,
    effects: 'read',
    replay: 'safe',
    execute: ({ path }, { token }) =>
      usingResource(root.locate(path), (resolved) => {
        if (resolved.kind === 'missing') throw notFound(path);
        if (resolved.kind !== 'folder') throw notAFolder(path);
        return list(resolved, token);
      }),
  });
}

async function list(resolved: ResolvedPath, token: CancellationToken): Promise<ToolResult> {
  const scan = await scanFolder(resolved.target, token);
  const shown = scan.entries.slice(0, MAX_ENTRIES);
  const entries: Json[] = [];
  for (const entry of shown) {
    const stats = token.isCancelled
      ? undefined
      : await lstat(`${resolved.target}/${entry.name}`).catch(() => undefined);
    entries.push({ name: entry.name, kind: classifyEntry(entry), ...(stats?.isFile() && { bytes: stats.size }) });
  }
  const truncated = scan.partial || token.isCancelled || scan.entries.length > shown.length;
  const result: ToolResult = {
    content: textFor(shown, { truncated, total: scan.partial ? undefined : scan.entries.length }),
    details: { path: resolved.displayPath, entries, truncated },
  };
  if (token.isCancelled) throw createInterruptedError(token, result);
  return result;
}

async function scanFolder(path: string, token: CancellationToken): Promise<{ entries: Dirent[]; partial: boolean }> {
  const entries: Dirent[] = [];
  let partial = false;
  for await (const entry of await opendir(path)) {
    partial = token.isCancelled || entries.length === MAX_SCANNED;
    if (partial) break;
    // Skip temp files of running writes.
    if (makerOfTemp(entry.name) === undefined) entries.push(entry);
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { entries, partial };
}

function textFor(
  entries: readonly Dirent[],
  { truncated, total }: { truncated: boolean; total: number | undefined },
): string {
  if (entries.length === 0 && !truncated) return '(empty)';
  const names = entries.map(
    (entry) => showName(entry.name) + { folder: '/', link: '@', file: '', other: '' }[classifyEntry(entry)],
  );
  const more = `[${entries.length} of ${total ?? `more than ${MAX_SCANNED}`} entries shown; list a folder below or use find]`;
  return [...names, ...(truncated ? [more] : [])].join('\n');
}

function classifyEntry(entry: Dirent): 'folder' | 'link' | 'file' | 'other' {
  if (entry.isDirectory()) return 'folder';
  if (entry.isSymbolicLink()) return 'link';
  return entry.isFile() ? 'file' : 'other';
}
