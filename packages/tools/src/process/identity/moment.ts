import type { ProcessIdentity, ProcessStatus } from './identity.ts';
import { readProcFile } from './proc-file.ts';
import { formatIdentity } from './scope.ts';

/** A moment on the clock of processes: the youngest process then, and when it was. */
export type ProcessMoment = ProcessIdentity;

/** A stretch of time; without `until` it lasts. */
export interface ProcessSpan {
  readonly since: ProcessMoment;
  readonly until?: ProcessMoment | undefined;
}

const TICKS_PER_SECOND = 100;

/** The moment now. Start times have 10 ms; within one of these, pids only go up. */
export function readMoment(): ProcessMoment {
  const pid = readLastPid();
  const seconds = Number.parseFloat(readProcFile('/proc/uptime')?.toString('latin1') ?? '0');
  return { pid, startTime: Math.round(seconds * TICKS_PER_SECOND) };
}

/** The youngest pid, the last field of `/proc/loadavg`. */
function readLastPid(): number {
  const line = readProcFile('/proc/loadavg')?.toString('latin1') ?? '';
  return Number(line.slice(line.lastIndexOf(' ') + 1));
}

export function isAfter(process: ProcessIdentity, moment: ProcessMoment): boolean {
  return process.startTime > moment.startTime || (process.startTime === moment.startTime && process.pid > moment.pid);
}

/** Chooses processes of a command. */
export interface ProcessChoice {
  /** The chosen ones of all that run. */
  readonly choose: (members: readonly ProcessStatus[]) => ProcessStatus[];
  /** How many that were started since were left alone at the last call: they may belong to other work. */
  readonly shared: number;
  /** From now on chooses no process that starts later, except children of chosen ones. */
  close(): void;
}

/**
 * Chooses the processes that were started after a moment. One that was started in a span of `except` may belong to other work:
 * it is chosen only if its parent was.
 */
export function startedSince(since: ProcessMoment, except: readonly ProcessSpan[]): ProcessChoice {
  const chosen = new Map<number, string>();
  let shared = 0;
  let until: ProcessMoment | undefined;
  const isShared = (process: ProcessStatus): boolean =>
    except.some((span) => isAfter(process, span.since) && (span.until === undefined || !isAfter(process, span.until)));
  const choose = (members: readonly ProcessStatus[]): ProcessStatus[] => {
    const isEarly = (one: ProcessStatus): boolean =>
      until === undefined || !isAfter(one, until) || chosen.has(one.parent);
    const sorted = members
      .filter((one) => isAfter(one, since) && isEarly(one))
      .toSorted((a, b) => a.startTime - b.startTime || a.pid - b.pid);
    const mine = sorted.filter((one) => {
      const isMine = chosen.get(one.pid) === formatIdentity(one) || !isShared(one) || chosen.has(one.parent);
      if (isMine) chosen.set(one.pid, formatIdentity(one));
      return isMine;
    });
    shared = sorted.length - mine.length;
    return mine;
  };
  return {
    choose,
    get shared() {
      return shared;
    },
    close: () => {
      until ??= readMoment();
    },
  };
}
