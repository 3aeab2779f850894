import { type CancelReason, isCancelledError, type ToolResult } from '@whoa/core';
import { describeError, describeStoppedCall, isCausedByCancel } from '@whoa/core/internal';
import type { Match } from '../matching-records.ts';
import type { CallRecord, CallRecords } from '../turn/call-records.ts';
import { type AiSdkPart, type CallSite, toTrace } from '../turn/call-sites.ts';
import { asJson, asText } from './as-json.ts';
import { wellFormed } from './wire-safe.ts';

export type Output =
  | { readonly type: 'text' | 'error-text'; readonly value: string }
  | { readonly type: 'json'; readonly value: unknown };

interface Known {
  readonly match: Match;
  readonly calls: CallRecords | undefined;
  /** Whether calls were recorded when this one was requested. */
  readonly isWatched: boolean;
}

/** Creates the output that a model gets for a call whose loop has no result for it. */
export function outputFor(site: CallSite, { match, calls, isWatched }: Known): Output {
  if (typeof match === 'object') return wellFormed(toOutput(match.record));
  if (match === 'ambiguous')
    return failed('Outcome unknown: several calls had the same id, so its result cannot be identified.');
  const { request, answer } = site.approval ?? {};
  if (request !== undefined && answer?.approved !== true) return failed(notApproved(answer));
  const { toolCallId, tool } = site;
  // A guarded tool's call is recorded before it starts, so a call without a record never started.
  const state = isWatched && calls?.hasTool(tool) ? 'not-started' : 'unknown';
  // Record it, so that it stays so when more calls and tools are recorded.
  const record = calls?.begin({ toolCallId, tool, trace: toTrace(site) });
  if (record !== undefined) calls?.update(record.callId, { state });
  return failed(UNSEEN[state]);
}

function notApproved(answer: AiSdkPart | undefined): string {
  const why = typeof answer?.reason === 'string' && answer.reason !== '' ? ` (${answer.reason})` : '';
  return `Not started: ${answer === undefined ? 'it was not approved' : `it was denied${why}`}. It had no effect.`;
}

const RUNNING = 'Outcome unknown: it is still running. It may yet take effect.';
/** For calls of which nothing else is known. */
const UNSEEN = {
  'not-started': 'Not started: the run was stopped first. It had no effect.',
  interrupted: 'Interrupted before it finished. It may have taken effect in part.',
  unknown: 'Outcome unknown: the run was stopped while this call was open. It may have taken effect.',
};

const STOPPED: ReadonlySet<CallRecord['state']> = new Set(['interrupted', 'not-started', 'unknown']);

/**
 * Whether a result does not say how its call ended: a loop turns the end of a stopped call into a generic error, the AI
 * SDK's UI stream hides its text, and what was running may have ended since.
 */
export function isMasked({ output }: AiSdkPart, match: Match): boolean {
  if (typeof match !== 'object') return false;
  return output?.value === RUNNING || (STOPPED.has(match.record.state) && output?.type.startsWith('error') === true);
}

/** Creates the output that a model gets for a recorded call. */
export function toOutput({ state, output, error, reason, late }: CallRecord): Output {
  switch (state) {
    case 'finished':
      return succeeded(output);
    case 'failed':
      return failed(describeError(error));
    case 'interrupted':
    case 'not-started':
      return failed(reason === undefined ? UNSEEN[state] : describeStopped(state, reason, error));
    case 'running':
      return failed(RUNNING);
    case 'unknown':
      if (late?.state === 'finished')
        return failed(`It was cancelled, but still finished later: ${asText(late.value)}`);
      if (late?.state === 'failed') return failed(`It was cancelled and failed later: ${describeError(late.error)}`);
      return failed(reason === undefined ? UNSEEN[state] : describeStoppedCall(state, reason));
  }
}

/** With what its tool reported as it was interrupted, if that is more than "stopped", and with its partial result. */
function describeStopped(state: 'interrupted' | 'not-started', reason: CancelReason, error: unknown): string {
  const reported = error === undefined || isCausedByCancel(error) ? undefined : describeError(error);
  const described = describeStoppedCall(state, reason, { error: reported });
  const { content } = ((isCancelledError(error) && error.partial) || {}) as Partial<ToolResult>;
  return content === undefined ? described : `${described} Output so far:\n${asText(content)}`;
}

export function succeeded(value: unknown): Output {
  return typeof value === 'string'
    ? { type: 'text', value }
    : { type: 'json', value: JSON.parse(asJson(value ?? null)) as unknown };
}

export function failed(value: string): Output {
  return { type: 'error-text', value };
}
