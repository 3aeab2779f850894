import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { HostRecord } from './host-directory.ts';
import type { ProcessIdentity } from './identity/identity.ts';
import { outerTags } from './identity/tags.ts';

/** If the watchdog is killed repeatedly, limit the restarts. After that, restart it with the next command. */
const MIN_RESTART_MS = 100;
const MAX_RESTARTS = 50;
/** A watchdog that ran this long resets the count of restarts. */
const STEADY_MS = 5_000;

/** The host's side of its watchdog. The watchdog knows that the host has ended when the pipe between them closes. */
export class WatchdogLink implements AsyncDisposable {
  readonly #registration: string;
  readonly #roots = new Map<number, ProcessIdentity>();
  #unsentHints = '';
  #watchdog: ChildProcess | undefined;
  #startedAt = 0;
  #restart: NodeJS.Timeout | undefined;
  #restarts = 0;
  readonly #file: string;

  constructor(directory: { folder: string; record: HostRecord }, watchdogFile: string) {
    this.#registration = JSON.stringify(directory);
    this.#file = watchdogFile;
    this.#start();
  }

  add(root: ProcessIdentity): void {
    this.#roots.set(root.pid, root);
    if (this.#watchdog === undefined) this.#start();
    else {
      this.#unsentHints += formatLine('+', root);
      this.#flush();
    }
  }

  /** Written a little later, in batches, so that no caller waits for the watchdog to read it. */
  delete(root: ProcessIdentity): void {
    this.#roots.delete(root.pid);
    if (this.#unsentHints === '') setImmediate(() => this.#flush());
    this.#unsentHints += formatLine('-', root);
  }

  /** Closes the pipe and waits until the watchdog has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#restart);
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
    this.#startedAt = performance.now();
    const watchdog = spawn(process.execPath, [this.#file], {
      cwd: '/',
      // In its own session, so that a signal to the host's group does not reach it.
      detached: true,
      env: outerTags(),
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.#watchdog = watchdog;
    const replace = (): void => {
      if (this.#watchdog !== watchdog) return;
      this.#watchdog = undefined;
      this.#startAgain();
    };
    watchdog.once('exit', replace);
    watchdog.once('error', replace);
    const lifeline = watchdog.stdin as Socket;
    lifeline.on('error', () => {});
    // Neither may keep the host alive.
    watchdog.unref();
    lifeline.unref();
    lifeline.write(`${this.#registration}\n`);
    this.#unsentHints = [...this.#roots.values()].map((root) => formatLine('+', root)).join('');
    this.#flush();
  }

  /** A command can kill the watchdog. Restart it, within the limits above. */
  #startAgain(): void {
    const ranMs = performance.now() - this.#startedAt;
    this.#restarts = ranMs > STEADY_MS ? 0 : this.#restarts + 1;
    if (this.#restarts > MAX_RESTARTS) return;
    this.#restart = setTimeout(
      () => {
        if (this.#watchdog === undefined) this.#start();
      },
      Math.max(0, MIN_RESTART_MS - ranMs),
    ).unref();
  }

  #flush(): void {
    if (this.#unsentHints !== '') this.#watchdog?.stdin?.write(this.#unsentHints);
    this.#unsentHints = '';
  }
}

/** The watchdog is a file next to this one. Bundlers leave it out unless it is an entry. */
export function findWatchdog(): string {
  const file = fileURLToPath(new URL(`./watchdog${extname(import.meta.url)}`, import.meta.url));
  if (existsSync(file)) return file;
  throw new Error(
    `The watchdog is missing: there is no ${file}, so commands would outlive a host that is killed. If you bundle, keep ` +
      `'@whoa/tools' external, or bundle '@whoa/tools/watchdog' as a second entry of that name`,
  );
}

function formatLine(sign: '+' | '-', { pid, startTime }: ProcessIdentity): string {
  return `${sign}${pid} ${startTime}\n`;
}
