import type { BoundedResult } from '../../stop/bounded/bounded.ts';
import { isCancelledError, isOutcomeUnknownError } from '../../stop/errors.ts';
import { isObject } from '../../stop/settings.ts';
import type { CancelReason } from '../../stop/token/reason.ts';
import type { CancellationToken } from '../../stop/token/token.ts';
import { boundContent, boundDetails } from '../bounds.ts';
import { describeError, isCausedByCancel, normalizeResult } from '../normalize.ts';
import { type Redact, redactResult } from '../redact.ts';
import {
  type CallResult,
  type Content,
  describeStoppedCall,
  type Effects,
  type Json,
  type ToolResult,
} from '../result.ts';
import type { Tool } from '../tool.ts';
import type { Call } from './call.ts';

/** How work that started ended. */
export type StartedResult = Exclude<BoundedResult<unknown>, { readonly state: 'not-started' | 'refused' }>;

export interface StartedCall {
  readonly about: Pick<CallResult, 'callId' | 'tool' | 'startedAt' | 'endedAt'>;
  readonly effects: Effects;
  /** The call was a nested run: its error says how that ended, and carries its result so far. */
  readonly nested: boolean;
  /** The last partial result it showed. */
  readonly shown: ToolResult | undefined;
  readonly redact: Redact | undefined;
}

/** A call's result, and its details before they were cut to the limit. */
export interface Ending {
  readonly result: CallResult;
  readonly wholeDetails: Json | undefined;
}

/** Creates the result of a call that started, within the limits and frozen. Never throws, whatever the call did. */
export function toEnding(end: StartedResult, started: StartedCall): Ending {
  const raw = toResultFields(end, started);
  const fields = redactResult(raw, started.redact);
  const content = boundContent(fields.content);
  if (fields.details === undefined) {
    return { result: Object.freeze({ ...started.about, ...fields, content }), wholeDetails: undefined };
  }
  const result = { ...started.about, ...fields, content, details: boundDetails(fields.details) };
  // Undo gets the whole details that the tool returned.
  return { result: Object.freeze(result), wholeDetails: raw.details };
}

type ResultFields = Pick<CallResult, 'state' | 'content' | 'details' | 'isError' | 'reason' | 'error'>;

function toResultFields(end: StartedResult, { effects, nested, shown }: StartedCall): ResultFields {
  if (nested && 'error' in end) return toNestedResultFields(end);
  switch (end.state) {
    case 'finished':
      return finished(normalizeResult(end.value));
    case 'failed':
      if (isOutcomeUnknownError(end.error))
        return { state: 'unknown', content: outcomeUnknown(end.error), isError: true };
      return { state: 'failed', content: describeError(end.error), isError: true };
    case 'interrupted': {
      if (isOutcomeUnknownError(end.error))
        return { state: 'unknown', content: outcomeUnknown(end.error), isError: true, reason: end.reason };
      const partial = (isCancelledError(end.error) ? findPartial(end.error) : undefined) ?? shown;
      const effect = isCancelledError(end.error) ? end.error.effect : undefined;
      if (effect === 'unknown') return stopped('unknown', end.reason, { partial });
      const error = isCausedByCancel(end.error) ? undefined : describeError(end.error);
      return stopped('interrupted', end.reason, { partial, effects: effect === 'none' ? 'read' : effects, error });
    }
    case 'unknown':
      return stopped('unknown', end.reason, { partial: shown });
  }
}

function finished({ content, details, isError = false }: ToolResult): ResultFields {
  return details === undefined
    ? { state: 'finished', content, isError }
    : { state: 'finished', content, isError, details };
}

/** A run inside a call may have been stopped, or have failed, by itself. Either way it returns what it had. */
function toNestedResultFields(end: StartedResult & { readonly error: unknown }): ResultFields {
  const { error } = end;
  const partial = findPartial(error);
  if (isCancelledError(error)) return stopped('interrupted', error.reason, { partial, effects: 'read' });
  const message = describeError(error);
  if (end.state === 'interrupted') {
    return stopped('interrupted', end.reason, { partial, effects: 'read', error: message });
  }
  const hasSaid = partial !== undefined && partial.content !== '';
  const content = !hasSaid ? message : withPartial(`It failed: ${message}.`, partial.content);
  return {
    state: 'failed',
    content,
    isError: true,
    ...(partial?.details !== undefined && { details: partial.details }),
  };
}

interface Known {
  readonly partial?: ToolResult | undefined;
  readonly effects?: Effects;
  readonly error?: string | undefined;
}

function stopped(
  state: 'interrupted' | 'not-started' | 'unknown',
  reason: CancelReason,
  { partial, effects, error }: Known = {},
): ResultFields {
  const description = describeStoppedCall(state, reason, { effects, error });
  return {
    state,
    content: partial === undefined ? description : withPartial(description, partial.content),
    isError: true,
    reason,
    ...(error !== undefined && { error }),
    ...(partial?.details !== undefined && { details: partial.details }),
  };
}

function withPartial(description: string, partial: Content): Content {
  const heading = `${description} Output so far:\n`;
  return typeof partial === 'string'
    ? heading + partial
    : Object.freeze([Object.freeze({ type: 'text' as const, text: heading }), ...partial]);
}

function findPartial(error: unknown): ToolResult | undefined {
  try {
    const { partial } = error as { partial?: unknown };
    return isObject(partial) && 'content' in partial ? normalizeResult(partial) : undefined;
  } catch {
    return undefined;
  }
}

/** The result of a call that was stopped before it started. A client may have run it as soon as it has seen it. */
export function notStarted(call: Call, token: CancellationToken, tool?: Pick<Tool, 'answeredBy'>): CallResult {
  const state = tool?.answeredBy === 'client' ? 'unknown' : 'not-started';
  return unstarted(call, token, stopped(state, token.reason!));
}

/** The result of a call that is proved to have had no effect, and to have none later. */
export function withoutEffect(about: StartedCall['about']): CallResult {
  const content = 'It did not take effect, and cannot any more: its tool found out.';
  return { ...about, state: 'not-started', content, isError: true };
}

/** The result of a call that could not start, with its own reason. */
export function refused(call: Call, token: CancellationToken, error: unknown): CallResult {
  const content = boundContent(`Not started: ${describeError(error)}`);
  return unstarted(call, token, { state: 'not-started', content, isError: true });
}

/** The result of a call whose end is unknown because the code that watches it failed. */
export function lost(call: Call, token: CancellationToken, error: unknown): CallResult {
  return unstarted(call, token, { state: 'unknown', content: boundContent(outcomeUnknown(error)), isError: true });
}

function outcomeUnknown(error: unknown): string {
  return `Outcome unknown: ${describeError(error)}. It may have taken effect.`;
}

function unstarted(call: Call, { clock }: CancellationToken, fields: ResultFields): CallResult {
  return Object.freeze({ callId: call.id, tool: call.tool, endedAt: clock.now(), ...fields });
}
