import { join } from 'node:path';
import type { Tool } from '@whoa/core';
import { z } from 'zod';
import { strictInput } from '../strict-input.ts';
import { checkShown, previewChange, readBefore } from './change/change.ts';
import { FileKeeper } from './change/file-keeper.ts';
import { changeUnderLock } from './change/file-lock.ts';
import { undoChange } from './change/undo-change.ts';
import { createDiff } from './change/unified-diff.ts';
import { writeContent } from './contents.ts';
import { defineFileTool } from './file-tool.ts';
import { notAFile, type ResolvedPath } from './path/resolved-path.ts';
import { rootFrom } from './path/root.ts';
import type { ChangeToolOptions } from './read.ts';
import { count } from './text.ts';

const MAX_EDITED_BYTES = 32_000_000;
const MAX_EDITS = 100;

const edit = strictInput({
  oldText: z.string().min(1).describe('Exact text to replace; it must occur exactly once in the file'),
  newText: z.string().describe('Text to put in its place'),
});
export interface Edit {
  readonly oldText: string;
  readonly newText: string;
}

export interface EditInput {
  readonly path: string;
  readonly edits: readonly Edit[];
}

const input = strictInput({
  path: z.string().describe('File to edit, relative to the root'),
  edits: z.array(edit).min(1).max(MAX_EDITS).describe('Replacements, all made in the original text, all or none'),
});

/**
 * Creates a tool that replaces texts that occur exactly once in a file; all of them or none.
 *
 * @returns The tool `edit`.
 */
export function createEditTool({ contents, undoFolder, ...options }: ChangeToolOptions): Tool<EditInput> {
  const root = rootFrom(options.root);
  const keeper = undoFolder === undefined ? undefined : new FileKeeper(undoFolder);
  return defineFileTool({
    name: 'edit',
    description:
      'Replace exact pieces of a file. Each oldText must occur exactly once and they must not overlap; ' +
      'add surrounding lines to make one unique.',
    inputSchema: input,
    effects: 'write',
    replay: 'never',
    exclusive: ({ path }) => [root.getLockKey(path)],
    preview: ({ path, edits }, { signal }) =>
      previewChange({
        root,
        path,
        contents,
        maxBytes: MAX_EDITED_BYTES,
        fields: ['edits'],
        after: (text, resolved) => applyEdits(textToEdit(text, resolved), edits, path),
        signal,
      }),
    execute: ({ path, edits }, context) =>
      changeUnderLock({ root, path, create: false, context }, async (resolved) => {
        if (resolved.kind !== 'file') throw notAFile(path, resolved.kind);
        const file = { root, resolved, contents, context };
        const before = await readBefore(file, MAX_EDITED_BYTES);
        checkShown(file, before);
        const text = textToEdit(before.text, resolved);
        const after = applyEdits(text, edits, path);
        const call = { ...context, path: join(root.path, resolved.displayPath) };
        const undo = await keeper?.keep(call, text, after);
        await writeContent(file, after, { baseVersion: before.baseVersion });
        const diff = createDiff(resolved.displayPath, text, after);
        const lines = diff.changedLines.join(', ');
        return {
          content: `Edited ${resolved.displayPath}: ${count(edits.length, 'replacement')} at line ${lines}.`,
          details: {
            path: resolved.displayPath,
            replacements: edits.length,
            ...diff,
            ...(undo && { undo: { ...undo } }),
          },
        };
      }),
    ...(keeper && {
      undo: (result, within) => undoChange({ root, contents, keeper }, result, within),
      undoRepeatable: true,
    }),
  });
}

function textToEdit(text: string | undefined, { displayPath, kind }: ResolvedPath): string {
  if (kind !== 'file') throw notAFile(displayPath, kind);
  if (text !== undefined) return text;
  throw new Error(
    `'${displayPath}' is larger than ${MAX_EDITED_BYTES} bytes or not UTF-8 text; an edit would damage it`,
  );
}

interface Hit {
  readonly start: number;
  readonly end: number;
  readonly newText: string;
  readonly number: number;
}

/** Applies all replacements to the original text. Throws an error that names the edit if one does not match exactly once. */
export function applyEdits(text: string, edits: readonly Edit[], path: string): string {
  const hits = edits.map(({ oldText, newText }, index) => {
    // Models write line feeds, whatever the file uses.
    const forms = [oldText, withBreaks(oldText, '\r\n'), withBreaks(oldText, '\n')];
    const own = forms.find((form) => text.includes(form)) ?? oldText;
    const start = findOnce(text, own, { path, number: index + 1 });
    const end = start + own.length;
    return { start, end, newText: withBreaks(newText, breaksAt(text, start, end)), number: index + 1 };
  });
  hits.sort((a, b) => a.start - b.start);
  let result = '';
  let done = 0;
  let previous: Hit | undefined;
  for (const hit of hits) {
    if (hit.start < done)
      throw new Error(`Edits ${previous?.number} and ${hit.number} of '${path}' overlap; join them`);
    result += text.slice(done, hit.start) + hit.newText;
    done = hit.end;
    previous = hit;
  }
  result += text.slice(done);
  if (result === text) throw new Error(`The edits of '${path}' change nothing; oldText and newText are the same`);
  return result;
}

function withBreaks(piece: string, breaks: string): string {
  return piece.replace(/\r?\n/g, breaks);
}

/** The line breaks of a part of a file, otherwise those around it: a file may have both kinds. */
function breaksAt(text: string, start: number, end: number): string {
  const inside = text.slice(start, end).indexOf('\n');
  const after = text.indexOf('\n', end);
  const at = inside !== -1 ? start + inside : after !== -1 ? after : text.lastIndexOf('\n', start);
  return at > 0 && text[at - 1] === '\r' ? '\r\n' : '\n';
}

function findOnce(text: string, piece: string, { path, number }: { path: string; number: number }): number {
  const start = text.indexOf(piece);
  if (start === -1)
    throw new Error(`Edit ${number}: oldText does not occur in '${path}'; read the file and copy it exactly`);
  if (text.indexOf(piece, start + 1) !== -1) {
    throw new Error(
      `Edit ${number}: oldText occurs more than once in '${path}'; add surrounding lines to make it unique`,
    );
  }
  return start;
}
