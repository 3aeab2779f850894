import type { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { isRunning, type ProcessIdentity, type ProcessStatus, readChildren } from '../identity/identity.ts';
import { readProcFile } from '../identity/proc-file.ts';
import { requireHelper } from '../programs.ts';
import { signalProcess } from '../signal.ts';

/** Starts a command in a PID namespace and restricts nothing: a fence, not a sandbox. */
export function fenceArguments(argv: readonly string[]): readonly string[] {
  const options = ['--dev-bind', '/', '/', '--proc', '/proc', '--unshare-pid', '--die-with-parent'];
  return [requireHelper('bwrap'), ...options, '--', ...argv];
}

const MAX_DIGITS = 20;
/** The descriptor on which the shell of a command reports. */
export const REPORT = 4;

/**
 * Runs a command in the shell that started it, which reports how many processes the command leaves behind: the kernel ends them
 * unseen when the shell has ended. `posts` is the number of our own processes inside.
 */
export function fenceScript(posts: number): string {
  const count = `set -- /proc/[0-9]*; echo $(($# - ${posts})) >&${REPORT}`;
  return `exec 5>&2 2>/dev/null; "$@" 2>&5 5>&- ${REPORT}>&-; code=$?; ${count}; exit $code`;
}

/** Reads the report, and resolves when its pipe is closed. */
export async function readReport(child: ChildProcess): Promise<number> {
  let text = '';
  const pipe = child.stdio[REPORT] as Readable | null | undefined;
  pipe?.on('data', (chunk: Buffer) => (text = (text + chunk.toString()).slice(0, MAX_DIGITS)));
  if (pipe) await finished(pipe).catch(() => {});
  return Math.max(0, Number.parseInt(text, 10) || 0);
}

/**
 * The PID namespace that bubblewrap creates around one command. Its first process is the outer post; its child is the init of
 * the namespace, the inner post. When init ends, the kernel kills all processes inside and waits for them. So the end of init
 * is the proof.
 */
export class KernelBoundary {
  readonly #root: ProcessIdentity;
  readonly #isBridged: boolean;
  #inits: ProcessIdentity[] = [];

  /** A bridge to the network is between init and the shell. */
  constructor(root: ProcessIdentity, { isBridged }: { isBridged: boolean }) {
    this.#root = root;
    this.#isBridged = isBridged;
  }

  /** Whether a process maintains the fence. Don't signal it: that would kill all processes inside. */
  isPost(member: ProcessStatus): boolean {
    if (member.pid === this.#root.pid || this.#inits.some(({ pid }) => pid === member.pid)) return true;
    const pids = readPids(member.pid);
    // If the outer post ends first, init gets another parent.
    const isInside = pids?.length === readPids('self')!.length + 1;
    const isInit = member.parent === this.#root.pid || (isInside && pids.at(-1) === '1');
    if (isInit) this.#inits.push(member);
    // The shell that started the command, or the bridge and then the shell.
    const isShell = pids?.at(-1) === '2' || (this.#isBridged && readPids(member.parent)?.at(-1) === '2');
    // A process that has just ended need not be signalled or counted, but it is no proof either.
    return isInit || (isInside && isShell) || pids === undefined;
  }

  /** Kills all processes inside. Returns `false` if it could not. */
  kill(): boolean {
    const children = readChildren(this.#root.pid);
    if (children.length > 0) this.#inits = children;
    for (const init of this.#inits) signalProcess(init, 'SIGKILL');
    return signalProcess(this.#root, 'SIGKILL') !== 'refused';
  }

  /** Whether no process is inside, as the kernel reports it; `undefined` if that is not known. */
  isEmpty(): boolean | undefined {
    if (isRunning(this.#root)) return false;
    return this.#inits.length === 0 ? undefined : !this.#inits.some(isRunning);
  }
}

/** A process's pids, from this namespace to its own. */
function readPids(pid: number | 'self'): string[] | undefined {
  const status = readProcFile(`/proc/${pid}/status`)?.toString('latin1');
  return /^NSpid:\t(.*)$/m.exec(status ?? '')?.[1]?.split('\t');
}
