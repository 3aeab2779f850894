import { randomUUID } from 'node:crypto';
import { styleText } from 'node:util';
import { toInertText } from '@whoa/core/approval';

// Everything that is printed passes here. Text comes as it is, whoever wrote it; a style of ours comes as a mark that nobody
// else can make, and only marks become escape sequences.

export type Style = Parameters<typeof styleText>[0];

/** The parts of a terminal, or of what a command is piped into, that we need. */
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

/** A text in a style, for something that is printed by `print`. */
export function styled(style: Style, text: string, output: Output): string {
  const stream = output as unknown as NodeJS.WritableStream;
  const [open = '', close = ''] = styleText(style, '\0', { stream }).split('\0');
  return open === '' ? text : `${markFor(open)}${text}${markFor(close)}`;
}

/** What is printed of a text: nothing in it but our own styles is obeyed. */
export function rendered(text: string): string {
  return text
    .split(MARK)
    .map((part, index) => (index % 2 === 0 ? toInertText(part) : (sequences[Number(part)] ?? '')))
    .join('');
}

/** JSON for a line of its own: the same data, without characters that a terminal obeys. */
export function jsonLine(value: unknown): string {
  const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replace(/[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu, escaped);
}

type Write = (text: string) => unknown;

const unguarded = new WeakMap<object, Write>();

/** Makes everything that anyone prints to a terminal inert, also what never heard of a `Screen`. */
export function guardTerminal(stream: NodeJS.WriteStream): void {
  if (!stream.isTTY || unguarded.has(stream)) return;
  const write = stream.write.bind(stream) as (text: string, ...rest: unknown[]) => boolean;
  unguarded.set(stream, write as Write);
  stream.write = (chunk: Uint8Array | string, ...rest: unknown[]): boolean =>
    write(toInertText(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()), ...rest);
}

/** Writes as it is: for text that was rendered, and for what moves the cursor. */
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
