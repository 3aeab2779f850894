import type { CallResult, Tool } from '@whoa/core';
import { type CallPath, toPathId } from '../journal/nested.ts';
import { findAgent } from './find-agent.ts';
import type { OpenCall, RecoveryState, UndoEnd } from './resume.ts';

/** A call that ended, of a task's run or of a run inside its calls. */
export interface EndedCall {
  /** With the calls that it is inside of. */
  readonly id: string;
  readonly path: CallPath;
  readonly result: CallResult;
  readonly input: unknown;
  readonly effectKey: string | undefined;
  readonly tool: Tool | undefined;
  /** The journal has it only in part. */
  readonly isCut: boolean;
}

/** Ends of calls that were decided after a journal was read, by the id of the call that their run is in. */
export type ClosedLater = ReadonlyMap<string, readonly CallResult[]>;

/** Lists what has ended, in the order of the ends. Of a call with a run inside it, what that run has done. */
export function listEnded(
  recovery: RecoveryState,
  tools: readonly Tool[],
  closed: ClosedLater = new Map(),
): readonly EndedCall[] {
  const found: (EndedCall & { readonly at: number })[] = [];
  visit(recovery, { tools, path: [] }, (state, { tools: own, path }) => {
    for (const result of [...state.results, ...(closed.get(toPathId(path, '')) ?? [])]) {
      const { callId } = result;
      if (state.nested.has(callId) && result.state !== 'unknown') continue;
      const tool = own.find(({ name }) => name === result.tool);
      const at = state.order.get(callId) ?? Infinity;
      const [input, isCut, effectKey] = [state.inputs.get(callId), state.cut.has(callId), state.effectKeys.get(callId)];
      found.push({ id: toPathId(path, callId), path, result, input, tool, isCut, at, effectKey });
    }
  });
  return found.toSorted((a, b) => a.at - b.at);
}

/** Lists the undos that the journal has. */
export function listUndone(recovery: RecoveryState): Map<string, UndoEnd> {
  const undone = new Map<string, UndoEnd>();
  visit(recovery, { tools: [], path: [] }, (state, { path }) => {
    for (const [callId, end] of state.undone) undone.set(toPathId(path, callId), end);
  });
  return undone;
}

/** Returns a result as a stop report has it: a call inside another has the ids and tools of both. */
export function toReported({ id, path, result }: Pick<EndedCall, 'id' | 'path' | 'result'>): CallResult {
  return { ...result, callId: id, tool: [...path.map(({ tool }) => tool), result.tool].join(' › ') };
}

interface Position {
  readonly tools: readonly Tool[];
  readonly path: CallPath;
}

/** Calls back for a run and each run inside its calls. */
export function visit(state: RecoveryState, at: Position, see: (state: RecoveryState, at: Position) => void): void {
  see(state, at);
  const names = new Map<string, string>([...state.results, ...state.open].map((call) => [idOf(call), call.tool]));
  for (const [callId, inner] of state.nested) {
    const tool = names.get(callId) ?? '';
    const tools = findAgent(tool, at.tools)?.tools ?? [];
    visit(inner, { tools, path: [...at.path, { callId, tool }] }, see);
  }
}

function idOf(call: CallResult | OpenCall): string {
  return 'callId' in call ? call.callId : call.id;
}
