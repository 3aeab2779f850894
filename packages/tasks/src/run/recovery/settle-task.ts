import type { CancellationToken, Json } from '@whoa/core';
import type { JournalEntry, TaskOutcome, TaskRecord } from '../../task.ts';
import type { AdoptedRun } from '../adopted-run.ts';
import { historyBefore } from '../agent-work.ts';
import type { Journal } from '../journal/journal.ts';
import { toNewMessages, usedBefore } from '../outcome.ts';
import { isAgent, type TaskHandler } from '../work.ts';
import { readRecoveryState, settle } from './resume.ts';
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
  const recovery = readRecoveryState(past);
  const undone =
    undo && isAgent(work)
      ? await undoAfterCrash(recovery, { tools: work.tools, journal, token, context: task.context, workId: task.id })
      : recovery.undone;
  const notUndone = undo && isAgent(work) ? findNotUndone(recovery, work.tools) : [];
  const wasLost = task.crashes > 0;
  // A client may have run a call as soon as it has seen it.
  const isInClient = (name: string): boolean =>
    isAgent(work) && work.tools.some((tool) => tool.name === name && tool.answeredBy === 'client');
  const open = recovery.open.map((call) => ({ ...call, started: call.started || isInClient(call.tool) }));
  const { answer, stop, messages } = settle({ ...recovery, open, undone }, { reason, notUndone, wasLost }, now);
  const before = recovery.isWhole ? [] : historyBefore(task, history);
  const added = past.length === 0 ? {} : toNewMessages([...before, ...messages], history);
  return { status: 'cancelled', reason, isComplete: false, answer, stopReport: stop, ...usedBefore(task), ...added };
}
