import type { BoundedEnd } from '../stop/bounded.ts';
import { isCancelledError } from '../stop/errors.ts';
import type { CancelReason } from '../stop/reason.ts';
import type { CancellationToken } from '../stop/token.ts';
import type { Call } from './call.ts';
import { type CallResult, type CallState, type Content, explain, type ToolResult } from './result.ts';
import { type RawResult, resultFrom } from './tool.ts';

/** How work that began ended. */
export type BegunEnd = Exclude<BoundedEnd<RawResult>, { readonly state: 'not-started' }>;

type About = Pick<CallResult, 'callId' | 'tool' | 'startedAt' | 'endedAt'>;

/** The one truthful result of a call that began; `shown` is what it had shown of itself so far. */
export function resultOf(about: About, end: BegunEnd, shown: ToolResult | undefined): CallResult {
  switch (end.state) {
    case 'finished': {
      const { content, details, isError = false } = resultFrom(end.value);
      const result: CallResult = { ...about, state: 'finished', content, isError };
      return details === undefined ? result : { ...result, details };
    }
    case 'failed':
      return { ...about, state: 'failed', content: describeError(end.error), isError: true };
    case 'interrupted':
      return { ...about, ...stopped(stateOf(end.error), end.reason, partialOf(end.error) ?? shown) };
    case 'unknown':
      return { ...about, ...stopped('unknown', end.reason, shown) };
  }
}

type Stopped = Pick<CallResult, 'state' | 'content' | 'details' | 'isError' | 'reason'>;

function stopped(
  state: Exclude<CallState, 'finished' | 'failed'>,
  reason: CancelReason,
  partial?: ToolResult,
): Stopped {
  const said = explain(state, reason);
  const content = partial === undefined ? said : withPartial(said, partial.content);
  return { state, content, isError: true, reason, ...(partial?.details !== undefined && { details: partial.details }) };
}

function withPartial(said: string, partial: Content): Content {
  const heading = `${said} Output so far:\n`;
  return typeof partial === 'string' ? heading + partial : [{ type: 'text', text: heading }, ...partial];
}

function stateOf(error: unknown): 'interrupted' | 'unknown' {
  return isCancelledError(error) && error.effect === 'unknown' ? 'unknown' : 'interrupted';
}

function partialOf(error: unknown): ToolResult | undefined {
  const partial = isCancelledError(error) ? error.partial : undefined;
  return typeof partial === 'object' && partial !== null && 'content' in partial ? (partial as ToolResult) : undefined;
}

/** The result of a call that the token stopped before it began. */
export function notStarted(call: Call, token: CancellationToken): CallResult {
  const stop = stopped('not-started', token.reason!);
  return { callId: call.id, tool: call.tool, endedAt: token.clock.now(), ...stop };
}

/** The result of a call that could not begin for a reason of its own. */
export function refused(call: Call, token: CancellationToken, error: unknown): CallResult {
  const said = `Not started: ${describeError(error)}`;
  return {
    callId: call.id,
    tool: call.tool,
    state: 'not-started',
    content: said,
    isError: true,
    endedAt: token.clock.now(),
  };
}

function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
