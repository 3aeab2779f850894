import { FullLog } from './full-log.ts';
import { HeadTail } from './head-tail.ts';
import { plainText } from './plain-text.ts';

/** How much of an output is kept. */
export interface CaptureOptions {
  readonly headBytes?: number | undefined;
  readonly tailBytes?: number | undefined;
  /** Keep everything in a file in this folder. */
  readonly logFolder?: string | undefined;
}

/** The part of an output that was kept, unmodified. */
export type CapturedOutput = {
  /** The beginning, if the middle was left out. Otherwise everything is in `tail`. */
  readonly head: string;
  readonly tail: string;
  readonly bytes: number;
  readonly lines: number;
  readonly omittedBytes: number;
};

const HEAD_BYTES = 16 << 10;
const TAIL_BYTES = 48 << 10;

/** Keeps the beginning and the end of a command's output, and optionally all of it in a file. */
export class Capture implements Disposable {
  readonly log: FullLog | undefined;
  readonly #kept: HeadTail;

  constructor({ headBytes = HEAD_BYTES, tailBytes = TAIL_BYTES, logFolder }: CaptureOptions = {}) {
    this.#kept = new HeadTail({ headBytes, tailBytes });
    this.log = logFolder === undefined ? undefined : new FullLog(logFolder);
  }

  readonly push = (chunk: Uint8Array): void => {
    this.#kept.push(chunk);
    this.log?.write(chunk);
  };

  read(): CapturedOutput {
    return { ...this.#kept.read(), bytes: this.#kept.bytes, lines: this.#kept.lines };
  }

  [Symbol.dispose](): void {
    this.log?.[Symbol.dispose]();
  }
}

/** Formats an output for a model: plain text, cut in the middle with a note. The end gets most of the characters. */
export function conciseText(output: CapturedOutput, maxCharacters: number): string {
  const tail = plainText(output.tail).trimEnd();
  if (output.omittedBytes === 0 && tail.length <= maxCharacters) return tail;
  const maxHead = Math.floor(maxCharacters / 4);
  const head = firstLines(output.omittedBytes === 0 ? tail : plainText(output.head).trimEnd(), maxHead);
  const end = lastLines(tail, maxCharacters - maxHead);
  return `${head}\n[… the middle of ${output.bytes} bytes in ${output.lines} lines is left out …]\n${end}`;
}

/** Cuts at the end of a line if possible, and never within a character. */
function firstLines(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  const cut = text.slice(0, maxCharacters);
  const newline = cut.lastIndexOf('\n');
  return newline > 0 ? cut.slice(0, newline) : cut.replace(/[\ud800-\udbff]$/, '');
}

function lastLines(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  const cut = text.slice(-maxCharacters);
  const newline = cut.indexOf('\n');
  return newline >= 0 && newline < cut.length - 1 ? cut.slice(newline + 1) : cut.replace(/^[\udc00-\udfff]/, '');
}
