import { mkdirSync, openSync, readdirSync, readFileSync, rmdirSync, statSync, watch, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { HostTag } from '../identity/tags.ts';
import { isUnder } from '../programs.ts';

/** How often to read a state again if the kernel's notification does not arrive. */
const RECHECK_MS = 20;
/** Notifications take a workqueue and the event loop, so read a few times before waiting for one. */
const MAX_HASTY_LOOKS = 20;

const GONE = new Set<string | undefined>(['ENOENT', 'ENODEV']);

/** The cgroup of a host's commands, below the host's; `undefined` without a cgroup v2 tree. It need not be writable. */
export function findHostCgroup({ host }: HostTag): string | undefined {
  const tree = findTree();
  return tree === undefined ? undefined : join(tree, `whoa-${host}`);
}

/** The cgroup of this process. */
function findTree(): string | undefined {
  const own = /^0::(\/.*)$/m.exec(readText('/proc/self/cgroup'))?.[1];
  if (own === undefined) return undefined;
  for (const line of readText('/proc/self/mountinfo').split('\n')) {
    const [, root, point] = /^\S+ \S+ \S+ (\S+) (\S+) .* - cgroup2 /.exec(line) ?? [];
    if (root === undefined || !isUnder(root, own)) continue;
    const path = join(point!, relative(root, own));
    // A mount may show another part of the tree.
    if (readText(join(path, 'cgroup.procs')).split('\n').includes(`${process.pid}`)) return path;
  }
  return undefined;
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}

/** A cgroup v2 folder around a command. No controller is needed. */
export class Cgroup {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  create(): void {
    mkdirSync(this.path, { recursive: true });
  }

  /**
   * Returns a descriptor through which a process joins: it writes `0`. The kernel checks the rights of whoever opened it, so
   * that this also works in a namespace where the folder is not visible.
   */
  openEntrance(): number {
    return openSync(join(this.path, 'cgroup.procs'), 'w');
  }

  /** Since Linux 5.14. */
  canKill(): boolean {
    return statSync(join(this.path, 'cgroup.kill'), { throwIfNoEntry: false }) !== undefined;
  }

  /** The pids inside, including those in its own cgroups. */
  pids(): readonly number[] {
    const own = readText(join(this.path, 'cgroup.procs')).split('\n').filter(Boolean).map(Number);
    return [...own, ...this.#below().flatMap((cgroup) => cgroup.pids())];
  }

  /** Ends every process inside, and those that they fork meanwhile. */
  kill(): void {
    this.#write('cgroup.kill', '1');
  }

  isEmpty(): boolean {
    return this.#has('populated 0');
  }

  /** Resolves when nothing runs inside, or after a time; returns whether nothing does. */
  waitUntilEmpty(maxMs: number, signal?: AbortSignal): Promise<boolean> {
    return this.#waitUntil(() => this.isEmpty(), maxMs, signal);
  }

  /** Stops all processes inside, and waits up to `maxMs` until the kernel confirms it. */
  async freeze(maxMs: number): Promise<void> {
    this.#write('cgroup.freeze', '1');
    await this.#waitUntil(() => this.isFrozen(), maxMs);
  }

  isFrozen(): boolean {
    return this.#has('frozen 1');
  }

  thaw(): void {
    this.#write('cgroup.freeze', '0');
  }

  /** Removes it with the cgroups inside. Keeps those in which processes run. */
  remove(): void {
    for (const cgroup of this.#below()) cgroup.remove();
    try {
      rmdirSync(this.path);
    } catch {
      // Processes run in it, or it is gone.
    }
  }

  #below(): Cgroup[] {
    try {
      // A folder without folders has two links. That is known without reading it.
      const entries = statSync(this.path).nlink === 2 ? [] : readdirSync(this.path, { withFileTypes: true });
      return entries.filter((entry) => entry.isDirectory()).map(({ name }) => new Cgroup(join(this.path, name)));
    } catch {
      return [];
    }
  }

  /** Whether `cgroup.events` has a line. A cgroup that is gone was empty; one that cannot be read proves nothing. */
  #has(line: string): boolean {
    try {
      return readFileSync(join(this.path, 'cgroup.events'), 'latin1').includes(line);
    } catch (error) {
      return GONE.has((error as NodeJS.ErrnoException).code);
    }
  }

  #write(name: string, text: string): void {
    try {
      writeFileSync(join(this.path, name), text);
    } catch {
      // It is gone, and its processes with it.
    }
  }

  async #waitUntil(isSo: () => boolean, maxMs: number, signal?: AbortSignal): Promise<boolean> {
    for (let looks = 0; looks < MAX_HASTY_LOOKS && maxMs > 0; looks++) {
      if (isSo()) return true;
      await nextTurn();
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = (): void => {
      if (isSo() || signal?.aborted) resolve();
    };
    const timers = [setTimeout(resolve, maxMs), setInterval(look, RECHECK_MS)];
    const file = join(this.path, 'cgroup.events');
    const watcher = statSync(file, { throwIfNoEntry: false }) && watch(file, look).on('error', look);
    signal?.addEventListener('abort', look);
    look();
    await promise;
    signal?.removeEventListener('abort', look);
    watcher?.close();
    for (const timer of timers) clearTimeout(timer);
    return isSo();
  }
}

/** Writes itself into the cgroup of a descriptor, closes that, and becomes the command. It never runs outside. */
const ENTER = 'echo 0 >&3 || exit 126; exec "$@" 3>&-';

export function enterArguments(argv: readonly string[]): readonly string[] {
  return ['/bin/sh', '-c', ENTER, 'whoa', ...argv];
}
