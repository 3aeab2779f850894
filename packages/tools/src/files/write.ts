import { join } from 'node:path';
import type { Json, Tool } from '@whoa/core';
import { z } from 'zod';
import { strictInput } from '../strict-input.ts';
import { checkShown, previewChange, readBefore } from './change/change.ts';
import { FileKeeper } from './change/file-keeper.ts';
import { changeUnderLock } from './change/file-lock.ts';
import { undoChange } from './change/undo-change.ts';
import { createDiff } from './change/unified-diff.ts';
import { writeContent } from './contents.ts';
import { defineFileTool } from './file-tool.ts';
import { rootFrom } from './path/root.ts';
import type { ChangeToolOptions } from './read.ts';
import { count } from './text.ts';

/** An old version larger than this is not read for the diff. */
const MAX_COMPARED_BYTES = 1_000_000;

export interface WriteInput {
  readonly path: string;
  readonly content: string;
}

const input = strictInput({
  path: z.string().describe('File to write, relative to the root; missing folders are created'),
  content: z.string().describe('The whole new content'),
});

/**
 * Creates a tool that writes a whole file: it has the old content or the new one, never a mixture.
 *
 * @returns The tool `write`.
 */
export function createWriteTool({ contents, undoFolder, ...options }: ChangeToolOptions): Tool<WriteInput> {
  const root = rootFrom(options.root);
  const keeper = undoFolder === undefined ? undefined : new FileKeeper(undoFolder);
  return defineFileTool({
    name: 'write',
    description: 'Create a file or replace its whole content. To change a part of a file use edit.',
    inputSchema: input,
    effects: 'write',
    // Writing the same content again has no effect.
    replay: 'safe',
    exclusive: ({ path }) => [root.getLockKey(path)],
    preview: ({ path, content }, { signal }) =>
      previewChange({
        root,
        path,
        contents,
        maxBytes: MAX_COMPARED_BYTES,
        fields: ['content'],
        after: () => content,
        signal,
      }),
    execute: ({ path, content }, context) =>
      changeUnderLock({ root, path, create: true, context }, async (resolved) => {
        const file = { root, resolved, contents, context };
        const before = await readBefore(file, MAX_COMPARED_BYTES);
        checkShown(file, before);
        const isNew = resolved.kind === 'missing';
        const call = { ...context, path: join(root.path, resolved.displayPath) };
        const isKnown = isNew || before.text !== undefined;
        const undo = isKnown ? await keeper?.keep(call, isNew ? undefined : before.text, content) : undefined;
        // What is kept must be what is replaced.
        const { baseVersion } = before;
        await writeContent(file, content, context.approvedPreview || undo ? { baseVersion } : undefined);
        const bytes = Buffer.byteLength(content);
        const verb = isNew ? 'Created' : 'Replaced';
        const details: Json = {
          path: resolved.displayPath,
          created: isNew,
          bytes,
          ...(before.text === undefined ? { diff: null } : createDiff(resolved.displayPath, before.text, content)),
          ...(undo && { undo: { ...undo } }),
        };
        return { content: `${verb} ${resolved.displayPath} (${count(bytes, 'byte')}).`, details };
      }),
    ...(keeper && {
      undo: (result, within) => undoChange({ root, contents, keeper }, result, within),
      undoRepeatable: true,
    }),
  });
}
