// The command in this process: behaves as in a separate process, without the half second that starting one takes.
import { EventEmitter } from 'node:events';
import { resolve } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { main } from '../../packages/whoa/src/main.ts';
import type { System } from '../../packages/whoa/src/system.ts';
import { guardTerminal } from '../../packages/whoa/src/terminal/boundary.ts';

export interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface InProcessOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The content of standard input, if a program writes it. */
  readonly input?: string;
  /** The terminal that it is started in. Without one, its output is for a program. */
  readonly terminal?: { readonly columns: number; readonly rows: number };
}

/** A command that runs in this process. */
export interface InProcess {
  readonly ended: Promise<Ended>;
  /** Everything that its terminal got so far, byte by byte. */
  raw(): string;
  /** The same without escapes, and without space at the end. */
  see(): string;
  /** Waits until it has printed something. Returns everything that it printed. */
  waitFor(pattern: RegExp): Promise<string>;
  /** Types at its terminal. */
  type(text: string): void;
  /** Delivers a signal, as if it had been sent to a separate process. */
  signal(name: NodeJS.Signals): void;
}

/** Starts the command. Wait for its end before the test ends. */
export function startInProcess(args: readonly string[], options: InProcessOptions): InProcess {
  const { env, input = '', terminal } = options;
  let { cwd } = options;
  const changes = new EventEmitter();
  const written: Buffer[] = [];
  const show = (chunk: Buffer): void => {
    written.push(chunk);
    changes.emit('change');
  };
  const open = (): Stream => openStream(terminal, show);
  const [stdout, stderr] = [open(), open()];
  let isRaw = false;
  const setRawMode = (isOn: boolean): void => {
    isRaw = isOn;
  };
  const stdin = Object.assign(new PassThrough(), terminal && { isTTY: true, setRawMode });
  if (terminal === undefined) stdin.end(input);
  const signals = new EventEmitter();
  const system: System = Object.assign(signals as unknown as Pick<NodeJS.Process, 'on' | 'off'>, {
    env: { ...env },
    stdin,
    stdout: stdout.stream,
    stderr: stderr.stream,
    cwd: () => cwd,
    chdir: (folder: string) => {
      cwd = resolve(cwd, folder);
    },
    exit: (code: number): never => {
      throw new Error(`the command ended its process with ${code}`);
    },
  });
  const raw = (): string => Buffer.concat(written).toString();
  const see = (): string => stripVTControlCharacters(raw()).replaceAll('\r', '').trimEnd();
  let hasEnded = false;
  const ended = main(args, system)
    .then((status) => ({ status, stdout: stdout.text(), stderr: stderr.text() }))
    .finally(() => {
      hasEnded = true;
      changes.emit('change');
    });
  return {
    ended,
    raw,
    see,
    async waitFor(pattern) {
      for (;;) {
        const seen = see();
        if (pattern.test(seen)) return seen;
        if (hasEnded) throw new Error(`${pattern} was not printed, but:\n${seen}`);
        await new Promise((wake) => changes.once('change', wake));
      }
    },
    type(text) {
      // A terminal echoes input, unless its program does so itself.
      if (!isRaw) show(Buffer.from(text));
      stdin.write(text);
    },
    signal: (name) => void signals.emit(name, name),
  };
}

interface Stream {
  readonly stream: NodeJS.WriteStream;
  readonly text: () => string;
}

/** A stream that stores its output, guarded as `bin.ts` guards that of a terminal. */
function openStream(size: InProcessOptions['terminal'], onWrite: (chunk: Buffer) => void): Stream {
  const own: Buffer[] = [];
  const plain = new Writable({
    write(chunk: Buffer, _, done) {
      own.push(chunk);
      onWrite(chunk);
      done();
    },
  });
  const stream = Object.assign(plain, size && { isTTY: true, ...size }) as unknown as NodeJS.WriteStream;
  guardTerminal(stream);
  return { stream, text: () => Buffer.concat(own).toString() };
}
