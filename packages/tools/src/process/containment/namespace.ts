import type { ChildProcess } from 'node:child_process';
import { readdirSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { waitAtMost } from '@whoa/core/internal';
import {
  identify,
  isOver,
  isRunning,
  type ProcessIdentity,
  type ProcessStatus,
  readStatus,
} from '../identity/identity.ts';
import { readProcFile } from '../identity/proc-file.ts';
import { findHelper, requireHelper } from '../programs.ts';
import { signalProcess } from '../signal.ts';
import { type Boundary, whenAborted } from './boundary.ts';
import type { ProcessExit } from './contained.ts';

/** A program that starts a command in a PID namespace and restricts nothing else. Its child is the init of the namespace. */
export type NamespaceProgram = 'unshare' | 'bwrap';

/** The programs that are installed, the faster one first. */
export function findNamespacePrograms(): readonly NamespaceProgram[] {
  return (['unshare', 'bwrap'] as const).filter((name) => findHelper(name) !== undefined);
}

export function namespaceArguments(program: NamespaceProgram, argv: readonly string[]): readonly string[] {
  const user = process.getuid?.() === 0 ? [] : ['--user', '--map-current-user'];
  const options = {
    unshare: [...user, '--pid', '--fork', '--kill-child', '--mount-proc'],
    bwrap: ['--dev-bind', '/', '/', '--proc', '/proc', '--unshare-pid', '--die-with-parent', '--as-pid-1'],
  };
  return [requireHelper(program), ...options[program], '--', ...argv];
}

const MAX_DIGITS = 20;
/** The descriptor on which the shell of a command reports. */
export const REPORT = 4;

/**
 * Runs a command in a shell, which reports how many processes the command leaves behind: the kernel ends them unseen when the
 * init of the namespace has ended. `own` is the number of our own processes inside; if it is 1, the shell is the init.
 */
export function initArguments(
  argv: readonly string[],
  { script = '', own = 1 }: { script?: string; own?: number } = {},
): readonly string[] {
  const count = `set -- /proc/[0-9]*; echo $(($# - ${own})) >&${REPORT}`;
  const run = `exec 5>&2 2>/dev/null; "$@" 2>&5 5>&- ${REPORT}>&-; code=$?; ${count}; exit $code`;
  // The first argument is the name in the shell's error messages.
  return ['/bin/sh', '-c', script + run, 'whoa', ...argv];
}

/** Reads the report, and resolves when its pipe is closed. */
export async function readReport(child: ChildProcess): Promise<number> {
  let text = '';
  const pipe = child.stdio[REPORT] as Readable | null | undefined;
  pipe?.on('data', (chunk: Buffer) => (text = (text + chunk.toString()).slice(0, MAX_DIGITS)));
  if (pipe) await finished(pipe).catch(() => {});
  return Math.max(0, Number.parseInt(text, 10) || 0);
}

/** How long a namespace may take to get its init, and how often to look for it. */
const MAX_INIT_MS = 1_000;
const INIT_TICK_MS = 1;

/**
 * The PID namespace around one command. When its init ends, the kernel kills all processes inside and waits for them before
 * the program that created it sees the end. So the end of that program, our child, is the proof.
 */
export class NamespaceBoundary implements Boundary {
  readonly verified = 'namespace';
  readonly #root: ProcessIdentity;
  readonly #exited: Promise<ProcessExit>;
  /** Our own processes inside: the init, and those that start the command. */
  readonly #own: number;
  #hasExited = false;
  #init: ProcessIdentity | undefined;

  constructor(root: ProcessIdentity, { exited, own }: { exited: Promise<ProcessExit>; own: number }) {
    this.#root = root;
    this.#own = own;
    this.#exited = exited.finally(() => (this.#hasExited = true));
  }

  members(): readonly ProcessStatus[] {
    const init = this.#findInit();
    if (init === undefined) return [];
    const family = [init];
    // Orphans become children of the init, so its family is everything.
    for (const member of family) family.push(...readAllChildren(member.pid));
    const starters = new Set<number>();
    for (let pid: number | undefined = init.pid; pid !== undefined && starters.size < this.#own; ) {
      starters.add(pid);
      const parent: number = pid;
      pid = family.find((member) => member.parent === parent)?.pid;
    }
    return family.filter((member) => !starters.has(member.pid) && !isOver(member));
  }

  kill(): void {
    this.#killInit().catch(() => {});
  }

  async waitUntilEmpty(maxMs: number, signal?: AbortSignal): Promise<boolean> {
    await waitAtMost(Promise.race([this.#exited, whenAborted(signal)]), maxMs);
    return this.isEmpty();
  }

  /** Others may have killed the program before its init. */
  isEmpty(): boolean {
    return this.#hasExited && !(this.#init && isRunning(this.#init));
  }

  async #killInit(): Promise<void> {
    // It may not have been created yet. Don't kill the program: its child could escape just then.
    for (const until = performance.now() + MAX_INIT_MS; !this.#hasExited && performance.now() < until; ) {
      const init = this.#findInit();
      if (init !== undefined) {
        signalProcess(init, 'SIGKILL');
        return;
      }
      await sleep(INIT_TICK_MS);
    }
    signalProcess(this.#root, 'SIGKILL');
  }

  #findInit(): ProcessStatus | undefined {
    const known = this.#init && readStatus(this.#init.pid);
    if (known !== undefined && known.startTime === this.#init!.startTime) return known;
    if (this.#init !== undefined || this.#hasExited) return undefined;
    const [init] = readAllChildren(this.#root.pid);
    this.#init = init && identify(init.pid);
    return init;
  }
}

/** The children of all threads of a process, the oldest first. */
function readAllChildren(pid: number): ProcessStatus[] {
  const found: ProcessStatus[] = [];
  for (const thread of readThreads(pid)) {
    const line = readProcFile(`/proc/${pid}/task/${thread}/children`)?.toString('latin1') ?? '';
    for (const child of line.split(' ').filter(Boolean)) {
      const status = readStatus(Number(child));
      if (status !== undefined) found.push(status);
    }
  }
  return found.toSorted((a, b) => a.startTime - b.startTime || a.pid - b.pid);
}

function readThreads(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}
