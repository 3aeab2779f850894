import { readFileSync } from 'node:fs';
import { readProcFile } from './proc-file.ts';

/** A moment in the allocation of pids. */
export interface PidMoment {
  /** The youngest pid. */
  readonly last: number;
  /** How many processes and threads were started since boot. */
  readonly forks: number;
  /** The youngest pid just before `forks` was read. */
  readonly lastBefore: number;
}

const PROCESSES = Buffer.from('\nprocesses ');
let maxPid: number | undefined;

export function readPidMoment(): PidMoment {
  const lastBefore = readLastPid();
  const stat = readProcFile('/proc/stat');
  const at = stat?.indexOf(PROCESSES) ?? -1;
  const forks = at < 0 ? Number.NaN : Number.parseInt(stat!.toString('latin1', at + PROCESSES.length, at + 32), 10);
  return { last: readLastPid(), forks, lastBefore };
}

/** The youngest pid, the last field of `/proc/loadavg`. */
export function readLastPid(): number {
  const line = readProcFile('/proc/loadavg')?.toString('latin1') ?? '';
  return Number(line.slice(line.lastIndexOf(' ') + 1));
}

/**
 * Whether pids have only increased since a moment, so that all processes started since then have a higher one. Pids increase
 * and wrap around at `pid_max`; at most half of that may pass unnoticed. More forks than pids means that root chose a pid
 * (`clone3` with `set_tid`), or that a process forked in another PID namespace.
 */
export function haveOnlyGoneUp(since: PidMoment, now: PidMoment): boolean {
  maxPid ??= Number(readFileSync('/proc/sys/kernel/pid_max', 'latin1'));
  const forks = now.forks - since.forks;
  return now.last >= since.last && forks < maxPid / 2 && forks <= now.last - since.lastBefore;
}
