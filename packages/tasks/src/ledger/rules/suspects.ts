import { LIMITS, OFFERED, OFFERED_SUSPECTS, SETTLE, SUSPECTS, UNDO } from './rules.ts';
import type { TaskStatus } from './status.ts';

interface ReadyQueueTask {
  readonly agent: string;
  readonly status: TaskStatus;
  readonly attempts: number;
  readonly stop?: { readonly undo: boolean };
  readonly isOffered?: boolean;
}

/** Returns whether a task that no worker holds is a suspect: its workers may have crashed because of it. */
export function isSuspect({ status, attempts }: Pick<ReadyQueueTask, 'status' | 'attempts'>): boolean {
  return status !== 'cancelling' && attempts >= LIMITS.suspectAttempts;
}

/** Returns the name of the ready queue in which a task waits when it is ready. */
export function toReadyQueueName(task: ReadyQueueTask): string {
  if (task.status === 'cancelling') return task.stop?.undo === true ? UNDO + task.agent : SETTLE;
  if (task.isOffered === true) return (isSuspect(task) ? OFFERED_SUSPECTS : OFFERED) + task.agent;
  return isSuspect(task) ? SUSPECTS + task.agent : task.agent;
}

/** Returns the agent of a ready queue; `SETTLE` if any worker can take its tasks. */
export function toAgent(readyQueue: string): string {
  return readyQueue.startsWith(SETTLE) && readyQueue !== SETTLE ? readyQueue.slice(SUSPECTS.length) : readyQueue;
}

/** Returns whether a ready queue's tasks are delivered despite pauses and limits: a cancel must not wait for either. */
export function isExempt(readyQueue: string): boolean {
  return readyQueue === SETTLE || readyQueue.startsWith(UNDO);
}

/** Returns the delay before a task is taken again. Every store computes the same, so it is not random. */
export function toDeathDelay(id: string, crashes: number): number {
  if (crashes <= 1) return 0;
  const baseMs = LIMITS.crashBackoffMs * 2 ** (crashes - 2);
  const sum = Buffer.from(id).reduce((all, byte) => all + byte, crashes);
  const share = 1 + (sum % LIMITS.deathDelaySteps) / LIMITS.deathDelaySteps;
  return Math.min(LIMITS.maxCrashBackoffMs, baseMs * share);
}

/** Returns the error of a task that fails because its workers kept crashing. */
export function toLostMessage(crashes: number | string): string {
  return `its workers were lost ${crashes} times: fix what ends them, then requeue the task`;
}
