import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { type ProcessStatus, readStatus } from './identity.ts';
import { readLastPid } from './pid-clock.ts';
import { readProcFile } from './proc-file.ts';

/** The processes of one moment, as far as a moment can be had. */
export interface ProcessTable {
  readonly processes: ReadonlyMap<number, ProcessStatus>;
  /** Everybody from the floor to this pid was seen, or was gone before it could be. */
  readonly through: number;
  /** Whether nobody has come since. */
  readonly isComplete: boolean;
}

/** So many pids are sooner tried one by one than found in a listing of everybody. */
const MAX_PROBES = 128;

/** Reads everybody from `floor` up, and those in `also`. `last` was the youngest pid a moment ago. */
export function readTable(options: { floor: number; last: number; also: Iterable<number> }): ProcessTable {
  const { floor, last } = options;
  const processes = new Map<number, ProcessStatus>();
  // Asked first, because most of these are gone by now, and an open that fails costs ten times as much.
  for (const pid of options.also) if (existsSync(`/proc/${pid}`)) note(processes, pid);
  const isNear = last >= floor - 1 && last - floor < MAX_PROBES;
  return isNear ? probe(processes, floor, last) : list(processes, floor);
}

/**
 * Tries every pid, upwards. Children have higher pids than their parents, so what a process forks before it is missed lies
 * ahead and is found.
 */
function probe(processes: Map<number, ProcessStatus>, floor: number, last: number): ProcessTable {
  let through = floor - 1;
  for (let end = last; ; ) {
    for (; through < end; through++) {
      const pid = through + 1;
      if (existsSync(`/proc/${pid}`) && !isThread(pid)) note(processes, pid);
    }
    end = readLastPid();
    const isOver = end <= through || end >= floor + 2 * MAX_PROBES;
    if (isOver) return { processes, through, isComplete: end === through && !hidesProcesses() };
  }
}

/** Lists everybody, which is done upwards too; but who comes meanwhile is left to the next look. */
function list(processes: Map<number, ProcessStatus>, floor: number): ProcessTable {
  const last = readLastPid();
  // The youngest first: who lives for milliseconds must be read before it goes.
  for (const entry of readdirSync('/proc').reverse()) {
    const pid = Number(entry);
    if (pid >= floor) note(processes, pid);
  }
  return { processes, through: last, isComplete: last === readLastPid() && !hidesProcesses() };
}

let isHiding: boolean | undefined;

/**
 * Whether `/proc` is mounted so that it hides processes from this user. With `hidepid` even one's own are hidden once they
 * guard their memory, as `ssh-agent` does, so no look is complete.
 */
export function hidesProcesses(): boolean {
  isHiding ??= /^\S+ \/proc proc \S*\bhidepid=(?!0|off)/m.test(readFileSync('/proc/self/mounts', 'utf8')) && !seesAll();
  return isHiding;
}

/** Whether this process may look into any other (CAP_SYS_PTRACE). */
function seesAll(): boolean {
  const capabilities = /^CapEff:\t(\w+)/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '0';
  return ((BigInt(`0x${capabilities}`) >> 19n) & 1n) === 1n;
}

function note(processes: Map<number, ProcessStatus>, pid: number): void {
  const status = readStatus(pid);
  if (status !== undefined) processes.set(pid, status);
}

/** Threads have pids too; unlike a listing, a probe meets them. */
function isThread(pid: number): boolean {
  const group = /^Tgid:\t(\d+)/m.exec(readProcFile(`/proc/${pid}/status`)?.toString('latin1', 0, 256) ?? '')?.[1];
  return Number(group) !== pid;
}
