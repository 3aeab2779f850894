import type { Agent, CancellationToken, Cleanup, Json } from '@whoa/core';
import type { TaskRecord } from '../task.ts';

/** What work that is no agent is given. */
export interface TaskContext {
  readonly task: TaskRecord;
  /** What was said in the conversation before. */
  readonly history: readonly Json[];
  readonly token: CancellationToken;
  readonly signal: AbortSignal;
  /** Writes an event down; resolves when it is safe. After a crash it is in the journal of the task. */
  readonly journal: (event: { readonly type: string } & Record<string, Json>) => Promise<void>;
  readonly defer: (cleanup: Cleanup) => void;
}

/** What a task can run: an agent, or any async function. What a function returns is the answer (a text) or the result. */
export type Work = Agent | ((context: TaskContext) => Promise<Json | undefined>);

export function isAgent(work: Work): work is Agent {
  return typeof work === 'object';
}
