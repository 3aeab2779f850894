import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { HostRecord } from './host-room.ts';
import type { ProcessIdentity } from './identity.ts';
import { outerTags } from './tags.ts';

/** The host's end of its watchdog. The watchdog knows that the host is gone when the pipe between them ends. */
export class Lifeline implements AsyncDisposable {
  readonly #hello: string;
  readonly #roots = new Map<number, ProcessIdentity>();
  #untold = '';
  #watchdog: ChildProcess | undefined;

  constructor(room: { folder: string; record: HostRecord }) {
    this.#hello = JSON.stringify(room);
    this.#start();
  }

  add(root: ProcessIdentity): void {
    this.#roots.set(root.pid, root);
    if (this.#watchdog === undefined) this.#start();
    else {
      this.#untold += lineOf('+', root);
      this.#flush();
    }
  }

  /** Told a little later, many at a time: nobody should wait for the watchdog to wake up and read it. */
  delete(root: ProcessIdentity): void {
    this.#roots.delete(root.pid);
    if (this.#untold === '') setImmediate(() => this.#flush());
    this.#untold += lineOf('-', root);
  }

  /** Lets the watchdog go; waits until it is gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    const watchdog = this.#watchdog;
    if (watchdog === undefined) return;
    watchdog.removeAllListeners('exit');
    this.#watchdog = undefined;
    watchdog.ref();
    await new Promise<void>((resolve) => {
      watchdog.once('exit', () => resolve());
      watchdog.stdin?.end();
    });
  }

  #start(): void {
    const file = fileURLToPath(new URL(`./watchdog${extname(import.meta.url)}`, import.meta.url));
    const watchdog = spawn(process.execPath, [file], {
      cwd: '/',
      // A session of its own, so that a signal to the host's group does not reach it.
      detached: true,
      env: outerTags(),
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.#watchdog = watchdog;
    // It is started again with the next command, should somebody end it.
    const forget = (): void => {
      if (this.#watchdog === watchdog) this.#watchdog = undefined;
    };
    watchdog.once('exit', forget);
    watchdog.once('error', forget);
    const lifeline = watchdog.stdin as Socket;
    lifeline.on('error', () => {});
    // Neither keeps the host alive.
    watchdog.unref();
    lifeline.unref();
    lifeline.write(`${this.#hello}\n`);
    this.#untold = [...this.#roots.values()].map((root) => lineOf('+', root)).join('');
    this.#flush();
  }

  #flush(): void {
    if (this.#untold !== '') this.#watchdog?.stdin?.write(this.#untold);
    this.#untold = '';
  }
}

function lineOf(sign: '+' | '-', { pid, startTime }: ProcessIdentity): string {
  return `${sign}${pid} ${startTime}\n`;
}
