import { shield } from '../stop/shield.ts';
import type { CancellationToken } from '../stop/token.ts';
import { waitUnder } from '../stop/wait.ts';
import type { CallResult } from '../tool/result.ts';
import type { Tool } from '../tool/tool.ts';
import type { UnstampedEvent } from './events.ts';
import type { UndoState } from './report.ts';

/** All undos of a run share this time. */
export const UNDO_MS = 30_000;

/** Waited for before every undo begins, so that a journal can write it down first. An undo whose `beforeUndo` rejects is not begun. */
export type BeforeUndo = (call: { readonly callId: string; readonly tool: string }) => unknown;

export interface UndoOptions {
  readonly calls: readonly CallResult[];
  readonly inputs: ReadonlyMap<string, unknown>;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly token: CancellationToken;
  readonly boundMs: number;
  readonly beforeUndo: BeforeUndo | undefined;
  readonly tell: (event: UnstampedEvent) => void;
}

/** What became of the undo of one call. */
export interface UndoneCall {
  readonly callId: string;
  readonly tool: string;
  readonly state: UndoState;
}

/** Takes completed calls back in reverse order, shielded and bounded. Each undo is announced before it starts. */
export async function undoCalls(options: UndoOptions): Promise<UndoneCall[]> {
  const undoable = options.calls.filter(
    ({ tool, state }) => state === 'finished' && isUndoable(options.tools.get(tool)),
  );
  const undone: UndoneCall[] = [];
  if (undoable.length === 0) return undone;
  const token = shield(options.token, { boundMs: options.boundMs, name: 'undo' });
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
    token[Symbol.dispose]();
  }
}

async function undoOne(call: CallResult, options: UndoOptions, token: CancellationToken): Promise<UndoState> {
  if (token.isCancelled) return 'failed';
  const tool = options.tools.get(call.tool)!;
  const input = options.inputs.get(call.callId);
  const undoing = (async () => {
    await options.beforeUndo?.({ callId: call.callId, tool: call.tool });
    await tool.undo!({ ...call, input }, { callId: call.callId, signal: token.signal });
  })();
  const end = await waitUnder(undoing, token, 'kill');
  return end.by === 'value' ? 'undone' : end.by === 'error' ? 'failed' : 'unknown';
}

function isUndoable(tool: Tool | undefined): boolean {
  return tool !== undefined && 'undo' in tool;
}
