import {
  type CancellationToken,
  type CancelReason,
  guard,
  isCancelledError,
  type Ledger,
  type StopLevel,
  type WorkContext,
} from '@whoa/core';
import {
  type AiSdkCallOptions,
  type AiSdkTool,
  checkNames,
  type Execute,
  isAsyncIterable,
  type ToolBound,
} from './ai-sdk-tool.ts';
import { type CallLedger, type CallRecord, createCallLedger } from './call-ledger.ts';
import { Relay } from './relay.ts';

export interface GuardToolsOptions {
  /** Who may cancel the calls, besides the loop's own `abortSignal`. */
  readonly token?: CancellationToken;
  /** Where every call is written down; give it to `closeOpenCalls`. */
  readonly calls?: CallLedger;
  /** How single tools bear a cancel; the others are interrupted and have no time limit. */
  readonly bounds?: Readonly<Record<string, ToolBound>>;
  /** A cancel has to wait for this call. */
  readonly onWait?: (call: { callId: string; tool: string; level: StopLevel; reason: CancelReason }) => void;
}

/**
 * The same tools for a loop of your own (`streamText`, `generateText`, an AI SDK agent), made bounded, fenced and
 * reported: a tool that ignores its signal can no longer hold a run up, and what it does later reaches nobody.
 *
 * ```ts
 * const calls = createCallLedger();
 * const tools = guardAiSdkTools({ search, book }, {
 *   token, calls, bounds: { book: { whenCancelled: 'finish', timeoutMs: 10_000 } },
 * });
 * streamText({ model, tools, messages, abortSignal: token.signal });
 * ```
 */
export function guardAiSdkTools<Tools extends Readonly<Record<string, AiSdkTool>>>(
  tools: Tools,
  options: GuardToolsOptions,
): Tools {
  const { bounds = {}, calls = createCallLedger() } = options;
  checkNames('bounds', bounds, tools);
  const guarded = Object.entries(tools).map(([name, tool]) => {
    // Tools without `execute` run somewhere else, out of our reach.
    if (tool.execute === undefined) return [name, tool];
    calls.addTool(name);
    const execute = tool.execute.bind(tool) as Execute;
    return [name, { ...tool, execute: guardExecute(name, execute, { ...options, calls }) }];
  });
  return Object.fromEntries(guarded) as Tools;
}

type Guarding = GuardToolsOptions & { readonly calls: CallLedger };

function guardExecute(name: string, execute: Execute, options: Guarding): Execute {
  return (input, call) => {
    let relay: Relay | undefined;
    const work = ({ signal }: WorkContext): unknown => {
      const result = execute(input, { ...call, abortSignal: signal });
      if (!isAsyncIterable(result)) return result;
      relay = new Relay();
      return relay.drain(result);
    };
    // `guard` calls its work before it first waits, so a tool that streams has shown itself when this returns.
    const ending = runGuarded(work, { name, call, options });
    return relay === undefined ? ending : relay.until(ending);
  };
}

interface GuardedCall {
  readonly name: string;
  readonly call: AiSdkCallOptions;
  readonly options: Guarding;
}

async function runGuarded(
  work: (context: WorkContext) => unknown,
  { name, call, options }: GuardedCall,
): Promise<unknown> {
  const { calls, token, bounds, onWait } = options;
  const about = { callId: call.toolCallId, tool: name };
  calls.write({ ...about, state: 'running' });
  try {
    const output = await guard(work, {
      name,
      ...bounds?.[name],
      ...(token && { token }),
      ...(call.abortSignal && { signal: call.abortSignal }),
      ...(onWait && { onWait: (level, reason) => onWait({ ...about, level, reason }) }),
      ledger: ledgerOf(about, calls),
    });
    calls.write({ ...about, state: 'finished', output });
    return output;
  } catch (error) {
    // What was given up on is written down already, with what became of it.
    if (calls.find(about.callId)?.state === 'running') calls.write({ ...about, ...endOf(error) });
    throw error;
  }
}

/** Writes into the record of one call what a guard has to say of abandoned work. */
function ledgerOf(about: Pick<CallRecord, 'callId' | 'tool'>, calls: CallLedger): Ledger {
  let record: CallRecord = { ...about, state: 'unknown' };
  return {
    abandon: ({ reason }) => calls.write((record = { ...record, reason })),
    returned: (_key, late) => calls.write((record = { ...record, late })),
    entries: () => [],
  };
}

function endOf(error: unknown): Pick<CallRecord, 'state' | 'error' | 'reason'> {
  const stopped = isCancelledError(error) ? (error.partial as { state?: unknown } | undefined)?.state : undefined;
  if (isCancelledError(error) && (stopped === 'interrupted' || stopped === 'not-started'))
    return { state: stopped, reason: error.reason };
  return { state: 'failed', error };
}
