import type { Agent, CancellationToken, Json } from '@whoa/core';
import type { Cleanup, UserMessage } from '@whoa/core/embed';
import type { JournalEntry, TaskOutcome, TaskRecord } from '../task.ts';

/** What work that is no agent is given. */
export interface TaskContext {
  readonly task: TaskRecord;
  /** What was said in the conversation before. */
  readonly history: readonly Json[];
  /** The journal as workers left it that were lost; empty the first time. */
  readonly past: readonly JournalEntry[];
  readonly token: CancellationToken;
  readonly signal: AbortSignal;
  /** Writes an event down; resolves when it is safe. After a crash it is in the journal of the task. */
  readonly journal: (event: { readonly type: string } & Record<string, Json>) => Promise<void>;
  readonly defer: (cleanup: Cleanup) => void;
}

/** Any async function. What it returns is the answer (a text) or the result. */
export type TaskFunction = (context: TaskContext) => Promise<Json | undefined>;

/**
 * Work that says itself how it ended, and stops itself. It is never abandoned: the task has not ended until `hold`
 * resolves, however hard it was cancelled.
 */
export interface HeldWork {
  hold(context: HeldContext): Promise<TaskOutcome>;
  /** The end of a task that was being cancelled when its worker was lost. Without it, what its journal says of an agent. */
  settle?(context: HeldContext): Promise<TaskOutcome>;
}

export type HeldContext = Omit<TaskContext, 'signal' | 'defer'>;

/** What a task can run: an agent, any async function, or work that says itself how it ended. */
export type Work = Agent | TaskFunction | HeldWork;

export function isAgent(work: Work): work is Agent {
  return typeof work === 'object' && 'run' in work;
}

export function isHeldWork(work: Work): work is HeldWork {
  return typeof work === 'object' && 'hold' in work;
}

/** A message as an agent is given it: a text is what a user says. */
export function messageOf(message: Json): UserMessage {
  const given = message as unknown as UserMessage;
  return typeof given === 'object' && given !== null && 'role' in given
    ? given
    : { role: 'user', content: message as string };
}
