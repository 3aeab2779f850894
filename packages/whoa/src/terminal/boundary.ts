import { randomUUID } from 'node:crypto';
import { styleText } from 'node:util';
import { toInertText } from '@whoa/core/internal';

// All output goes through this file. Our own styles are marks that text from elsewhere cannot forge, and only marks become
// escape sequences.

export type Style = Parameters<typeof styleText>[0];

/** The parts of an output stream that we need. */
export interface Output {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
  on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): unknown;
}

const SECRET = randomUUID();
const MARK = new RegExp(`\u{fdd0}${SECRET}:(\\d+)\u{fdd1}`, 'u');
const sequences: string[] = [];

/** Marks a text with a style. Print the result with `rendered`. */
export function styled(style: Style, text: string, output: Output): string {
  const stream = output as unknown as NodeJS.WritableStream;
  const [open = '', close = ''] = styleText(style, '\0', { stream }).split('\0');
  return open === '' ? text : `${markFor(open)}${text}${markFor(close)}`;
}

/** Makes a text safe to print: only our own styles become escape sequences. */
export function rendered(text: string): string {
  return text
    .split(MARK)
    .map((part, index) => (index % 2 === 0 ? toInertText(part) : (sequences[Number(part)] ?? '')))
    .join('');
}

/** JSON on one line, with control characters escaped. */
export function jsonLine(value: unknown): string {
  const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replace(/[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu, escaped);
}

type Write = (text: string) => unknown;

const unguarded = new WeakMap<object, Write>();

/** Makes everything inert that is written to a terminal, including output that does not go through a `Screen`. */
export function guardTerminal(stream: NodeJS.WriteStream): void {
  if (!stream.isTTY || unguarded.has(stream)) return;
  const write = stream.write.bind(stream) as (text: string, ...rest: unknown[]) => boolean;
  unguarded.set(stream, write as Write);
  stream.write = (chunk: Uint8Array | string, ...rest: unknown[]): boolean =>
    write(toInertText(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()), ...rest);
}

/** Writes without escaping. Use it only for rendered text and for cursor movements. */
export function writeRaw(output: Output, text: string): void {
  const write = unguarded.get(output);
  if (write === undefined) output.write(text);
  else write(text);
}

function markFor(sequence: string): string {
  const known = sequences.indexOf(sequence);
  const index = known === -1 ? sequences.push(sequence) - 1 : known;
  return `\u{fdd0}${SECRET}:${index}\u{fdd1}`;
}
