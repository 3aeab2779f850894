import type { AppContext, CancellationToken, Json, StopReport, Tool } from '@whoa/core';
import { shield, waitUntilLevel } from '@whoa/core/embed';
import { describeError, UNDO_MS, withoutUndo } from '@whoa/core/internal';
import type { TaskOutcome } from '../../task.ts';
import type { Journal } from '../journal/journal.ts';
import { wrapEvent } from '../journal/nested.ts';
import { type ClosedLater, type EndedCall, listEnded, listUndone, toReported } from './lost-calls.ts';
import { describeLost, type RecoveryState } from './resume.ts';

type Undone = RecoveryState['undone'];

interface UndoOptions {
  readonly tools: readonly Tool[];
  readonly journal: Journal;
  readonly token: CancellationToken;
  readonly context: AppContext | undefined;
  /** The task. */
  readonly workId: string;
  readonly closed?: ClosedLater;
}

/**
 * Undoes what a lost worker had completed and not undone, last call first. Each undo is written to the journal before
 * it starts, so it starts at most once. An undo that had started is skipped, unless its tool says that it can be
 * repeated.
 */
export async function undoAfterCrash(
  recovery: RecoveryState,
  { tools, journal, token, context, workId, closed }: UndoOptions,
): Promise<Undone> {
  const undone = listUndone(recovery);
  const shielded = shield(token, { timeoutMs: UNDO_MS, name: 'undo' });
  try {
    for (const call of listEnded(recovery, tools, closed).toReversed()) {
      if (!needsUndo(call, undone) || shielded.isCancelled) continue;
      const { id, path, tool, result: ended, input, effectKey } = call;
      const { callId } = ended;
      const about = { callId, tool: ended.tool };
      // Don't undo a call with a cut journal entry: undoing half of it could do harm.
      if (call.isCut) {
        undone.set(id, { state: 'unknown', error: 'its journal entry was too large to keep whole' });
        continue;
      }
      journal.add(wrapEvent(path, { type: 'undo-start', ...about }));
      await journal.flush();
      const result = { ...ended, input };
      const own = [workId, ...path.map((outer) => outer.callId)].join('/');
      const within = { callId, effectKey, workId: own, signal: shielded.signal, context };
      const undoing = (async () => tool!.undo!(result, within))();
      const end = await waitUntilLevel(undoing, shielded, 'kill');
      const state = end.by === 'value' ? 'undone' : end.by === 'error' ? 'failed' : 'unknown';
      const failure = end.by === 'error' && { error: describeError(end.error) };
      undone.set(id, { state, ...failure });
      journal.add(wrapEvent(path, { type: 'undo-end', ...about, state, ...failure }));
    }
    await journal.flush();
  } finally {
    shielded[Symbol.dispose]();
  }
  return undone;
}

/** Returns what a lost worker had finished and cannot be undone. */
export function findNotUndone(
  recovery: RecoveryState,
  tools: readonly Tool[],
  closed?: ClosedLater,
): NonNullable<StopReport['notUndone']> {
  return listEnded(recovery, tools, closed).flatMap((call) => {
    const used = call.tool && new Map([[call.tool.name, call.tool]]);
    if (used === undefined || withoutUndo({ calls: [call.result], tools: used }).length === 0) return [];
    const { callId, tool } = toReported(call);
    return [{ callId, tool }];
  });
}

/** The run that continued after a crash undoes only its own calls when it is cancelled. Undoes those before it, too. */
export async function undoEarlier(
  outcome: TaskOutcome,
  recovery: RecoveryState,
  { now, ...options }: UndoOptions & { readonly now: () => number },
): Promise<TaskOutcome> {
  const stop = outcome.stopReport as unknown as StopReport | undefined;
  // A report that was too large for the store has no calls.
  if (outcome.status !== 'cancelled' || stop?.calls === undefined || !options.token.undo) return outcome;
  const { reason } = stop;
  const undone = await undoAfterCrash(recovery, options);
  const earlier = describeLost(
    listEnded(recovery, options.tools, options.closed)
      .map(toReported)
      .filter(({ callId }) => undone.has(callId)),
    { undone, reason },
  );
  const notUndone = [...findNotUndone(recovery, options.tools, options.closed), ...(stop.notUndone ?? [])];
  const report: StopReport = {
    ...stop,
    settledAfterMs: Math.round(now() - reason.at),
    calls: [...earlier, ...stop.calls],
    ...(notUndone.length > 0 && { notUndone }),
    isClean: stop.isClean && earlier.every(({ undo }) => undo === 'undone'),
  };
  return { ...outcome, stopReport: report as unknown as Json };
}

function needsUndo({ id, result, tool }: EndedCall, undone: Undone): boolean {
  if (result.state !== 'finished' || tool === undefined || !('undo' in tool)) return false;
  const before = undone.get(id);
  return before === undefined || (before.state === 'unknown' && tool.undoRepeatable);
}
