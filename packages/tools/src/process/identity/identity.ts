import { readProcFile } from './proc-file.ts';

/** Identifies a process: a pid alone may be reused, a pid with its start time is not. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot. */
  readonly startTime: number;
}

/** The status of a process from `/proc`. */
export interface ProcessStatus extends ProcessIdentity {
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
}

/** The fields of `/proc/PID/stat` from the state on; `undefined` if the process does not exist. */
function readFields(pid: number): readonly string[] | undefined {
  const line = readProcFile(`/proc/${pid}/stat`)?.toString('latin1');
  // The name in the second field may contain spaces and brackets, so count fields from the last bracket.
  return line?.slice(line.lastIndexOf(')') + 2).split(' ', 20);
}

/** Reads the status of a process; `undefined` if it does not exist. */
export function readStatus(pid: number): ProcessStatus | undefined {
  const fields = readFields(pid);
  if (fields === undefined) return undefined;
  return {
    pid,
    state: fields[0]!,
    parent: Number(fields[1]),
    group: Number(fields[2]),
    session: Number(fields[3]),
    startTime: Number(fields[19]),
  };
}

/** The children of the first thread of a process. Few programs fork from other threads. */
export function readChildren(pid: number): ProcessStatus[] {
  const line = readProcFile(`/proc/${pid}/task/${pid}/children`)?.toString('latin1') ?? '';
  const children = line.split(' ').filter(Boolean).map(Number).map(readStatus);
  return children.filter((child) => child !== undefined);
}

/** The process that has this pid now. */
export function identify(pid: number): ProcessIdentity | undefined {
  const status = readStatus(pid);
  return status && { pid, startTime: status.startTime };
}

/** Whether this process still runs. A zombie does not. */
export function isRunning({ pid, startTime }: ProcessIdentity): boolean {
  const status = readStatus(pid);
  return status?.startTime === startTime && !isOver(status);
}

/**
 * Whether somebody stopped this process by a signal. If its user did with Ctrl-Z, the shell has taken the terminal back, and it
 * does not count.
 */
export function isFrozen({ pid, startTime }: ProcessIdentity): boolean {
  const fields = readFields(pid);
  if (fields?.[0] !== 'T' || Number(fields[19]) !== startTime) return false;
  const [group, terminal, foreground] = [fields[2], fields[4], fields[5]];
  return terminal === '0' || foreground === group;
}

/** Whether the process is a zombie or dead. */
export function isOver({ state }: ProcessStatus): boolean {
  return state === 'Z' || state === 'X' || state === 'x';
}
