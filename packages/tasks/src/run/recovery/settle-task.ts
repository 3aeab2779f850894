import type { CancellationToken, Json } from '@whoa/core';
import type { JournalEntry, TaskOutcome, TaskRecord } from '../../task.ts';
import type { AdoptedRun } from '../adopted-run.ts';
import { historyBefore } from '../agent-work.ts';
import type { Journal } from '../journal/journal.ts';
import { saidIn, usedBefore } from '../outcome.ts';
import { isAgent, type TaskHandler } from '../work.ts';
import { settle, standingOf } from './resume.ts';
import { findNotUndone, undoAfterCrash } from './undo.ts';

interface SettleOptions {
  readonly task: TaskRecord;
  /** The earlier messages of its conversation. */
  readonly history: readonly Json[];
  readonly work: TaskHandler | AdoptedRun;
  readonly journal: Journal;
  readonly token: CancellationToken;
  readonly now: number;
}

/** Ends a task that must not run again: it was being cancelled when its worker was lost, or its deadline has passed. */
export async function settleTask(past: readonly JournalEntry[], options: SettleOptions): Promise<TaskOutcome> {
  const { task, history, work, journal, token, now } = options;
  const { reason, undo } = task.stop ?? { reason: token.reason!, undo: false };
  const standing = standingOf(past);
  const undone =
    undo && isAgent(work)
      ? await undoAfterCrash(standing, { tools: work.tools, journal, token, context: task.context, workId: task.id })
      : standing.undone;
  const notUndone = undo && isAgent(work) ? findNotUndone(standing, work.tools) : [];
  const { answer, stop, messages } = settle({ ...standing, undone }, { reason, notUndone }, now);
  const before = standing.isWhole ? [] : historyBefore(task, history);
  const said = past.length === 0 ? {} : saidIn([...before, ...messages], history);
  return { status: 'cancelled', reason, isComplete: false, answer, stopReport: stop, ...usedBefore(task), ...said };
}
