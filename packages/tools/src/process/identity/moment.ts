import type { ProcessIdentity, ProcessStatus } from './identity.ts';
import { readLastPid } from './pid-clock.ts';
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

export function isAfter(process: ProcessIdentity, moment: ProcessMoment): boolean {
  return process.startTime > moment.startTime || (process.startTime === moment.startTime && process.pid > moment.pid);
}

/**
 * Chooses the processes that were started after a moment. One that was started in a span of `except` may belong to other work:
 * it is chosen only if its parent was.
 */
export function startedSince(
  since: ProcessMoment,
  except: readonly ProcessSpan[],
): (members: readonly ProcessStatus[]) => ProcessStatus[] {
  const chosen = new Map<number, string>();
  const isShared = (process: ProcessStatus): boolean =>
    except.some((span) => isAfter(process, span.since) && (span.until === undefined || !isAfter(process, span.until)));
  return (members) => {
    const sorted = members
      .filter((one) => isAfter(one, since))
      .toSorted((a, b) => a.startTime - b.startTime || a.pid - b.pid);
    return sorted.filter((one) => {
      const isMine = chosen.get(one.pid) === formatIdentity(one) || !isShared(one) || chosen.has(one.parent);
      if (isMine) chosen.set(one.pid, formatIdentity(one));
      return isMine;
    });
  };
}
