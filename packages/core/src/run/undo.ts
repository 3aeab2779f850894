import { shield } from '../stop/token/shield.ts';
import type { CancellationToken } from '../stop/token/token.ts';
import { waitUntilLevel } from '../stop/wait.ts';
import type { ExclusiveKeys } from '../tool/call/exclusive.ts';
import { keptCallOf } from '../tool/call/kept.ts';
import { NESTED, type UndoWithin } from '../tool/call/nested.ts';
import type { CallResult } from '../tool/result.ts';
import type { Tool } from '../tool/tool.ts';
import type { UnstampedEvent } from './report/events.ts';
import type { UndoState } from './report/report.ts';

/** The time limit that all undos of a run share. */
export const UNDO_MS = 30_000;

/**
 * Awaited before every undo starts, so that a journal can record it first. If `beforeUndo` rejects, the undo does not
 * start.
 */
export type BeforeUndo = (call: { readonly callId: string; readonly tool: string }) => unknown;

export interface UndoOptions {
  readonly calls: readonly CallResult[];
  readonly tools: ReadonlyMap<string, Tool>;
  /** The run's token. Undos are shielded from it. */
  readonly token: CancellationToken;
  readonly keys: ExclusiveKeys;
  readonly boundMs: number;
  readonly beforeUndo: BeforeUndo | undefined;
  readonly tell: (event: UnstampedEvent) => void;
  readonly leaveRunning: (name: string, ended: PromiseLike<unknown>) => void;
  /** For a run inside another: it shares the outer run's time limit. */
  readonly within?: UndoWithin | undefined;
}

/** The result of the undo of one call. */
export interface UndoneCall {
  readonly callId: string;
  readonly tool: string;
  readonly state: UndoState;
}

/** Undoes completed calls in reverse order, shielded and with a time limit. Each undo is announced before it starts. */
export async function undoCalls(options: UndoOptions): Promise<UndoneCall[]> {
  const { boundMs, within } = options;
  const undoable = undoableIn(options.calls, options.tools);
  const undone: UndoneCall[] = [];
  if (undoable.length === 0) return undone;
  const token = within?.token ?? shield(options.token, { boundMs, name: 'undo' });
  try {
    for (const call of undoable.toReversed()) {
      const about = { callId: call.callId, tool: call.tool };
      options.tell({ type: 'undo-start', ...about });
      const state = await undoOne(call, options, token);
      options.tell({ type: 'undo-end', ...about, state });
      undone.push({ ...about, state });
    }
    return undone;
  } finally {
    if (within === undefined) token[Symbol.dispose]();
  }
}

/**
 * Returns the calls that can be undone: completed ones, and whatever a run inside a call completed, however it ended.
 */
export function undoableIn(calls: readonly CallResult[], tools: ReadonlyMap<string, Tool>): CallResult[] {
  return calls.filter((call) => {
    const kept = keptCallOf(call);
    if (kept === undefined || tools.get(call.tool)?.undo === undefined) return false;
    return kept.nested === undefined ? call.state === 'finished' : kept.nested.canUndo;
  });
}

async function undoOne(call: CallResult, options: UndoOptions, token: CancellationToken): Promise<UndoState> {
  if (token.isCancelled) return 'failed';
  const { keys } = keptCallOf(call)!;
  const held = await options.keys.acquire(keys, { holder: `undo of ${call.callId}`, token });
  // The keys were not free in time: the undo has not started.
  if (typeof held !== 'function') return 'failed';
  const undoing = undoNow(call, options, token).finally(held);
  const end = await waitUntilLevel(undoing, token, 'kill');
  if (end.by === 'level') options.leaveRunning(`undo of ${call.tool} (${call.callId})`, undoing);
  return end.by === 'value' ? 'undone' : end.by === 'error' ? 'failed' : 'unknown';
}

async function undoNow(call: CallResult, options: UndoOptions, token: CancellationToken): Promise<void> {
  const { callId, tool } = call;
  const { beforeUndo } = options;
  await beforeUndo?.({ callId, tool });
  const { input, details, nested } = keptCallOf(call)!;
  const tell = (event: { readonly type: string }): void => options.tell({ type: 'call-nested', callId, tool, event });
  await options.tools.get(tool)!.undo!(
    { ...call, input, ...(details !== undefined && { details }) },
    {
      callId,
      signal: token.signal,
      ...(nested && { [NESTED]: { undo: () => nested.undo({ token, beforeUndo, tell }) } }),
    },
  );
}
