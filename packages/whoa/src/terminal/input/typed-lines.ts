import { readFileSync } from 'node:fs';
import { createInterface, emitKeypressEvents, type Interface, type Key } from 'node:readline';
import { PassThrough } from 'node:stream';
import { type Output, writeRaw } from '../boundary.ts';
import type { HeldScreen } from '../screen.ts';
import { ESCAPE, LINE_FEED, PasteFilter } from './paste-filter.ts';

/** The parts of standard input that are needed. */
export type TypedInput = NodeJS.ReadableStream & {
  readonly isTTY?: boolean;
  readonly setRawMode?: (isRaw: boolean) => unknown;
};

export interface TypedLinesHandlers {
  readonly onChange?: (line: string, cursor: number) => void;
  /** Called when Enter was pressed. `shown` is the text with labels for long pastes. */
  readonly onLine?: (text: string, shown: string) => void;
  /** Defaults to the signal that a terminal sends on Ctrl-C. Esc is only for questions then. */
  readonly onInterrupt?: (key: 'escape' | 'ctrl-c') => void;
  /** Ctrl-D in an empty line. */
  readonly onEnd?: () => void;
  /** The terminal is gone. */
  readonly onClosed?: () => void;
}

const MAX_HISTORY = 100;
/** Turns of the event loop without input after which there is none. One is not enough: it may end before the loop polls. */
const QUIET_TURNS = 3;
const MAX_TURNS = 1_000;
const CTRL_BACKSLASH = '\u001c';
/** Makes the terminal mark pasted text. Only where lines are read all the time: a question takes a short answer. */
const MARK_PASTES = { on: '\x1b[?2004h', off: '\x1b[?2004l' } as const;

/**
 * Reads lines from a terminal, which no longer shows keys itself. Readline edits the line but does not draw it. Alt-Enter adds
 * a line feed, and a paste is one insert.
 */
export class TypedLines implements Disposable {
  readonly #input: TypedInput;
  readonly #output: Output;
  readonly #keys = new PassThrough();
  readonly #filter = new PasteFilter((keys) => this.#onKeys(keys));
  readonly #marksPastes: boolean;
  #handlers: TypedLinesHandlers;
  #editor = this.#createEditor();
  #isOn = false;
  #chunks = 0;

  constructor(handlers: TypedLinesHandlers = {}, input: TypedInput = process.stdin, output: Output = process.stderr) {
    this.#handlers = handlers;
    this.#marksPastes = handlers.onLine !== undefined;
    this.#input = input;
    this.#output = output;
    emitKeypressEvents(this.#keys);
    this.#keys.on('keypress', this.#onKey);
    this.#switch(true);
  }

  get isEmpty(): boolean {
    return this.#editor.line === '';
  }

  clear(): void {
    this.#editor.write(null, { ctrl: true, name: 'e' });
    this.#editor.write(null, { ctrl: true, name: 'u' });
    this.show();
  }

  /** Calls `onChange`. */
  show(): void {
    this.#handlers.onChange?.(this.#editor.line, this.#editor.cursor);
  }

  /**
   * Reads the answer to a question that is on the screen. What was typed before it was is discarded, and the unfinished line
   * is kept. Returns `undefined` at the end of the input, or when the signal aborts.
   */
  async ask(
    question: string,
    { held, signal }: { held: HeldScreen; signal: AbortSignal },
  ): Promise<string | undefined> {
    const [handlers, editor] = [this.#handlers, this.#editor];
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    const end = (): void => resolve(undefined);
    const early = { onInterrupt: handlers.onInterrupt ?? interruptGroup, onClosed: end };
    [this.#handlers, this.#editor] = [early, this.#createEditor()];
    signal.addEventListener('abort', end);
    this.#switch(true);
    try {
      await this.#settle();
      const prompt = held.prompt(question);
      const onLine = (text: string): void => {
        this.#handlers = early;
        resolve(text);
      };
      const onChange = (line: string, cursor: number): void => held.input(line, cursor, prompt);
      this.#handlers = { ...early, onChange, onLine, onEnd: end };
      this.clear();
      return signal.aborted ? undefined : await promise;
    } finally {
      signal.removeEventListener('abort', end);
      [this.#handlers, this.#editor] = [handlers, editor];
      held.endInput();
    }
  }

  [Symbol.dispose](): void {
    this.#switch(false);
  }

  /** Waits until the terminal has received all output, and for all keys that were pressed before that. */
  async #settle(): Promise<void> {
    // A change of the mode waits for the output.
    this.#input.setRawMode?.(false);
    this.#input.setRawMode?.(true);
    for (let turns = 0, quiet = 0; quiet < QUIET_TURNS; turns++) {
      if (turns > MAX_TURNS)
        throw new Error(
          'the terminal keeps sending input, so the question cannot be shown; stop pasting and try again',
        );
      const before = this.#chunks;
      await new Promise((resolve) => setImmediate(resolve));
      quiet = before === this.#chunks ? quiet + 1 : 0;
    }
  }

  #switch(isOn: boolean): void {
    if (this.#isOn === isOn) return;
    this.#isOn = isOn;
    this.#input.setRawMode?.(isOn);
    if (this.#marksPastes && this.#output.isTTY) writeRaw(this.#output, MARK_PASTES[isOn ? 'on' : 'off']);
    this.#input.setEncoding('utf8');
    this.#input[isOn ? 'on' : 'off']('data', this.#onData);
    this.#input[isOn ? 'on' : 'off']('end', this.#onClosed);
    this.#input[isOn ? 'resume' : 'pause']();
  }

  readonly #onData = (chunk: string): void => {
    this.#chunks++;
    this.#filter.write(chunk);
  };

  readonly #onClosed = (): void => this.#handlers.onClosed?.();

  #onKeys(keys: string): void {
    if (keys === ESCAPE) this.#handlers.onInterrupt?.('escape');
    else if (/\p{Cc}/u.test(keys)) this.#keys.emit('data', keys);
    else this.#edit(keys);
  }

  readonly #onKey = (typed: string | undefined, key: Key): void => {
    const { name, ctrl = false, meta = false } = key;
    const isEnter = name === 'return' || name === 'enter';
    if (ctrl && name === 'c') (this.#handlers.onInterrupt ?? interruptGroup)('ctrl-c');
    else if (ctrl && name === 'z') this.#suspend();
    else if (ctrl && name === 'd' && this.isEmpty) this.#handlers.onEnd?.();
    else if (typed === CTRL_BACKSLASH) signalGroup('SIGQUIT');
    else if (meta && isEnter) this.#edit(LINE_FEED);
    else this.#edit(typed?.replaceAll(/[^\P{Cc}\t]/gu, ''), key);
  };

  #edit(typed = '', key: Key = {}): void {
    const isErasing = key.name === 'backspace' && !key.ctrl && !key.meta;
    const times = isErasing ? this.#filter.lastLength(this.#editor.line.slice(0, this.#editor.cursor)) : 1;
    for (let time = 0; time < times; time++) this.#editor.write(typed, key);
    this.show();
  }

  #createEditor(): Interface {
    const editor = createInterface({ input: new PassThrough(), terminal: true, historySize: MAX_HISTORY });
    return editor.on('line', (line) => {
      const { text, shown } = this.#filter.expand(line);
      this.#handlers.onLine?.(text, shown);
    });
  }

  /** Stops the process until the shell continues it, with the terminal as the shell expects it. */
  #suspend(): void {
    this.#switch(false);
    process.once('SIGCONT', () => {
      if (!isInBackground()) this.#switch(true);
      this.show();
    });
    signalGroup('SIGTSTP');
  }
}

const interruptGroup = (): void => signalGroup('SIGINT');

/** Sends a signal to every process of this job, as the terminal does when it reads the key itself. */
function signalGroup(signal: NodeJS.Signals): void {
  // On Windows a signal that is sent ends the process.
  if (process.platform === 'win32') process.emit(signal, signal);
  else process.kill(0, signal);
}

/** Whether another job has the terminal. The system suspends a process in the background that changes its mode. */
export function isInBackground(): boolean {
  if (process.platform !== 'linux') return false;
  // The second field is a name in parentheses, which can contain anything.
  const [, , group, , , foreground] = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return foreground !== '-1' && foreground !== group;
}
