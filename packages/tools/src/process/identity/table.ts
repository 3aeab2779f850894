import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { type ProcessStatus, readStatus } from './identity.ts';
import { readLastPid } from './pid-clock.ts';
import { readProcFile } from './proc-file.ts';

/** A snapshot of the process table. `/proc` cannot be read atomically. */
export interface ProcessTable {
  readonly processes: ReadonlyMap<number, ProcessStatus>;
  /** All processes from the floor to this pid were read, or had ended before. */
  readonly through: number;
  /**
   * Whether no process appeared since. Call it after everything about the processes was read: a child can get its pid before
   * the table is read and appear after it, when its parent has ended and can no longer be attributed.
   */
  readonly isComplete: () => boolean;
}

/** Up to this many pids, trying each is faster than listing `/proc`. */
const MAX_PROBES = 128;

/** Reads all processes from `floor` up, and those in `also`. `last` was the youngest pid a moment ago. */
export function readTable(options: { floor: number; last: number; also: Iterable<number> }): ProcessTable {
  const { floor, last } = options;
  const processes = new Map<number, ProcessStatus>();
  // Check first: most of these have ended, and a failing open costs ten times as much.
  for (const pid of options.also) if (existsSync(`/proc/${pid}`)) note(processes, pid);
  const isNear = last >= floor - 1 && last - floor < MAX_PROBES;
  return isNear ? probe(processes, floor, last) : list(processes, floor);
}

/**
 * Tries every pid in ascending order. Children have higher pids than their parents, so a child that a process forks before it
 * is read is still ahead.
 */
function probe(processes: Map<number, ProcessStatus>, floor: number, last: number): ProcessTable {
  let through = floor - 1;
  const hasAppeared = (pid: number): boolean => !processes.has(pid) && existsSync(`/proc/${pid}`) && !isThread(pid);
  for (let end = last; ; ) {
    for (; through < end; through++) if (hasAppeared(through + 1)) note(processes, through + 1);
    end = readLastPid();
    if (end > through && end < floor + 2 * MAX_PROBES) continue;
    const read = through;
    const isComplete = (): boolean => {
      if (readLastPid() !== read || hidesProcesses()) return false;
      for (let pid = floor; pid <= read; pid++) if (hasAppeared(pid)) return false;
      return true;
    };
    return { processes, through, isComplete };
  }
}

/** Lists all processes. Those started meanwhile are left to the next look. */
function list(processes: Map<number, ProcessStatus>, floor: number): ProcessTable {
  const last = readLastPid();
  const listed = listPids(floor);
  // Read the youngest first: short-lived processes must be read before they end.
  for (const pid of listed.toReversed()) note(processes, pid);
  const known = new Set(listed);
  const isComplete = (): boolean =>
    !hidesProcesses() && listPids(floor).every((pid) => known.has(pid)) && last === readLastPid();
  return { processes, through: last, isComplete };
}

function listPids(floor: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid >= floor);
}

let isHiding: boolean | undefined;

/**
 * Whether `/proc` is mounted with `hidepid`. Then even processes of this user are hidden if they protect their memory, as
 * `ssh-agent` does, so no look is complete.
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

function note(processes: Map<number, ProcessStatus>, pid: number): void {
  const status = readStatus(pid);
  if (status !== undefined) processes.set(pid, status);
}

/** Threads have pids too. A listing of `/proc` omits them; a probe does not. */
function isThread(pid: number): boolean {
  const group = /^Tgid:\t(\d+)/m.exec(readProcFile(`/proc/${pid}/status`)?.toString('latin1', 0, 256) ?? '')?.[1];
  return Number(group) !== pid;
}
