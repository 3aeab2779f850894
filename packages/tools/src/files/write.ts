import type { Json, Tool } from '@whoa/core';
import { z } from 'zod';
import { type FileInCall, readElsewhere, writeContent } from './contents.ts';
import { defineFileTool } from './file-tool.ts';
import { holding } from './holding.ts';
import { openToRead } from './place.ts';
import type { TextToolOptions } from './read.ts';
import { rootFrom } from './root.ts';
import { count, decodeExactly } from './text.ts';
import { takeTurn } from './turn.ts';
import { diffOf } from './unified-diff.ts';

/** An old version larger than this is not read for the diff. */
const COMPARED_BYTES_MAX = 1_000_000;

export interface WriteInput {
  readonly path: string;
  readonly content: string;
}

const input = z.object({
  path: z.string().describe('File to write, relative to the root; missing folders are created'),
  content: z.string().describe('The whole new content'),
});

/** Writes a whole file: it has the old content or the new one, never a mixture. */
export function writeTool({ contents, ...options }: TextToolOptions): Tool<WriteInput> {
  const root = rootFrom(options.root);
  return defineFileTool({
    name: 'write',
    description: 'Create a file or replace its whole content. To change a part of a file use edit.',
    input,
    effects: 'write',
    // The same content once more is the same file.
    replay: 'safe',
    exclusive: ({ path }) => [root.keyOf(path)],
    execute: ({ path, content }, context) =>
      takeTurn({ root, path, create: true, context }, async (place) => {
        const file = { root, place, contents, context };
        const before = await readForDiff(file);
        await writeContent(file, content);
        const bytes = Buffer.byteLength(content);
        const verb = place.kind === 'missing' ? 'Created' : 'Replaced';
        const details: Json = {
          path: place.shown,
          created: place.kind === 'missing',
          bytes,
          ...(before === undefined ? { diff: null } : diffOf(place.shown, before, content)),
        };
        return { content: `${verb} ${place.shown} (${count(bytes, 'byte')}).`, details };
      }),
  });
}

async function readForDiff(asked: FileInCall): Promise<string | undefined> {
  const { place } = asked;
  if (place.kind === 'missing') return '';
  if (place.kind !== 'file') return undefined;
  return holding(openToRead(place), async (file) => {
    const { size } = await file.stat();
    const onDisk = size > COMPARED_BYTES_MAX ? undefined : decodeExactly(await file.readFile());
    return onDisk === undefined ? undefined : ((await readElsewhere(asked)) ?? onDisk);
  });
}
