import type { FileHandle } from 'node:fs/promises';
import { extname } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { type CancellationToken, createInterruptedError, type Tool, type ToolResult } from '@whoa/core';
import { z } from 'zod';
import { strictInput } from '../strict-input.ts';
import { type FileContents, type FileInCall, readElsewhere } from './contents.ts';
import { defineFileTool } from './file-tool.ts';
import { notAFile, openToRead } from './path/resolved-path.ts';
import { type Root, rootFrom } from './path/root.ts';
import { usingResource } from './path/using-resource.ts';
import { count, cutLine, isBinary } from './text.ts';

const MAX_LINES = 2_000;
const MAX_CHARS = 50_000;
const MAX_LINE_CHARS = 2_000;
const CHUNK_BYTES = 65_536;
/** Of larger files, only the wanted lines are requested. */
const MAX_WHOLE_BYTES = 1_000_000;
const MAX_IMAGE_BYTES = 5_000_000;
const IMAGES: Readonly<Record<string, string>> = {
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
};

export interface ReadInput {
  readonly path: string;
  readonly offset?: number | undefined;
  readonly limit?: number | undefined;
}

const input = strictInput({
  path: z.string().describe('File to read, relative to the root'),
  offset: z.int().min(1).optional().describe('First line to read, from 1'),
  limit: z.int().min(1).max(MAX_LINES).optional().describe(`How many lines, at most ${MAX_LINES}`),
});

export interface FileToolOptions {
  /** The folder the tool may use: a path, or a root shared with other tools. */
  readonly root: string | Root;
}

export interface TextToolOptions extends FileToolOptions {
  /** Reads and writes files elsewhere than on the disk. */
  readonly contents?: FileContents | undefined;
}

export interface ChangeToolOptions extends TextToolOptions {
  /** A private folder in which old contents are kept, so that calls can be undone. Without it they cannot. */
  readonly undoFolder?: string | undefined;
}

/**
 * Creates a tool that reads a text file, or a part of it, or shows an image.
 *
 * @returns The tool `read`.
 */
export function createReadTool({ contents, ...options }: TextToolOptions): Tool<ReadInput> {
  const root = rootFrom(options.root);
  return defineFileTool({
    name: 'read',
    description:
      `Read a file. Text comes with at most ${MAX_LINES} lines; use offset and limit for more. ` +
      'Images (png, jpg, gif, webp) are shown.',
    inputSchema: input,
    effects: 'read',
    replay: 'safe',
    execute: (wanted, context) =>
      usingResource(root.locate(wanted.path), (resolved) => {
        if (resolved.kind !== 'file') throw notAFile(wanted.path, resolved.kind);
        return readPart({ root, resolved, contents, context }, wanted);
      }),
  });
}

async function readPart(asked: FileInCall, { offset = 1, limit = MAX_LINES }: ReadInput): Promise<ToolResult> {
  const { displayPath } = asked.resolved;
  const mediaType = IMAGES[extname(displayPath).toLowerCase()];
  return usingResource(openToRead(asked.resolved), async (file) => {
    const { size } = await file.stat();
    const range = size > MAX_WHOLE_BYTES ? { line: offset, limit: limit + 1 } : {};
    const text = mediaType === undefined ? await readElsewhere(asked, range) : undefined;
    if (text !== undefined) {
      // An editor without support for ranges returns the whole text.
      const isPart = range.limit !== undefined && text.split('\n', limit + 3).length <= limit + 2;
      const part = selectLines(text, { offset: isPart ? 1 : offset, limit });
      return describePart(part, { shown: displayPath, offset, size: isPart ? size : Buffer.byteLength(text) });
    }
    if (mediaType !== undefined) return readImage(file, { shown: displayPath, size, mediaType });
    const { token } = asked.context;
    const part = await readLines(file, { offset, limit, token });
    const result = describePart(part, { shown: displayPath, offset, size });
    if (part.stopped) throw createInterruptedError(token, result);
    return result;
  });
}

async function readImage(
  file: FileHandle,
  { shown, size, mediaType }: { shown: string; size: number; mediaType: string },
): Promise<ToolResult> {
  if (size > MAX_IMAGE_BYTES)
    throw new Error(`'${shown}' has ${size} bytes; images up to ${MAX_IMAGE_BYTES} are shown`);
  const data = (await file.readFile()).toString('base64');
  return {
    content: [
      { type: 'text', text: `${shown} (${mediaType}, ${size} bytes)` },
      { type: 'image', mediaType, data },
    ],
    details: { path: shown, mediaType, bytes: size },
  };
}

interface Part {
  readonly lines: string[];
  /** Why the text ends. */
  readonly ends: 'end-of-file' | 'lines' | 'characters';
  readonly stopped: boolean;
  readonly binary: boolean;
}

/** Reads the file up to the wanted lines. Checks the token between chunks. */
async function readLines(
  file: FileHandle,
  { offset, limit, token }: { offset: number; limit: number; token: CancellationToken },
): Promise<Part> {
  const collected = new LineCollector(offset, limit);
  const decoder = new StringDecoder('utf8');
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let position = 0; collected.wantsMore; ) {
    if (token.isCancelled) return { ...collected.part, stopped: true, binary: false };
    const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, position);
    const bytes = chunk.subarray(0, bytesRead);
    if (position === 0 && isBinary(bytes)) return { ...collected.part, stopped: false, binary: true };
    if (bytesRead === 0) {
      collected.add(decoder.end());
      collected.finish();
    } else collected.add(decoder.write(bytes));
    position += bytesRead;
  }
  return { ...collected.part, stopped: false, binary: false };
}

function selectLines(text: string, { offset, limit }: { offset: number; limit: number }): Part {
  const collected = new LineCollector(offset, limit);
  collected.add(text);
  collected.finish();
  return { ...collected.part, stopped: false, binary: isBinary(Buffer.from(text.slice(0, CHUNK_BYTES))) };
}

class LineCollector {
  readonly #first: number;
  readonly #limit: number;
  readonly #lines: string[] = [];
  #seen = 0;
  #rest = '';
  /** How much of the current line was dropped. */
  #dropped = 0;
  #chars = 0;
  #ends: Part['ends'] | undefined;

  constructor(first: number, limit: number) {
    this.#first = first;
    this.#limit = limit;
  }

  get wantsMore(): boolean {
    return this.#ends === undefined;
  }

  get part(): Pick<Part, 'lines' | 'ends'> {
    return { lines: this.#lines, ends: this.#ends ?? 'end-of-file' };
  }

  add(text: string): void {
    const lines = text.split('\n');
    const last = lines.pop()!;
    for (const line of lines) this.#take(line);
    // Keep only the part of a long line that can be shown.
    const rest = this.#rest + last;
    this.#rest = rest.slice(0, MAX_LINE_CHARS + 1);
    this.#dropped += rest.length - this.#rest.length;
  }

  finish(): void {
    if (this.#rest !== '') this.#take('');
    this.#ends ??= 'end-of-file';
  }

  #take(end: string): void {
    const line = this.#rest + end;
    const dropped = this.#dropped;
    this.#rest = '';
    this.#dropped = 0;
    this.#seen++;
    if (this.#ends !== undefined || this.#seen < this.#first) return;
    const shown = cutLine(line.endsWith('\r') ? line.slice(0, -1) : line, MAX_LINE_CHARS, dropped);
    if (this.#lines.length === this.#limit) this.#ends = 'lines';
    else if (this.#chars + shown.length > MAX_CHARS) this.#ends = 'characters';
    else {
      this.#lines.push(shown);
      this.#chars += shown.length + 1;
    }
  }
}

function describePart(part: Part, file: { shown: string; offset: number; size: number }): ToolResult {
  const { lines, ends, stopped, binary } = part;
  const { shown, offset, size } = file;
  if (binary) throw new Error(`'${shown}' is not text (${size} bytes); use another tool for it`);
  if (lines.length === 0 && offset > 1 && !stopped) throw new Error(`'${shown}' has fewer than ${offset} lines`);
  const next = offset + lines.length;
  const truncated = ends !== 'end-of-file' || stopped;
  const text = lines.join('\n');
  const notes = [
    ...(ends === 'end-of-file' ? [] : [`${count(lines.length, 'line')} shown; continue with offset ${next}`]),
    ...(text.includes('\uFFFD') ? ['\uFFFD may stand for bytes that are not UTF-8; edit refuses such a file'] : []),
  ];
  return {
    content: [text, ...notes.map((note) => `[${note}]`)].join('\n'),
    details: { path: shown, firstLine: offset, lines: lines.length, bytes: size, truncated },
  };
}
