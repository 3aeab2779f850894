import type { CallResult, CancelReason, Outcome, RunEvent } from '@whoa/core';
import { type AnyMessage, type Found, findUnmatched } from './found.ts';
import type { Execution } from './run-tools.ts';

/** The limits of the agents. */
export const CLEANUP_MS = 500;
export const UNDO_MS = 1_000;

/** What really happened in a run. */
export interface RunFacts {
  readonly executions: readonly Execution[];
  readonly undone: readonly Execution[];
  readonly events: RunEvent[];
  readonly requests: number[];
  readonly denied: Set<string>;
  readonly allowed: Set<string>;
  hasApprover: boolean;
  /** The first stop that was returned. One by a parent or a signal gives no reason. */
  stop: { readonly killAt: number; readonly reason?: CancelReason } | undefined;
  /** Whether a stop asked for undo. */
  undo: boolean;
  outcome?: Outcome;
}

/** Events that may follow the end. */
const LATE: ReadonlySet<string> = new Set([
  'call-ended-late',
  'undo-start',
  'undo-end',
  'call-event',
  'cancel-requested',
  'cleanup-error',
]);

/** Compares what a run says with what happened. */
export function checkRun(facts: RunFacts, found: Found): void {
  checkEvents(facts, found);
  checkCalls(facts, found);
  checkEnd(facts, found);
  const { outcome, undone } = facts;
  const unmatched = findUnmatched(outcome!.messages as readonly AnyMessage[]);
  found.expect(unmatched === undefined, `the outcome has ${unmatched}`);
  const orders = undone.filter(({ depth }) => depth === 0).map(({ order }) => order);
  found.expect(
    orders.every((order, index) => index === 0 || order <= orders[index - 1]!),
    `undone in the order ${orders.join()}`,
  );
  found.expect(isFrozen(outcome), 'the outcome is not frozen');
}

function isFrozen(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || value instanceof Error) return true;
  return Object.isFrozen(value) && Object.values(value).every(isFrozen);
}

function checkEvents({ events }: RunFacts, found: Found): void {
  const starts = new Set<string>();
  const ends = new Set<string>();
  let isOver = false;
  for (const event of events) {
    found.expect(!isOver || LATE.has(event.type), `${event.type} after the end`);
    if (event.type === 'run-end') isOver = true;
    if (event.type === 'call-start') {
      found.expect(!starts.has(event.callId), 'a call started twice');
      starts.add(event.callId);
    }
    if (event.type !== 'call-end') continue;
    found.expect(!ends.has(event.result.callId), 'a call ended twice');
    ends.add(event.result.callId);
  }
  for (const callId of starts) found.expect(ends.has(callId), 'a call started and did not end');
}

function checkCalls({ executions, outcome, denied, allowed, hasApprover }: RunFacts, found: Found): void {
  for (const result of outcome!.calls) {
    const execution = executions.find(({ callId, tool }) => callId === result.callId && tool === result.tool);
    if (execution !== undefined) checkCall(result, execution, found);
    else if (!result.tool.startsWith('agent_'))
      found.expect(['not-started'].includes(result.state), `a call that did not run is ${result.state}`);
  }
  for (const { callId, depth } of executions)
    if (hasApprover && depth === 0)
      found.expect(!denied.has(callId) || allowed.has(callId), 'a call ran without a yes');
}

function checkCall(result: CallResult, { state, endedAt, kind }: Execution, found: Found): void {
  const wasOver = state !== 'running' && endedAt < result.endedAt;
  const problem = `a ${kind} call that ${state} is ${result.state}`;
  if (result.state === 'not-started') found.expect(false, problem);
  if (result.state === 'finished') found.expect(state === 'resolved', problem);
  if (result.state === 'failed') found.expect(state === 'rejected', problem);
  if (result.state === 'interrupted') found.expect(state === 'rejected', problem);
  if (result.state === 'unknown') found.expect(!wasOver, problem);
  if (kind === 'partial' && result.state === 'interrupted')
    found.expect(JSON.stringify(result.content).includes('half'), 'a partial result is missing');
}

function checkEnd({ stop, outcome, executions, undo }: RunFacts, found: Found): void {
  const { status, endedAt } = outcome!;
  if (status !== 'cancelled') {
    found.expect(stop?.reason === undefined, `a run that was stopped ended as ${status}`);
    return;
  }
  const { reason, stop: report } = outcome as Extract<Outcome, { status: 'cancelled' }>;
  if (stop?.reason !== undefined)
    found.expect(JSON.stringify(reason) === JSON.stringify(stop.reason), 'the outcome has another reason');
  found.expect(JSON.stringify(report.reason) === JSON.stringify(reason), 'the report has another reason');
  const isClean = report.isClean;
  const running = executions.filter(({ state }) => state === 'running');
  found.expect(!isClean || running.length === 0, `the report is clean, and a ${running[0]?.kind} call runs`);
  if (stop === undefined) return;
  const limits = executions.map(({ beganAt, limitMs = 0, kind }) =>
    kind.startsWith('must-finish') ? beganAt + limitMs : 0,
  );
  const cleansUp = executions.some(({ kind }) => kind === 'cleans-up');
  const bound = Math.max(stop.killAt, ...limits) + (cleansUp ? 3 * CLEANUP_MS : 0) + (undo ? 3 * UNDO_MS : 0);
  // A parent or a signal may have come later than a cancel that was to take longer.
  found.expect(endedAt <= bound, `it settled ${endedAt - bound} ms after its bound`);
}
