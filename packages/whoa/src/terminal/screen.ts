import { type Clock, systemClock } from '@whoa/core/embed';
import { jsonLine, type Output, rendered, type Style, styled, writeRaw } from './boundary.ts';

/** Nothing may go on for longer than this without a sign of life. */
const SILENCE_MS = 1_000;
const FRAME_MS = 120;
const FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';
const MAX_COLUMNS = 500;
const ROWS = 24;
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
    return this.#stderr.columns ?? MAX_COLUMNS;
  }

  get rows(): number {
    return this.#stderr.rows ?? ROWS;
  }

  /** Words of an answer, as they come. */
  say(text: string): void {
    if (text === '' || this.#wait(() => this.say(text))) return;
    this.#clear();
    // Into a file the answer goes as the model wrote it.
    writeRaw(this.#stdout, this.#stdout.isTTY ? rendered(text.replaceAll('\r\n', '\n')) : text);
    this.#isMidLine = !text.endsWith('\n');
    this.#restart();
  }

  /** A line about the answer. */
  note(line: string): void {
    if (this.#wait(() => this.note(line))) return;
    this.#clear();
    // Into a file the answer goes alone, and must not be broken by what is said beside it.
    if (this.#stdout.isTTY) this.endLine();
    this.#print(this.#stderr, line);
    this.#restart();
  }

  /** A line of data for another program. */
  data(value: unknown): void {
    writeRaw(this.#stdout, `${jsonLine(value)}\n`);
  }

  /** A line of the answer itself: a row of a table, a report that was asked for. */
  line(text: string): void {
    if (this.#wait(() => this.line(text))) return;
    this.#clear();
    this.endLine();
    this.#print(this.#stdout, text);
    this.#restart();
  }

  /** Ends a line that the answer has begun. */
  endLine(): void {
    if (this.#wait(() => this.endLine())) return;
    this.#clear();
    if (this.#isMidLine) writeRaw(this.#stdout, '\n');
    this.#isMidLine = false;
  }

  /** What goes on now; shown once it has been silent for a second. `undefined`: nothing goes on. */
  status(text: (() => string) | undefined): void {
    this.#clear();
    this.#status = text === undefined ? undefined : { text, since: this.#clock.now() };
    this.#restart();
  }

  /** Leaves the terminal to a question: everything else waits until this is disposed. */
  hold(): Disposable & { readonly note: (line: string) => void; readonly prompt: (text: string) => void } {
    this.#clear();
    if (this.#stdout.isTTY) this.endLine();
    this.#held = [];
    this.#restart();
    return {
      note: (line) => this.#print(this.#stderr, line),
      prompt: (text) => writeRaw(this.#stderr, rendered(text)),
      [Symbol.dispose]: () => {
        const held = this.#held ?? [];
        this.#held = undefined;
        for (const show of held) show();
        this.#restart();
      },
    };
  }

  style(style: Style, text: string): string {
    return styled(style, text, this.#stderr);
  }

  [Symbol.dispose](): void {
    this.status(undefined);
  }

  #print(output: Output, text: string): void {
    writeRaw(output, `${output.isTTY ? CLEAR_LINE : ''}${rendered(text)}\n`);
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
    writeRaw(this.#stderr, `\x1b7\x1b[?7l${rendered(this.style('dim', shown))}\x1b[K\x1b[?7h\x1b8`);
    this.#isShown = true;
    this.#timer = this.#clock.setTimer(FRAME_MS, () => this.#draw(), { keepAlive: false });
  }

  #clear(): void {
    if (this.#isShown) writeRaw(this.#stderr, '\x1b[K');
    this.#isShown = false;
  }
}
