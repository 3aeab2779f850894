import { type ProcessIdentity, readStatus } from './identity/identity.ts';

export type SignalAnswer = 'sent' | 'gone' | 'refused';

/** Signals this process and no other: the start time is checked first, so a reused pid is left alone. */
export function signalProcess(process: ProcessIdentity, signal: NodeJS.Signals): SignalAnswer {
  return readStatus(process.pid)?.startTime === process.startTime ? send(process.pid, signal) : 'gone';
}

/**
 * Signals a leader's whole group in one step, which not even a fork can slip through. The leader must still be there; one
 * that is held, a child of this process that was not reaped yet, is.
 */
export function signalGroup(
  leader: ProcessIdentity,
  signal: NodeJS.Signals,
  { isHeld }: { isHeld: boolean },
): SignalAnswer {
  if (isHeld) return send(-leader.pid, signal);
  const status = readStatus(leader.pid);
  if (status?.startTime !== leader.startTime || status.group !== leader.pid) return 'gone';
  return send(-leader.pid, signal);
}

function send(target: number, signal: NodeJS.Signals): SignalAnswer {
  try {
    process.kill(target, signal);
    return 'sent';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' ? 'refused' : 'gone';
  }
}
