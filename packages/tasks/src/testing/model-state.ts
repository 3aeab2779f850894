import type { ClaimRef } from '../delivery/worker-store.ts';
import type { FinalStatus, TaskStatus } from '../ledger/rules/status.ts';

/** What one task must look like, told in the fewest words. */
export interface ModelTask {
  readonly id: string;
  readonly conversation: string | undefined;
  status: TaskStatus;
  /** In a session now. */
  held: boolean;
  epoch: number;
  attempts: number;
  crashes: number;
  /** Crashes that are its own: it was a suspect, and every session here holds one task. */
  charges: number;
  /** The claim that was taken away last, if it was not handed back since. */
  lost?: { readonly claim: ClaimRef; readonly isCharged: boolean } | undefined;
  position: number;
  ends: number;
  /** The epoch of the last append, which says that one question waits. */
  isUsed?: true;
  /** Every claim there ever was, oldest first. */
  readonly claims: ClaimRef[];
  /** The claim that handed it back last, if no other claimed it since. */
  released?: ClaimRef | undefined;
}

export interface Model {
  readonly tasks: ModelTask[];
  /** Tasks of each conversation that live, in the order of their turns. */
  readonly queues: Map<string, ModelTask[]>;
}

/** Takes a task from its session. */
export function reclaim(task: ModelTask): void {
  task.held = false;
  task.epoch++;
  if (task.status === 'running') task.status = 'init';
}

/** Ends a task and removes it from its conversation. */
export function end(model: Model, task: ModelTask, status: FinalStatus): void {
  task.status = status;
  task.held = false;
  task.ends++;
  if (task.conversation === undefined) return;
  const queue = model.queues.get(task.conversation) ?? [];
  model.queues.set(
    task.conversation,
    queue.filter((one) => one !== task),
  );
}
