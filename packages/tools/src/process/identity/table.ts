import { readdirSync, readFileSync } from 'node:fs';
import { isOver, type ProcessStatus, readStatus } from './identity.ts';

/** Reads more about a process right after its status. Returns whether it could. */
type ReadMore = (status: ProcessStatus) => boolean;

interface NewProcesses {
  readonly found: readonly ProcessStatus[];
  /** Whether one ended before it was read: it may have started others after it was listed. */
  readonly hasMissed: boolean;
}

/** All processes. `/proc` cannot be read atomically. */
export class ProcessTable {
  readonly processes: Map<number, ProcessStatus> = new Map();
  readonly #readMore: ReadMore;
  readonly #list: () => readonly number[];

  constructor(readMore: ReadMore, list: () => readonly number[] = listProcesses) {
    this.#readMore = readMore;
    this.#list = list;
    this.readNew();
  }

  /** Lists all processes, and reads those that are new. */
  readNew(): NewProcesses {
    const found: ProcessStatus[] = [];
    let hasMissed = false;
    const listed = this.#list();
    // The youngest first: many processes end within a millisecond.
    for (const pid of listed.toReversed()) {
      if (this.processes.has(pid)) continue;
      const status = readStatus(pid);
      const hasEnded = status === undefined || isOver(status);
      const isRead = status !== undefined && (hasEnded || this.#readMore(status));
      hasMissed ||= hasEnded || !isRead;
      if (!isRead) continue;
      this.processes.set(pid, status);
      found.push(status);
    }
    this.#forget(new Set(listed));
    return { found, hasMissed };
  }

  /** A pid that is not listed any more may be used again. */
  #forget(listed: ReadonlySet<number>): void {
    for (const pid of this.processes.keys()) if (!listed.has(pid)) this.processes.delete(pid);
  }
}

function listProcesses(): readonly number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger);
}

let isHiding: boolean | undefined;

/**
 * Whether `/proc` is mounted with `hidepid`. Then even processes of this user are hidden if they protect their memory, as
 * `ssh-agent` does, so no table is whole.
 */
export function hidesProcesses(): boolean {
  isHiding ??= /^\S+ \/proc proc \S*\bhidepid=(?!0|off)/m.test(readFileSync('/proc/self/mounts', 'utf8')) && !seesAll();
  return isHiding;
}

/** Whether this process may inspect all others (CAP_SYS_PTRACE). */
function seesAll(): boolean {
  const capabilities = /^CapEff:\t(\w+)/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '0';
  return ((BigInt(`0x${capabilities}`) >> 19n) & 1n) === 1n;
}
