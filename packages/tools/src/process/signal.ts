import { type ProcessIdentity, readStatus } from './identity/identity.ts';

export type SignalResult = 'sent' | 'gone' | 'refused';

/** Signals a process. Checks the start time first, so a reused pid is never signalled. */
export function signalProcess(process: ProcessIdentity, signal: NodeJS.Signals): SignalResult {
  return readStatus(process.pid)?.startTime === process.startTime ? send(process.pid, signal) : 'gone';
}

/**
 * Signals the whole group of a leader in one step, which a fork cannot escape. The leader must still exist. One that is held,
 * a child of this process that was not reaped yet, always does.
 */
export function signalGroup(
  leader: ProcessIdentity,
  signal: NodeJS.Signals,
  { isHeld }: { isHeld: boolean },
): SignalResult {
  if (isHeld) return send(-leader.pid, signal);
  const status = readStatus(leader.pid);
  if (status?.startTime !== leader.startTime || status.group !== leader.pid) return 'gone';
  return send(-leader.pid, signal);
}

function send(target: number, signal: NodeJS.Signals): SignalResult {
  try {
    process.kill(target, signal);
    return 'sent';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' ? 'refused' : 'gone';
  }
}
