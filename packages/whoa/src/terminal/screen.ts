import { styleText } from 'node:util';
import { type Clock, systemClock } from '@whoa/core';
import { plainText } from './plain-text.ts';

export type Style = Parameters<typeof styleText>[0];

/** The parts of a terminal, or of what a command is piped into, that we need. */
export interface Output {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
  on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): unknown;
}

/** Nothing may go on for longer than this without a sign of life. */
const SILENCE_MS = 1_000;
const FRAME_MS = 120;
const FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';
const COLUMNS_MAX = 500;
/** A terminal shows Ctrl-C as ^C, where the line is about to begin. */
const CLEAR_LINE = '\r\x1b[K';

export interface ScreenOptions {
  readonly stdout?: Output;
  readonly stderr?: Output;
  readonly clock?: Clock;
  /** Called once when what is printed reaches nobody any more; `EPIPE`: whoever read it has gone. */
  readonly onGone?: (error: NodeJS.ErrnoException) => void;
}

/**
 * What a person sees: the answer on standard output, everything about it on standard error, and behind the cursor a sign of
 * life that leaves no trace. Dispose it to take the sign away.
 */
export class Screen implements Disposable {
  readonly #stdout: Output;
  readonly #stderr: Output;
  readonly #clock: Clock;
  #isMidLine = false;
  #isShown = false;
  #status: { readonly text: () => string; readonly since: number } | undefined;
  #timer: Disposable | undefined;
  #frame = 0;
  /** What waits until a question is answered. */
  #held: (() => void)[] | undefined;

  constructor({ stdout = process.stdout, stderr = process.stderr, clock = systemClock, onGone }: ScreenOptions = {}) {
    this.#stdout = stdout;
    this.#stderr = stderr;
    this.#clock = clock;
    let isGone = false;
    for (const output of [stdout, stderr]) {
      output.on('error', (error) => {
        if (!isGone) onGone?.(error);
        isGone = true;
      });
    }
  }

  get columns(): number {
    return this.#stderr.columns ?? COLUMNS_MAX;
  }

  /** Words of an answer, as they come. */
  say(text: string): void {
    if (text === '' || this.#wait(() => this.say(text))) return;
    this.#clear();
    this.#stdout.write(this.#stdout.isTTY ? plainText(text) : text);
    this.#isMidLine = !text.endsWith('\n');
    this.#restart();
  }

  /** A line about the answer. Texts from outside must be plain by now. */
  note(line: string): void {
    if (this.#wait(() => this.note(line))) return;
    this.#clear();
    // Into a file the answer goes alone, and must not be broken by what is said beside it.
    if (this.#stdout.isTTY) this.endLine();
    this.#stderr.write(`${this.#stderr.isTTY ? CLEAR_LINE : ''}${line}\n`);
    this.#restart();
  }

  /** A line of data for another program. */
  data(value: unknown): void {
    this.#stdout.write(`${JSON.stringify(value)}\n`);
  }

  /** A line of the answer itself: a row of a table, a report that was asked for. */
  line(text: string): void {
    if (this.#wait(() => this.line(text))) return;
    this.#clear();
    this.endLine();
    this.#stdout.write(`${this.#stdout.isTTY ? CLEAR_LINE : ''}${text}\n`);
    this.#restart();
  }

  /** Ends a line that the answer has begun. */
  endLine(): void {
    if (this.#wait(() => this.endLine())) return;
    this.#clear();
    if (this.#isMidLine) this.#stdout.write('\n');
    this.#isMidLine = false;
  }

  /** What goes on now; shown once it has been silent for a second. `undefined`: nothing goes on. */
  status(text: (() => string) | undefined): void {
    this.#clear();
    this.#status = text === undefined ? undefined : { text, since: this.#clock.now() };
    this.#restart();
  }

  /** Leaves the terminal to a question: everything else waits until this is disposed. */
  hold(): Disposable {
    this.#clear();
    this.#held = [];
    this.#restart();
    return {
      [Symbol.dispose]: () => {
        const held = this.#held ?? [];
        this.#held = undefined;
        for (const show of held) show();
        this.#restart();
      },
    };
  }

  style(style: Style, text: string): string {
    return styleText(style, text, { stream: this.#stderr as unknown as NodeJS.WritableStream });
  }

  [Symbol.dispose](): void {
    this.status(undefined);
  }

  #wait(show: () => void): boolean {
    this.#held?.push(show);
    return this.#held !== undefined;
  }

  #restart(): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    if (this.#status === undefined || this.#held !== undefined || !this.#stderr.isTTY) return;
    this.#timer = this.#clock.setTimer(SILENCE_MS, () => this.#draw(), { keepAlive: false });
  }

  /** Behind the cursor and without wrapping, so that the next word can simply be written over it. */
  #draw(): void {
    const { text, since } = this.#status!;
    const frame = FRAMES[this.#frame++ % FRAMES.length]!;
    const seconds = Math.floor((this.#clock.now() - since) / 1_000);
    const shown = `${this.#isMidLine ? ' ' : ''}${frame} ${text()} · ${seconds} s`;
    this.#stderr.write(`\x1b7\x1b[?7l${this.style('dim', shown)}\x1b[K\x1b[?7h\x1b8`);
    this.#isShown = true;
    this.#timer = this.#clock.setTimer(FRAME_MS, () => this.#draw(), { keepAlive: false });
  }

  #clear(): void {
    if (this.#isShown) this.#stderr.write('\x1b[K');
    this.#isShown = false;
  }
}
