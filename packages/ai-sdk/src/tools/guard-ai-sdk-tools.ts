import {
  CallTimeoutError,
  type CancellationToken,
  type CancelReason,
  guard,
  isCancelledError,
  type StopLevel,
} from '@whoa/core';
import { createReason, type LateResults, systemClock, type WorkContext } from '@whoa/core/embed';
import { settings } from '@whoa/core/internal';
import { findApproved } from '../matching-records.ts';
import { asText } from '../messages/as-json.ts';
import { toOutput } from '../messages/reported-result.ts';
import { type CallRecord, type CallRecords, createCallRecords } from '../turn/call-records.ts';
import { type AiSdkMessage, findApprovedCall, fingerprint, toTrace } from '../turn/call-sites.ts';
import { Relay } from '../turn/relay.ts';
import {
  type AiSdkTool,
  checkNames,
  type Execute,
  isAsyncIterable,
  readStream,
  type ToolBound,
} from './ai-sdk-tool.ts';

export interface GuardToolsOptions {
  /** Records every call; pass it to `closeOpenCalls`. */
  readonly calls?: CallRecords | undefined;
  /** How individual tools react to a cancel. All others are interrupted and have no time limit. */
  readonly bounds?: Readonly<Record<string, ToolBound>> | undefined;
  /** Called when a cancel has to wait for a call. */
  readonly onWait?: ((call: WaitedCall) => void) | undefined;
  /** Cancels the calls, in addition to the loop's own `abortSignal`. */
  readonly token?: CancellationToken | undefined;
}

/** A call that a cancel has to wait for: its tool must `finish`. */
export interface WaitedCall {
  readonly callId: string;
  readonly toolCallId: string;
  readonly tool: string;
  readonly level: StopLevel;
  readonly reason: CancelReason;
}

/**
 * Guards the tools of your own loop (`streamText`, `generateText`, an AI SDK agent): each call is bounded, fenced and
 * reported. A tool that ignores its signal can no longer block a run, and its late result is ignored.
 *
 * @returns The same tools, guarded.
 * @throws {@link SettingsError} when `bounds` names an unknown tool.
 *
 * @example
 * ```ts
 * import { createCallRecords, guardAiSdkTools } from '@whoa/ai-sdk';
 * import { streamText } from 'ai';
 *
 * const calls = createCallRecords();
 * const guarded = guardAiSdkTools(tools, { token, calls });
 * streamText({ model, tools: guarded, prompt: 'Hello', abortSignal: token.signal });
 * ```
 */
export function guardAiSdkTools<Tools extends Readonly<Record<string, AiSdkTool>>>(
  tools: Tools,
  options: GuardToolsOptions,
): Tools {
  return guardTools(tools, options);
}

/** Called before a call starts. Returns what to call when it has ended. */
type OnCall = (record: CallRecord, input: unknown) => () => void;

/** The same, for a caller that needs every call and its end. */
export function guardTools<Tools extends Readonly<Record<string, AiSdkTool>>>(
  tools: Tools,
  options: GuardToolsOptions & { readonly onCall?: OnCall },
): Tools {
  const { bounds = {}, calls = createCallRecords() } = options;
  checkNames('bounds', bounds, tools);
  const guarded = Object.entries(tools).map(([name, tool]) => {
    // Tools without `execute` run elsewhere and cannot be guarded.
    if (tool.execute === undefined) return [name, tool];
    calls.addTool(name);
    const execute = tool.execute.bind(tool) as Execute;
    return [name, { ...tool, execute: guardExecute(name, execute, { ...options, calls }) }];
  });
  return Object.fromEntries(guarded) as Tools;
}

type Guarding = Parameters<typeof guardTools>[1] & { readonly calls: CallRecords };

function guardExecute(name: string, execute: Execute, options: Guarding): Execute {
  return (input, call) => {
    let relay: Relay | undefined;
    const work = (context: WorkContext): unknown => {
      const result = execute(input, { ...call, abortSignal: context.signal, effectKey: record.effectKey });
      if (!isAsyncIterable(result)) return result;
      const shown = new Relay();
      relay = shown;
      return readStream(result, context, (value) => shown.show(value));
    };
    const { toolCallId, messages: given } = call;
    const messages = settings.isList(given) ? (given as readonly AiSdkMessage[]) : undefined;
    const approved = messages && findApprovedCall(messages, { toolCallId, tool: name, input: fingerprint(input) });
    const earlier = approved && findApproved(approved, options.calls);
    // An approval allows one run: a history that is sent again, or twice at the same time, must not start a second.
    if (earlier?.state === 'finished') return earlier.output;
    if (earlier !== undefined) throw new Error(asText(toOutput(earlier).value));
    const trace = approved && { trace: toTrace(approved) };
    const record = options.calls.begin({ toolCallId, tool: name, input, messages, ...trace });
    // Before it starts: a tool may cancel its own turn.
    const end = options.onCall?.(record, input);
    // `guard` calls its work before it first awaits, so a streaming tool is recognized by the time this returns.
    const ending = runGuarded(work, { ...options, record, signal: call.abortSignal });
    if (end !== undefined) ending.then(end, end);
    return relay === undefined ? ending : relay.until(ending);
  };
}

type GuardedCall = Guarding & { readonly record: CallRecord; readonly signal: AbortSignal | undefined };

async function runGuarded(work: (context: WorkContext) => unknown, guarded: GuardedCall): Promise<unknown> {
  const { record, signal, calls, token, bounds, onWait } = guarded;
  const { callId, toolCallId, tool } = record;
  let thrown: { readonly error: unknown } | undefined;
  let isGivenUp = false;
  const lateResults: LateResults = {
    abandon({ reason }) {
      isGivenUp = true;
      calls.update(callId, { state: 'unknown', reason });
    },
    returned: (_key, late) => void calls.update(callId, { late }),
    entries: () => [],
  };
  const watched = async (context: WorkContext): Promise<unknown> => {
    try {
      return await work(context);
    } catch (error) {
      thrown = { error };
      throw error;
    }
  };
  try {
    const output = await guard(watched, {
      name: tool,
      ...bounds?.[tool],
      ...(token && { token }),
      ...(signal && { signal }),
      ...(onWait && { onWait: (level, reason) => onWait({ callId, toolCallId, tool, level, reason }) }),
      lateResults,
    });
    calls.update(callId, { state: 'finished', output });
    return output;
  } catch (error) {
    // An abandoned call is already recorded, with its end.
    if (!isGivenUp) calls.update(callId, toCallEnd(error, thrown));
    throw error;
  }
}

/** How a call that was not abandoned ended. An error that its tool threw is a failure, even if it looks like a cancel. */
function toCallEnd(error: unknown, thrown: { readonly error: unknown } | undefined): Partial<CallRecord> {
  if (thrown !== undefined && error === thrown.error) return { state: 'failed', error };
  const reported = thrown === undefined ? {} : { error: thrown.error };
  if (error instanceof CallTimeoutError) {
    const reason = createReason({ kind: 'deadline', message: error.message }, systemClock.now());
    return { state: 'interrupted', reason, ...reported };
  }
  if (!isCancelledError(error)) return { state: 'failed', error };
  const { state } = error.partial as { readonly state: 'interrupted' | 'not-started' };
  return { state, reason: error.reason, ...reported };
}
