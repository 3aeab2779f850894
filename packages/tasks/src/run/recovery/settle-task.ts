import type { CallResult, CancellationToken, Json, Message, StopReport, Tool } from '@whoa/core';
import type { AssistantMessage } from '@whoa/core/internal';
import type { JournalEntry, TaskOutcome, TaskRecord } from '../../task.ts';
import type { AdoptedRun } from '../adopted-run.ts';
import { historyBefore } from '../agent-work.ts';
import type { Journal } from '../journal/journal.ts';
import { type CallPath, toPathId } from '../journal/nested.ts';
import { toNewMessages, usedBefore } from '../outcome.ts';
import { isAgent, type TaskHandler } from '../work.ts';
import { listEnded, listUndone, toReported, visit } from './lost-calls.ts';
import {
  createLostResult,
  describeLost,
  joinWords,
  type OpenCall,
  type RecoveryState,
  readRecoveryState,
} from './resume.ts';
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
  const tools = isAgent(work) ? work.tools : [];
  const given = { tools, journal, token, context: task.context, workId: task.id };
  const undone = undo && isAgent(work) ? await undoAfterCrash(recovery, given) : listUndone(recovery);
  const closed = recovery.open.map((call) =>
    closeLost(call, recovery, { tools, now, isRecorded: recovery.isNestedRecorded }),
  );
  const words: AssistantMessage[] =
    recovery.partial === ''
      ? []
      : [{ role: 'assistant', content: [{ type: 'text', text: recovery.partial }], stopReason: 'aborted' }];
  const messages = [...recovery.messages, ...closed.map((result): Message => ({ role: 'tool', ...result })), ...words];
  const ended = listEnded(recovery, tools).map(toReported);
  const stop = toReport({
    reason,
    ended,
    calls: describeLost(
      [...ended.filter(({ callId }) => undone.has(callId)), ...closed, ...closeInner(recovery, tools, now)],
      { undone, reason },
    ),
    notUndone: undo ? findNotUndone(recovery, tools) : [],
    wasLost: task.crashes > 0,
    now,
  });
  const before = recovery.isWhole ? [] : historyBefore(task, history);
  const added = past.length === 0 ? {} : toNewMessages([...before, ...messages], history);
  const stopReport = stop as unknown as Json;
  const answer = joinWords(messages);
  return { status: 'cancelled', reason, isComplete: false, answer, stopReport, ...usedBefore(task), ...added };
}

interface Closing {
  readonly tools: readonly Tool[];
  readonly now: number;
  /** Calls of runs inside calls were recorded before they started. */
  readonly isRecorded: boolean;
}

/** The result of an open call. A sub-agent's call of which everything ended or waits was interrupted. */
function closeLost(call: OpenCall, { nested }: RecoveryState, closing: Closing): CallResult {
  const { tools, now, isRecorded } = closing;
  // A client may have run a call as soon as it has seen it.
  const isInClient = tools.some((tool) => tool.name === call.tool && tool.answeredBy === 'client');
  const inner = nested.get(call.id);
  const isKnown = isRecorded && call.started && inner !== undefined && !inner.isCut;
  if (!isKnown || hasUnknown(inner))
    return createLostResult(call, call.started || isInClient ? 'unknown' : 'not-started', now);
  const done = inner.results.filter(({ state }) => state === 'finished').map(({ tool }) => tool);
  const finished = done.length === 0 ? '' : `Finished calls: ${done.length} (${[...new Set(done)].join(', ')}).`;
  const said = [joinWords(inner.messages), inner.partial].filter(Boolean).join('\n\n');
  const content = ['Interrupted before it finished.', said, finished].filter(Boolean).join('\n\n');
  return { callId: call.id, tool: call.tool, state: 'interrupted', content, isError: true, endedAt: now };
}

/** Whether a call of a run, or of runs inside it, may have had an effect that the journal does not have. */
function hasUnknown({ open, nested }: RecoveryState): boolean {
  return open.some(({ id, started }) => {
    const inner = nested.get(id);
    return started && (inner === undefined || inner.isCut || hasUnknown(inner));
  });
}

/** The open calls of runs inside calls, for the report. */
function closeInner(recovery: RecoveryState, tools: readonly Tool[], now: number): readonly CallResult[] {
  const closed: CallResult[] = [];
  const isRecorded = recovery.isNestedRecorded;
  visit(recovery, { tools, path: [] }, (state, at: { readonly tools: readonly Tool[]; readonly path: CallPath }) => {
    if (at.path.length === 0) return;
    for (const call of state.open) {
      const result = closeLost(call, state, { tools: at.tools, now, isRecorded });
      closed.push(toReported({ id: toPathId(at.path, call.id), path: at.path, result }));
    }
  });
  return closed;
}

interface Reported extends Pick<StopReport, 'reason' | 'calls'> {
  readonly ended: readonly CallResult[];
  readonly notUndone: NonNullable<StopReport['notUndone']>;
  /** A worker of the task was lost. Otherwise it was handed back, or parked. */
  readonly wasLost: boolean;
  readonly now: number;
}

function toReport({ reason, ended, calls, notUndone, wasLost, now }: Reported): StopReport {
  const cleanupErrors = wasLost ? ['its worker was lost; what it left behind was not looked for'] : [];
  const isKnown = [...ended, ...calls].every(({ state }) => state !== 'unknown');
  const isClean = !wasLost && isKnown && calls.every(({ undo = 'undone' }) => undo === 'undone');
  const left = notUndone.length > 0 && { notUndone };
  return { reason, settledAfterMs: Math.round(now - reason.at), levels: [], calls, ...left, cleanupErrors, isClean };
}
