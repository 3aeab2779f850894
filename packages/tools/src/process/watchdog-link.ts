import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Guard } from './guard.ts';
import { identify } from './identity/identity.ts';
import { outerTags } from './identity/tags.ts';
import type { GuardedCommand } from './leftovers.ts';
import type { WatchdogOrder } from './watchdog.ts';

/** If the watchdog is killed repeatedly, limit the restarts. After that, restart it with the next command. */
const MIN_RESTART_MS = 100;
const MAX_RESTARTS = 50;
/** A watchdog that ran this long resets the count of restarts. */
const STEADY_MS = 5_000;

/** The host's side of its watchdog. The watchdog knows that the host has ended when the pipe between them closes. */
export class WatchdogLink implements AsyncDisposable {
  readonly #folder: string;
  readonly #commands = new Map<number, GuardedCommand>();
  /** When commands whose stop began must have ended, by their number. */
  readonly #deadlines = new Map<number, number>();
  readonly #guard = new Guard(() => this.#watchdog?.kill('SIGKILL'));
  #unsent = '';
  #isBatching = false;
  #watchdog: ChildProcess | undefined;
  #startedAt = 0;
  #restart: NodeJS.Timeout | undefined;
  #restarts = 0;
  readonly #file: string;

  constructor(folder: string, watchdogFile: string) {
    this.#folder = folder;
    this.#file = watchdogFile;
    this.#start();
  }

  add(command: GuardedCommand): void {
    this.#commands.set(command.number, command);
    if (this.#watchdog === undefined) this.#start();
    else this.#send({ started: command });
    if (this.#commands.size === 1) this.#guardWatchdog();
  }

  /** From now on the watchdog ends the command after this time, whatever happens to this process. */
  bound(command: GuardedCommand, withinMs: number): void {
    this.#deadlines.set(command.number, performance.now() + withinMs);
    this.#unsent += formatOrder({ ending: command, withinMs });
    if (this.#isBatching) return;
    // Write the first one now: this process may do nothing else for long. The others that one cancel stops share a write.
    this.#flush();
    this.#isBatching = true;
    queueMicrotask(() => {
      this.#isBatching = false;
      this.#flush();
    });
  }

  /** Written a little later, in batches, so that no caller waits for the watchdog to read it. */
  delete(command: GuardedCommand): void {
    this.#commands.delete(command.number);
    this.#deadlines.delete(command.number);
    if (this.#unsent === '') setImmediate(() => this.#flush());
    this.#unsent += formatOrder({ ended: command });
    if (this.#commands.size === 0) this.#guard.stop();
  }

  /** Closes the pipe and waits until the watchdog has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#restart);
    this.#guard.stop();
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
    const watchdog = spawn(process.execPath, [this.#file, this.#folder], {
      cwd: '/',
      // In its own session, so that a signal to the host's group does not reach it.
      detached: true,
      env: { ...outerTags(), NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.#watchdog = watchdog;
    const replace = (): void => {
      if (this.#watchdog !== watchdog) return;
      this.#watchdog = undefined;
      this.#guard.stop();
      this.#startAgain();
    };
    watchdog.once('exit', replace);
    watchdog.once('error', replace);
    const lifeline = watchdog.stdin as Socket;
    lifeline.on('error', () => {});
    // Neither may keep the host alive.
    watchdog.unref();
    lifeline.unref();
    this.#unsent = [...this.#commands.values()].map((command) => formatOrder({ started: command })).join('');
    for (const [number, until] of this.#deadlines) {
      const withinMs = Math.max(0, until - performance.now());
      this.#unsent += formatOrder({ ending: this.#commands.get(number)!, withinMs });
    }
    this.#flush();
    this.#guardWatchdog();
  }

  /** A command can freeze the watchdog. */
  #guardWatchdog(): void {
    const pid = this.#watchdog?.pid;
    const watchdog = this.#commands.size === 0 || pid === undefined ? undefined : identify(pid);
    if (watchdog !== undefined) this.#guard.start(watchdog);
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

  #send(order: WatchdogOrder): void {
    this.#unsent += formatOrder(order);
    this.#flush();
  }

  #flush(): void {
    if (this.#unsent !== '') this.#watchdog?.stdin?.write(this.#unsent);
    this.#unsent = '';
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

function formatOrder(order: WatchdogOrder): string {
  return `${JSON.stringify(order)}\n`;
}
