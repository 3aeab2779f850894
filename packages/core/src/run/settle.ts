import { findLateEnd } from '../stop/bounded/bounded.ts';
import { recordAbandoned } from '../stop/bounded/late-results.ts';
import { createReason } from '../stop/token/reason.ts';
import { notStarted, refused } from '../tool/call/ending.ts';
import type { CallResult } from '../tool/result.ts';
import type { RunParts } from './parts.ts';
import type { Leftover } from './report/leftovers.ts';
import type { Outcome } from './report/outcome.ts';
import { withoutUndo } from './undo.ts';

/** How the loop of a run ended. */
export interface LoopEnd {
  failed?: unknown;
  isComplete: boolean;
}

/** Gives a result to every call that the last reply asked for and that never started. */
export function closeCalls({ token, transcript, gate, runtime }: RunParts, error: unknown): void {
  transcript.close((call): CallResult => {
    const ended = { ...call, input: undefined };
    const result = token.isCancelled
      ? notStarted(ended, token, runtime.tools.get(call.tool))
      : refused(ended, token, error ?? new Error('its planner did not run it'));
    gate.emit({ type: 'call-end', result });
    return result;
  });
}

/** Decides how the run ended, and ends it, in one step: a cancel comes either before this or too late. */
export function settle(parts: RunParts, turns: number, end: LoopEnd): Outcome {
  const { gate, token, transcript } = parts;
  const endedAt = gate.now();
  for (const left of parts.leftovers.running) abandon(parts, left, endedAt);
  const base = {
    runId: parts.id,
    agent: parts.setup.agent.name,
    text: transcript.text,
    messages: Object.freeze([...transcript.messages]),
    calls: Object.freeze([...transcript.calls]),
    usage: Object.freeze({ ...transcript.usage }),
    ...(parts.account && { spending: parts.account.close() }),
    turns,
    undelivered: Object.freeze(parts.steering.close()),
    startedAt: parts.startedAt,
    endedAt,
  };
  const { reason } = token;
  const report = () => gate.reporter.finish(endedAt, token.undo ? withoutUndo(parts.undoing) : []);
  const stopped = reason && { reason, stop: report(), isComplete: end.isComplete };
  const status = stopped ? 'cancelled' : 'failed' in end ? 'failed' : 'success';
  const failure = 'failed' in end && { error: end.failed };
  const outcome = Object.freeze({ ...base, status, ...stopped, ...failure }) as Outcome;
  token[Symbol.dispose]();
  gate.emit({ type: 'run-end', outcome });
  return outcome;
}

/** Work that still runs when the run settles is reported by name. Its late end changes only the late results. */
function abandon({ id, setup, gate, token }: RunParts, { name, ended }: Leftover, abandonedAt: number): void {
  const { lateResults, world } = setup.agent;
  const late = findLateEnd(ended, gate);
  const reason = token.reason ?? createReason({ kind: 'parent', message: 'its run ended' }, abandonedAt);
  recordAbandoned(lateResults, { key: `${id}/${name}/${world.createId()}`, name, reason, abandonedAt }, { late });
  gate.emit({ type: 'work-abandoned', name });
}
