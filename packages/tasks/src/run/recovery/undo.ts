import { type AppContext, type CallResult, type CancellationToken, shield, type Tool } from '@whoa/core';
import { waitUntilLevel } from '@whoa/core/embed';
import { UNDO_MS } from '@whoa/core/internal';
import type { Journal } from '../journal/journal.ts';
import type { Standing } from './resume.ts';

type Undone = Standing['undone'];

interface UndoOptions {
  readonly tools: readonly Tool[];
  readonly journal: Journal;
  readonly token: CancellationToken;
  readonly context: AppContext | undefined;
}

/**
 * Undoes what a lost worker had completed and not undone, last call first. Each undo is written to the journal before
 * it starts, so it starts at most once. An undo that had started is skipped, unless its tool says that it can be
 * repeated.
 */
export async function undoLost(standing: Standing, { tools, journal, token, context }: UndoOptions): Promise<Undone> {
  const undone = new Map(standing.undone);
  const shielded = shield(token, { boundMs: UNDO_MS, name: 'undo' });
  try {
    for (const call of standing.results.toReversed()) {
      const tool = tools.find(({ name }) => name === call.tool);
      if (!needsUndo(call, tool, undone) || shielded.isCancelled) continue;
      const about = { callId: call.callId, tool: call.tool };
      // Don't undo a call with a cut journal entry: undoing half of it could do harm.
      if (standing.cut.has(call.callId)) {
        undone.set(call.callId, 'unknown');
        continue;
      }
      journal.add({ type: 'undo-start', ...about });
      await journal.flush();
      const result = { ...call, input: standing.inputs.get(call.callId) };
      const within = { callId: call.callId, signal: shielded.signal, context };
      const undoing = (async () => tool!.undo!(result, within))();
      const end = await waitUntilLevel(undoing, shielded, 'kill');
      const state = end.by === 'value' ? 'undone' : end.by === 'error' ? 'failed' : 'unknown';
      undone.set(call.callId, state);
      journal.add({ type: 'undo-end', ...about, state });
    }
    await journal.flush();
  } finally {
    shielded[Symbol.dispose]();
  }
  return undone;
}

function needsUndo(call: CallResult, tool: Tool | undefined, undone: Undone): boolean {
  if (call.state !== 'finished' || tool === undefined || !('undo' in tool)) return false;
  const before = undone.get(call.callId);
  return before === undefined || (before === 'unknown' && tool.undoRepeatable);
}
