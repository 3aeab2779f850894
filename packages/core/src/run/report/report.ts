import type { StopLevel } from '../../stop/token/level.ts';
import { type CancelReason, describeReason } from '../../stop/token/reason.ts';
import type { UndoState } from '../../tool/call/nested.ts';
import type { CallState } from '../../tool/result.ts';

/** What one call did between the cancel and the end. */
export interface StoppedCall {
  /** Calls of a sub-agent are named by their path: `c1/c7`, `researcher › bash`. */
  readonly callId: string;
  readonly tool: string;
  /** `unknown` means abandoned: it was still running when the wait for it ended. */
  readonly state: CallState;
  /** Milliseconds after the cancel; negative if it had ended before. */
  readonly afterMs: number;
  /** The cancel had to wait for it, because it must not be interrupted. */
  readonly wasWaitedFor: boolean;
  readonly undo?: UndoState;
  /** It was unknown how it ended, and its tool found out. */
  readonly foundOut?: true;
  /** Why the undo failed. */
  readonly undoError?: string;
  /** Operating-system processes the call ended, if it had any. */
  readonly processesEnded?: number;
  /** Processes that may still be running. */
  readonly survivors?: number;
  /** This machine cannot prove that the call's processes have ended. */
  readonly unverified?: true;
}

/** What everything did between the cancel and the end. Frozen when the run settles. */
export interface StopReport {
  readonly reason: CancelReason;
  readonly settledAfterMs: number;
  readonly levels: readonly { readonly level: StopLevel; readonly afterMs: number }[];
  /** The reply that was cut off, if one was. */
  readonly reply?: { readonly characters: number; readonly afterMs: number };
  /** The planner that finished its turn after the cancel instead of stopping, if it did. */
  readonly planner?: { readonly afterMs: number };
  readonly calls: readonly StoppedCall[];
  /** If an undo was asked for: finished calls that changed something and have none. */
  readonly notUndone?: readonly { readonly callId: string; readonly tool: string }[];
  readonly cleanupErrors: readonly string[];
  /** Work other than calls that was still running at the end: the planner, a stream, a question, a cleanup. */
  readonly abandoned?: readonly { readonly name: string; readonly afterMs: number }[];
  /** Nothing was abandoned, every process is proved to have ended, and every cleanup succeeded. */
  readonly isClean: boolean;
}

/**
 * Formats a stop report for users: one sentence, then a line for each item.
 *
 * @returns The text, without a newline at its end.
 *
 * @example
 * ```ts
 * import { formatStopReport } from '@whoa/core';
 *
 * const outcome = await agent.run('Tell me a story').outcome;
 * if (outcome.status === 'cancelled') console.log(formatStopReport(outcome.stop));
 * ```
 */
export function formatStopReport(report: StopReport): string {
  const { abandoned: work = [] } = report;
  const abandoned = report.calls.filter((call) => call.state === 'unknown').length + work.length;
  const left = report.isClean
    ? 'nothing was left behind'
    : abandoned > 0
      ? `${abandoned} abandoned`
      : 'something may be left behind';
  const { by, via } = report.reason;
  const who = [by && `by ${by}`, via && `via ${via}`].filter(Boolean).join(', ');
  const title = `Stopped after ${formatMs(report.settledAfterMs)} (${describeReason(report.reason)}${who && `, ${who}`}); ${left}.`;
  const happened: { afterMs: number; what: string }[] = report.levels.map(({ level, afterMs }) => ({
    afterMs,
    what: LEVEL_WORDS[level],
  }));
  if (report.reply) {
    happened.push({ afterMs: report.reply.afterMs, what: `reply closed after ${report.reply.characters} characters` });
  }
  if (report.planner) happened.push({ afterMs: report.planner.afterMs, what: 'planner finished its turn' });
  for (const call of report.calls) {
    happened.push({ afterMs: call.afterMs, what: `${nameCall(call, report)} ${describeCall(call)}` });
  }
  for (const { name, afterMs } of work) happened.push({ afterMs, what: `${name} abandoned, it may still run` });
  happened.push({ afterMs: report.settledAfterMs, what: 'settled' });
  // A stable sort keeps simultaneous items in the order written above.
  const items = happened
    .toSorted((a, b) => a.afterMs - b.afterMs)
    .map(({ afterMs, what }) => [afterMs < 0 ? 'before the stop' : `+${formatMs(afterMs)}`, what]);
  for (const { tool, callId } of report.notUndone ?? [])
    items.push(['no undo', `${tool} (${callId}) finished and stays`]);
  for (const error of report.cleanupErrors) items.push(['cleanup', error]);
  const width = Math.max(LABEL_WIDTH, ...items.map(([label = '']) => label.length));
  return [title, ...items.map(([label = '', what]) => `  ${label.padStart(width)}  ${what}`)].join('\n');
}

const LABEL_WIDTH = 12;

/** Whole milliseconds, or tenths of a short time. */
function formatMs(ms: number): string {
  return `${Math.abs(ms) < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`;
}

/** Names a call by its tool, and by its id too where the tool was called more than once. */
function nameCall({ tool, callId }: StoppedCall, { calls }: StopReport): string {
  return calls.filter((call) => call.tool === tool).length > 1 ? `${tool} (${callId})` : tool;
}

const LEVEL_WORDS: Record<StopLevel, string> = {
  drain: 'drain: nothing new starts',
  abort: 'abort: what can be interrupted stops',
  kill: 'kill: nothing more is waited for',
};

const STATE_WORDS: Partial<Record<CallState, string>> = {
  'not-started': 'not started',
  unknown: 'abandoned, its outcome is unknown',
};

function describeCall(call: StoppedCall): string {
  const words = [
    `${STATE_WORDS[call.state] ?? call.state}${call.wasWaitedFor ? ' (waited for: it must not be cut)' : ''}`,
  ];
  if (call.foundOut) words.push('found out afterwards');
  if (call.processesEnded) words.push(`${count(call.processesEnded)} ended`);
  if (call.survivors) words.push(`${count(call.survivors)} may survive`);
  if (call.unverified) words.push('not verified');
  if (call.undo) words.push(call.undo === 'undone' ? 'undone' : `undo ${call.undo}`);
  if (call.undoError) words.push(call.undoError);
  return words.join(', ');
}

function count(processes: number): string {
  return processes === 1 ? '1 process' : `${processes} processes`;
}
