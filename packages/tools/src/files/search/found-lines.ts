import type { FileHandle } from 'node:fs/promises';
import type { CancellationToken } from '@whoa/core';
import { openToRead } from '../path/resolved-path.ts';
import type { Root } from '../path/root.ts';
import { usingResource } from '../path/using-resource.ts';
import type { SearchScope } from './search-scope.ts';

/** A line that a search shows. */
export interface FoundLine {
  readonly kind: 'match' | 'context';
  readonly path: string;
  /** The file name as ripgrep printed it. */
  readonly name: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  readonly text: string;
  /** The offset of the line in its file, and its bytes. */
  readonly offset: number;
  readonly bytes: Buffer;
}

/** Text, or base64 where the bytes are not UTF-8. */
type Arbitrary = { readonly text?: string; readonly bytes?: string };

interface SearchRecord {
  readonly type: string;
  readonly data: {
    readonly path?: Arbitrary;
    readonly lines?: Arbitrary;
    readonly line_number?: number;
    readonly absolute_offset?: number;
    readonly submatches?: readonly { readonly start: number }[];
  };
}

/** Reads one record of `rg --json`; `undefined` for those that show no line, and for names that are not text. */
export function parseRecord(record: string, scope: SearchScope): FoundLine | undefined {
  const { type, data } = JSON.parse(record) as SearchRecord;
  const name = data.path?.text;
  if ((type !== 'match' && type !== 'context') || name === undefined || data.lines === undefined) return undefined;
  const bytes = decodeBytes(data.lines);
  const start = data.submatches?.[0]?.start ?? 0;
  return {
    kind: type,
    path: scope.fromRoot(name),
    name,
    line: data.line_number ?? 1,
    column: bytes.subarray(0, start).toString().length + 1,
    text: bytes.toString().replace(/\r?\n$/, ''),
    offset: data.absolute_offset ?? 0,
    bytes,
  };
}

function decodeBytes({ text, bytes }: Arbitrary): Buffer {
  return text === undefined ? Buffer.from(bytes ?? '', 'base64') : Buffer.from(text);
}

/**
 * Keeps the lines that are still where they were found, in a file inside the root. A search walks by name, so a link made
 * meanwhile can lead it outside; lines from there are dropped here.
 */
export async function verifyLines(
  root: Root,
  lines: readonly FoundLine[],
  token: CancellationToken,
): Promise<FoundLine[]> {
  const verified: FoundLine[] = [];
  for (const [path, found] of Map.groupBy(lines, (line) => line.path)) {
    // After a kill no one waits for the result.
    if (token.level === 'kill') break;
    verified.push(...(await findPresentLines(root, path, found)));
  }
  return verified;
}

async function findPresentLines(root: Root, path: string, lines: readonly FoundLine[]): Promise<FoundLine[]> {
  try {
    return await usingResource(root.locate(path), (resolved) => {
      if (resolved.kind !== 'file' || resolved.displayPath !== path) return [];
      return usingResource(openToRead(resolved), async (file) => {
        const kept: FoundLine[] = [];
        for (const block of groupLines(lines)) kept.push(...(await findStillPresent(file, block)));
        return kept;
      });
    });
  } catch {
    // The file was removed or is no longer inside the root.
    return [];
  }
}

/** Groups consecutive lines, to check them together. */
function groupLines(lines: readonly FoundLine[]): FoundLine[][] {
  const blocks: FoundLine[][] = [];
  for (const line of lines) {
    const last = blocks.at(-1)?.at(-1);
    if (last !== undefined && last.offset + last.bytes.length === line.offset) blocks.at(-1)!.push(line);
    else blocks.push([line]);
  }
  return blocks;
}

async function findStillPresent(file: FileHandle, block: readonly FoundLine[]): Promise<readonly FoundLine[]> {
  const start = block[0]!.offset;
  const there = Buffer.alloc(block.reduce((length, { bytes }) => length + bytes.length, 0));
  const { bytesRead } = await file.read(there, 0, there.length, start);
  const read = there.subarray(0, bytesRead);
  return block.filter(({ offset, bytes }) =>
    read.subarray(offset - start, offset - start + bytes.length).equals(bytes),
  );
}
