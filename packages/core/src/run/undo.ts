import type { AppContext } from '../stop/app-context.ts';
import { shield } from '../stop/token/shield.ts';
import type { CancellationToken } from '../stop/token/token.ts';
import { waitUntilLevel } from '../stop/wait.ts';
import type { ExclusiveKeys } from '../tool/call/exclusive.ts';
import type { UndoState, UndoStep, UndoWithin } from '../tool/call/nested.ts';
import { findUndoData } from '../tool/call/undo-data.ts';
import { describeError } from '../tool/normalize.ts';
import type { CallResult } from '../tool/result.ts';
import type { Tool } from '../tool/tool.ts';
import type { UnstampedEvent } from './report/events.ts';

/** The time limit that all undos of a run share. */
export const UNDO_MS = 30_000;

/** Awaited before every undo, so that a journal can record it first. If it rejects, the undo does not start. */
export type BeforeUndo = (call: { readonly callId: string; readonly tool: string }) => unknown;

export interface UndoOptions {
  readonly calls: readonly CallResult[];
  readonly tools: ReadonlyMap<string, Tool>;
  /** The run's token. Undos are shielded from it. */
  readonly token: CancellationToken;
  readonly keys: ExclusiveKeys;
  readonly context: AppContext | undefined;
  readonly workId: string;
  readonly timeoutMs: number;
  readonly beforeUndo: BeforeUndo | undefined;
  readonly emit: (event: UnstampedEvent, within: UndoWithin) => void;
  readonly leaveRunning: (name: string, ended: PromiseLike<unknown>) => void;
}

/** The result of the undo of one call. */
export interface UndoneCall {
  readonly callId: string;
  readonly tool: string;
  readonly state: UndoState;
  /** Why it failed. */
  readonly error?: string;
}

/**
 * Finds what an undo cannot undo.
 *
 * @returns The finished calls that changed something and whose tools have no undo, including those inside sub-agents.
 */
export function withoutUndo({
  calls,
  tools,
}: Pick<UndoOptions, 'calls' | 'tools'>): { callId: string; tool: string }[] {
  return calls.flatMap((call) => {
    const { callId, tool, state } = call;
    const inside = findUndoData(call)?.nested?.withoutUndo?.();
    if (inside !== undefined)
      return inside.map((one) => ({ callId: `${callId}/${one.callId}`, tool: `${tool} › ${one.tool}` }));
    const used = tools.get(tool);
    const isLeft = state === 'finished' && used !== undefined && used.effects !== 'read' && used.undo === undefined;
    return isLeft ? [{ callId, tool }] : [];
  });
}

/** Undoes completed calls, also inside sub-agents: the one that ended last first. Shielded, with a time limit. */
export async function undoCalls(options: UndoOptions): Promise<UndoneCall[]> {
  const undone: UndoneCall[] = [];
  const steps = undoSteps(options, undone);
  if (steps.length === 0) return undone;
  const token = shield(options.token, { timeoutMs: options.timeoutMs, name: 'undo' });
  const within = { token, beforeUndo: options.beforeUndo, emit: () => {} };
  try {
    for (const step of steps.toSorted((a, b) => b.order - a.order)) await step.undo(within);
    return undone;
  } finally {
    token[Symbol.dispose]();
  }
}

/** Returns an undo for each completed call, and for each that a run inside a call completed, however that ended. */
export function undoSteps(options: UndoOptions, undone: UndoneCall[] = []): UndoStep[] {
  return options.calls.flatMap((call) => stepsFor(call, options, undone));
}

/** The undo of one call: one step, or those of the run inside it, with undos of other calls in between. */
function stepsFor(call: CallResult, options: UndoOptions, undone: UndoneCall[]): UndoStep[] {
  const kept = findUndoData(call);
  if (kept === undefined) return [];
  const about = { callId: call.callId, tool: call.tool };
  const whole: UndoStep = { order: kept.order, undo: (within) => undoNow(call, options, within) };
  const steps = kept.nested?.undoSteps() ?? (call.state === 'finished' ? [whole] : []);
  let left = steps.length;
  let worst: Pick<UndoneCall, 'state' | 'error'> = { state: 'undone' };
  const undo = async (step: UndoStep, within: UndoWithin): Promise<UndoState> => {
    if (left === steps.length) options.emit({ type: 'undo-start', ...about }, within);
    const end = await undoWithKeys(call, options, { step, within });
    if (worst.state === 'undone') worst = end;
    if (--left === 0) {
      options.emit({ type: 'undo-end', ...about, ...worst }, within);
      undone.push({ ...about, ...worst });
    }
    return end.state;
  };
  return steps.map((step) => ({ order: step.order || kept.order, undo: (within) => undo(step, within) }));
}

async function undoWithKeys(
  call: CallResult,
  options: UndoOptions,
  { step, within }: { step: UndoStep; within: UndoWithin },
): Promise<Pick<UndoneCall, 'state' | 'error'>> {
  const { callId, tool } = call;
  const { token } = within;
  if (token.isCancelled) return { state: 'failed' };
  const held = await options.keys.acquire(findUndoData(call)!.keys, { holder: `undo of ${callId}`, token });
  // The keys were not free in time: the undo has not started.
  if (typeof held !== 'function') return { state: 'failed' };
  const emit = (event: { readonly type: string }): void =>
    options.emit({ type: 'call-event', callId, tool, event }, within);
  const undoing = step.undo({ ...within, emit }).finally(held);
  const end = await waitUntilLevel(undoing, token, 'kill');
  if (end.by === 'level') options.leaveRunning(`undo of ${tool} (${callId})`, undoing);
  if (end.by === 'value') return { state: end.value };
  return end.by === 'error' ? { state: 'failed', error: describeError(end.error) } : { state: 'unknown' };
}

/** The undo of a whole run, as one step: a custom run, or one that has been undone before. */
export async function undoWhole(run: { undo(): Promise<readonly UndoneCall[]> }): Promise<UndoState> {
  return (await run.undo()).every(({ state }) => state === 'undone') ? 'undone' : 'failed';
}

async function undoNow(
  call: CallResult,
  { tools, context, workId }: UndoOptions,
  within: UndoWithin,
): Promise<UndoState> {
  const { callId, tool } = call;
  const { input, details, effectKey } = findUndoData(call)!;
  await within.beforeUndo?.({ callId, tool });
  const result = { ...call, input, ...(details !== undefined && { details }) };
  await tools.get(tool)!.undo!(result, { callId, effectKey, workId, signal: within.token.signal, context });
  return 'undone';
}
