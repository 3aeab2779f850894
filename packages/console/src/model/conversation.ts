import type { TaskSummary } from '@whoa/tasks';
import { isLive } from './shown-status.ts';

/** Returns the task that runs in a conversation, or runs next: the others that live wait for it, or for more messages. */
function findCurrent(tasks: readonly TaskSummary[]): TaskSummary | undefined {
  return tasks.find((task) => isLive(task) && task.stage !== 'queued' && task.policy === undefined);
}

/** Returns the task that says what a conversation is about and how it stands: the current one, or the one that ran last. */
export function findLead(tasks: readonly TaskSummary[], current = findCurrent(tasks)): TaskSummary | undefined {
  if (current !== undefined) return current;
  const started = tasks.filter(({ startedAt }) => startedAt !== undefined);
  return started.toSorted((a, b) => b.startedAt! - a.startedAt!)[0] ?? tasks[0];
}

/** What happened to the message of a task that ended before it began. */
export interface Fate {
  readonly words: string;
  /** The task that took the message over. */
  readonly to?: string | undefined;
  /** What to call that task. */
  readonly link: string;
}

/** Says what happened to a task that ended before it began; `undefined` for any other. `others`: tasks of its conversation. */
export function describeFate(task: TaskSummary, others: readonly TaskSummary[] = []): Fate | undefined {
  const { id, status, startedAt, outcome, steered } = task;
  if (startedAt !== undefined || isLive(task)) return undefined;
  const { kind, message = '' } = outcome?.reason ?? {};
  switch (kind) {
    case 'steered':
      return {
        words: 'It was delivered to a run in progress, which read it before its next step.',
        to: steered,
        link: 'Open that run',
      };
    case 'merged': {
      const to = others.find((other) => message.endsWith(` ${other.id}`));
      return { words: 'It was merged with a newer message: one run answers both.', to: to?.id, link: 'Open that run' };
    }
    case 'superseded': {
      const to = others.find(({ superseded }) => superseded?.includes(id));
      return {
        words: 'A newer message took its place before it began, so it had no effect.',
        to: to?.id,
        link: 'Open the newer one',
      };
    }
    default: {
      const why = kind === undefined || kind === 'user' ? '' : ` (${message || kind})`;
      return {
        words: `It ${status === 'failed' ? 'failed' : 'was stopped'} before it began, so it had no effect${why}.`,
        link: '',
      };
    }
  }
}
