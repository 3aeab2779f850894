import { readFileSync } from 'node:fs';
import { emitKeypressEvents, type Key } from 'node:readline';
import { type Output, writeRaw } from '../boundary.ts';
import type { TypedInput } from './typed-line.ts';

export interface LineEditorOptions {
  readonly input?: TypedInput;
  readonly output?: Output;
  /** Whether pastes are told from typed keys. Defaults to true. */
  readonly marksPastes?: boolean;
  /** Called with the text of the line whenever it changes. */
  readonly onChange: (text: string) => void;
  /** Called when Enter was pressed. */
  readonly onLine: (line: string) => void;
  readonly onInterrupt: (key: 'escape' | 'ctrl-c') => void;
  /** Ctrl-D in an empty line. */
  readonly onEnd: () => void;
  /** The terminal is gone. */
  readonly onClosed: () => void;
}

const MAX_CHARACTERS = 100_000;
const MAX_HISTORY = 100;
const CTRL_BACKSLASH = '\u001c';
/** Makes the terminal mark pasted text. */
const MARK_PASTES = { on: '\x1b[?2004h', off: '\x1b[?2004l' } as const;

/**
 * Reads lines from a terminal key by key, so that what is typed can be shown apart from other output. A paste is one
 * text: its line breaks do not send it.
 */
export class LineEditor implements Disposable {
  readonly #options: LineEditorOptions;
  readonly #input: TypedInput;
  readonly #output: Output;
  readonly #history: string[] = [];
  #text = '';
  #historyAt = 0;
  #isPasting = false;
  #isListening = false;

  constructor(options: LineEditorOptions) {
    this.#options = options;
    this.#input = options.input ?? process.stdin;
    this.#output = options.output ?? process.stderr;
    emitKeypressEvents(this.#input);
    this.#input.on('end', options.onClosed);
  }

  get text(): string {
    return this.#text;
  }

  /** Starts to listen. The terminal no longer shows what is typed, nor turns Ctrl-C into a signal. */
  resume(): void {
    if (this.#isListening || (this.#input === process.stdin && isInBackground())) return;
    this.#isListening = true;
    this.#input.setRawMode?.(true);
    this.#markPastes('on');
    this.#input.on('keypress', this.#onKey);
    this.#input.resume();
  }

  /** Leaves the terminal to others. The unfinished line is kept. */
  pause(): void {
    if (!this.#isListening) return;
    this.#isListening = false;
    this.#isPasting = false;
    this.#input.off('keypress', this.#onKey);
    this.#markPastes('off');
    this.#input.setRawMode?.(false);
    this.#input.pause();
  }

  /** Leaves the terminal to some work, such as a question. */
  async whilePaused<T>(work: () => Promise<T>): Promise<T> {
    const wasListening = this.#isListening;
    this.pause();
    try {
      return await work();
    } finally {
      if (wasListening) this.resume();
    }
  }

  [Symbol.dispose](): void {
    this.pause();
    this.#input.off('end', this.#options.onClosed);
  }

  #markPastes(mode: 'on' | 'off'): void {
    if (this.#output.isTTY && this.#options.marksPastes !== false) writeRaw(this.#output, MARK_PASTES[mode]);
  }

  readonly #onKey = (typed: string | undefined, { name, ctrl = false, meta = false }: Key): void => {
    if (name === 'paste-start' || name === 'paste-end') this.#isPasting = name === 'paste-start';
    else if (this.#isPasting) this.#insert(typed === '\r' ? '\n' : (typed ?? ''));
    else if (name === 'return' || name === 'enter') this.#send();
    else if (name === 'escape') this.#options.onInterrupt('escape');
    else if (ctrl && name === 'c') this.#options.onInterrupt('ctrl-c');
    else if (ctrl && name === 'd') this.#endIfEmpty();
    else if (ctrl && name === 'z') this.#suspend();
    else if (typed === CTRL_BACKSLASH) signalGroup('SIGQUIT');
    else if (name === 'backspace') this.#change(Array.from(this.#text).slice(0, -1).join(''));
    else if (ctrl && name === 'u') this.#change('');
    else if (ctrl && name === 'w') this.#change(this.#text.replace(/\S*\s*$/, ''));
    else if (name === 'up' || name === 'down') this.#recall(name === 'up' ? -1 : 1);
    else if (!ctrl && !meta) this.#insert(typed ?? '');
  };

  /** Keeps only characters that can be part of a text. What else keys send is a command that we do not know. */
  #insert(typed: string): void {
    const text = typed.replace(/[^\P{Cc}\n\t]/gu, '');
    if (text !== '' && this.#text.length + text.length <= MAX_CHARACTERS) this.#change(this.#text + text);
  }

  #send(): void {
    const line = this.#text.trim();
    this.clear();
    if (line === '') return;
    if (this.#history.at(-1) !== line) this.#history.push(line);
    if (this.#history.length > MAX_HISTORY) this.#history.shift();
    this.#historyAt = this.#history.length;
    this.#options.onLine(line);
  }

  clear(): void {
    this.#change('');
  }

  #recall(step: number): void {
    this.#historyAt = Math.min(this.#history.length, Math.max(0, this.#historyAt + step));
    this.#change(this.#history[this.#historyAt] ?? '');
  }

  #endIfEmpty(): void {
    if (this.#text === '') this.#options.onEnd();
  }

  /** Stops the process until the shell continues it, with the terminal as the shell expects it. */
  #suspend(): void {
    this.pause();
    process.once('SIGCONT', () => {
      this.resume();
      this.#options.onChange(this.#text);
    });
    signalGroup('SIGTSTP');
  }

  #change(text: string): void {
    this.#text = text;
    this.#options.onChange(text);
  }
}

/** Sends a signal to every process of this job, as the terminal does when it reads the key itself. */
export function signalGroup(signal: NodeJS.Signals): void {
  // On Windows a signal that is sent ends the process.
  if (process.platform === 'win32') process.emit(signal);
  else process.kill(0, signal);
}

/** Whether another job has the terminal. The system suspends a process in the background that changes its mode. */
function isInBackground(): boolean {
  if (process.platform !== 'linux') return false;
  // The second field is a name in parentheses, which can contain anything.
  const [, , group, , , foreground] = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return foreground !== '-1' && foreground !== group;
}
