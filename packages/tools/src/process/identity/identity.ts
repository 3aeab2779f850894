import { readProcFile } from './proc-file.ts';

/** One process and no other: a pid alone may be reused, a pid with its start time is not. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot. */
  readonly startTime: number;
}

/** What the kernel says of a process. */
export interface ProcessStatus extends ProcessIdentity {
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
}

/** Reads a process's entry in `/proc`; `undefined` when there is none. */
export function readStatus(pid: number): ProcessStatus | undefined {
  const line = readProcFile(`/proc/${pid}/stat`)?.toString('latin1');
  if (line === undefined) return undefined;
  // The name in the second field may itself hold spaces and brackets, so fields are counted from the last bracket.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ', 20);
  return {
    pid,
    state: fields[0]!,
    parent: Number(fields[1]),
    group: Number(fields[2]),
    session: Number(fields[3]),
    startTime: Number(fields[19]),
  };
}

/** The children of a process's first thread; of all but the rarest programs, all. */
export function readChildren(pid: number): ProcessStatus[] {
  const line = readProcFile(`/proc/${pid}/task/${pid}/children`)?.toString('latin1') ?? '';
  const children = line.split(' ').filter(Boolean).map(Number).map(readStatus);
  return children.filter((child) => child !== undefined);
}

/** Who a pid is right now. */
export function identify(pid: number): ProcessIdentity | undefined {
  const status = readStatus(pid);
  return status && { pid, startTime: status.startTime };
}

/** Whether exactly this process still runs. A zombie does not run. */
export function isRunning({ pid, startTime }: ProcessIdentity): boolean {
  const status = readStatus(pid);
  return status?.startTime === startTime && !isOver(status);
}

/** A zombie, or about to be gone. */
export function isOver({ state }: ProcessStatus): boolean {
  return state === 'Z' || state === 'X' || state === 'x';
}
