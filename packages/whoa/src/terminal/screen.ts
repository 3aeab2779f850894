import { type Clock, systemClock } from '@whoa/core/embed';
import { toInertText } from '@whoa/core/internal';
import { jsonLine, type Output, rendered, type Style, styled, writeRaw } from './boundary.ts';
import { measureColumns, wrapLine } from './text/wrap.ts';

/** Show the status after this time without output. */
const SILENCE_MS = 1_000;
const FRAME_MS = 120;
const FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';
const MAX_COLUMNS = 500;
/** For the answer to a question, after the prompt. */
const MIN_COLUMNS = 20;
/** For a terminal that says zero, as one does whose size was never set. */
const [COLUMNS, ROWS] = [80, 24];
/** Before the line that the user types. */
const PROMPT = '› ';
/** Terminals echo Ctrl-C as ^C. This removes it from the start of the line. */
const CLEAR_LINE = '\r\x1b[K';

export interface ScreenOptions {
  readonly stdout?: Output;
  readonly stderr?: Output;
  readonly clock?: Clock;
  /** Called once when the output can no longer be written. `EPIPE` means that its reader has gone. */
  readonly onGone?: (error: NodeJS.ErrnoException) => void;
}

/** The terminal while it is reserved for a question. */
export interface HeldScreen extends Disposable {
  note(line: string): void;
  /** Returns what to show before the answer. Prints the prompt itself if the screen is too narrow for both. */
  prompt(text: string): string;
  /** Shows the answer that the user types. */
  input(line: string, cursor: number, prompt: string): void;
  endInput(): void;
}

/**
 * The output of a command: the reply on standard output, everything else on standard error, and a status after the cursor
 * that is erased again. Dispose it to erase the status.
 */
export class Screen implements Disposable {
  /** Whether a program reads the standard output. */
  readonly asJson: boolean;
  readonly #stdout: Output;
  readonly #stderr: Output;
  readonly #clock: Clock;
  #isMidLine = false;
  /** What is drawn now and must be erased before other output. */
  #drawn: 'status' | 'input' | undefined;
  /** The line that the user types. */
  #input: readonly [line: string, cursor: number] | undefined;
  /** An unfinished line of the reply. It waits while the user types. */
  #unfinished = '';
  #status: { readonly text: () => string; readonly since: number } | undefined;
  #timer: Disposable | undefined;
  #frame = 0;
  /** Output that waits until a question is answered. */
  #held: (() => void)[] | undefined;

  constructor(
    { stdout = process.stdout, stderr = process.stderr, clock = systemClock, onGone }: ScreenOptions = {},
    { json = false }: { readonly json?: boolean } = {},
  ) {
    this.asJson = json;
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
    return (this.#stderr.columns ?? MAX_COLUMNS) || COLUMNS;
  }

  get rows(): number {
    return this.#stderr.rows || ROWS;
  }

  /** Prints a part of the reply. */
  say(part: string): void {
    if (part === '' || this.#wait(() => this.say(part))) return;
    const all = this.#unfinished + part;
    const end = this.#input === undefined ? all.length : all.lastIndexOf('\n') + 1;
    const text = all.slice(0, end);
    this.#unfinished = all.slice(end);
    if (text === '') return;
    this.#clear();
    // Write the reply to files unchanged.
    writeRaw(this.#stdout, this.#stdout.isTTY ? rendered(text.replaceAll('\r\n', '\n')) : text);
    this.#isMidLine = !text.endsWith('\n');
    this.#restart();
  }

  /** Prints a line on standard error. */
  note(line: string): void {
    if (this.#wait(() => this.note(line))) return;
    this.#clear();
    // If standard output is a file, it contains only the reply: don't add line breaks for notes.
    if (this.#stdout.isTTY) this.endLine();
    this.#print(this.#stderr, line);
    this.#restart();
  }

  /** Prints a line of JSON for a program; nothing for people. */
  data(value: unknown): void {
    if (this.asJson) writeRaw(this.#stdout, `${jsonLine(value)}\n`);
  }

  /** Prints a line on standard output for people, such as a row of a table; nothing for a program. */
  line(text: string): void {
    if (this.asJson || this.#wait(() => this.line(text))) return;
    this.#clear();
    this.endLine();
    this.#print(this.#stdout, text);
    this.#restart();
  }

  /** Ends an unfinished line of the reply. */
  endLine(): void {
    if (this.#wait(() => this.endLine())) return;
    this.#clear();
    if (this.#unfinished !== '') writeRaw(this.#stdout, `${rendered(this.#unfinished)}\n`);
    else if (this.#isMidLine) writeRaw(this.#stdout, '\n');
    [this.#isMidLine, this.#unfinished] = [false, ''];
  }

  /** Shows the line that the user types, below all other output. `undefined` hides it. */
  input(line: string | undefined, cursor = 0): void {
    this.#clear();
    if (line !== undefined && this.#isMidLine) this.endLine();
    this.#input = line === undefined ? undefined : [line, cursor];
    if (line === undefined) {
      const waiting = this.#unfinished;
      this.#unfinished = '';
      this.say(waiting);
    }
    this.#restart();
  }

  /** Sets the status, which is shown after a second without output. `undefined` clears it. */
  status(text: (() => string) | undefined): void {
    this.#clear();
    this.#status = text === undefined ? undefined : { text, since: this.#clock.now() };
    this.#restart();
  }

  /** Reserves the terminal for a question: all other output waits until this is disposed. */
  hold(): HeldScreen {
    this.#clear();
    if (this.#stdout.isTTY) this.endLine();
    this.#held = [];
    this.#restart();
    return {
      note: (line) => this.#print(this.#stderr, line),
      prompt: (text) => {
        if (text.length + MIN_COLUMNS < this.columns) return text;
        for (const row of wrapLine(text, this.columns - 1)) this.#print(this.#stderr, row);
        return `  ${PROMPT}`;
      },
      input: (line, cursor, prompt) => this.#drawInput(line, cursor, prompt),
      endInput: () => writeRaw(this.#stderr, '\n'),
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
    this.input(undefined);
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
    if (this.#held !== undefined || !this.#stderr.isTTY) return;
    if (this.#input !== undefined) {
      this.#drawInput(...this.#input);
      this.#drawn = 'input';
    } else if (this.#status !== undefined)
      this.#timer = this.#clock.setTimer(SILENCE_MS, () => this.#draw(), { keepAlive: false });
  }

  /** Draws the status after the cursor, without wrapping, so that the next output can overwrite it. */
  #draw(): void {
    const { text, since } = this.#status!;
    const frame = FRAMES[this.#frame++ % FRAMES.length]!;
    const seconds = Math.floor((this.#clock.now() - since) / 1_000);
    const shown = `${this.#isMidLine ? ' ' : ''}${frame} ${text()} · ${seconds} s`;
    writeRaw(this.#stderr, `\x1b7\x1b[?7l${rendered(this.style('dim', shown))}\x1b[K\x1b[?7h\x1b8`);
    this.#drawn = 'status';
    this.#timer = this.#clock.setTimer(FRAME_MS, () => this.#draw(), { keepAlive: false });
  }

  /** Draws one row of the line that the user types: what fits around the cursor. */
  #drawInput(line: string, cursor: number, prompt = PROMPT): void {
    const width = this.columns - prompt.length - 1;
    const before = wrapLine(toInertText(line.slice(Math.max(0, cursor - MAX_COLUMNS), cursor)), width).at(-1)!;
    const after = wrapLine(toInertText(line.slice(cursor, cursor + MAX_COLUMNS)), width, measureColumns(before))[0]!;
    const row = `${rendered(this.style('bold', prompt))}${before}`;
    writeRaw(this.#stderr, `${CLEAR_LINE}${row}${after === '' ? '' : `\x1b7${after}\x1b8`}`);
  }

  #clear(): void {
    if (this.#drawn !== undefined) writeRaw(this.#stderr, this.#drawn === 'input' ? CLEAR_LINE : '\x1b[K');
    this.#drawn = undefined;
  }
}
