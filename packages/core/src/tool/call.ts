import { type BoundedEnd, runBounded, type WorkContext } from '../stop/bounded.ts';
import { isCancelledError } from '../stop/errors.ts';
import { enterInLedger, type Ledger } from '../stop/ledger.ts';
import type { CancelReason } from '../stop/reason.ts';
import type { CancellationToken } from '../stop/token.ts';
import { waitUnder } from '../stop/wait.ts';
import { boundResult } from './bounds.ts';
import type { CallEvent } from './events.ts';
import type { ExclusiveKeys } from './exclusive.ts';
import { type CallResult, type CallState, type Content, explain, type ToolResult } from './result.ts';
import { parseInput } from './schema.ts';
import { type Effects, resultFrom, type Tool } from './tool.ts';

/** One tool invocation that somebody wants. */
export interface Call {
  readonly id: string;
  readonly tool: string;
  readonly input: unknown;
  readonly dependsOn?: readonly string[];
  readonly exclusive?: readonly string[];
}

export interface ApprovalRequest {
  readonly call: Call;
  readonly tool: Tool;
  readonly effects: Effects;
}

/** Asked before every call that writes or executes. A text is a no with its reason, which the model is told. */
export type Approve = (
  request: ApprovalRequest,
  context: { signal: AbortSignal },
) => boolean | string | Promise<boolean | string>;

/** Waited for before every call begins, whatever it does. A call whose `beforeCall` rejects is not started. */
export type BeforeCall = (call: Call, context: { readonly tool: Tool; readonly signal: AbortSignal }) => unknown;

/** A call under way. */
export interface LiveCall {
  readonly tool: Tool;
  readonly token: CancellationToken;
}

/** What a call needs from the runtime it runs in. */
export interface CallScope {
  readonly token: CancellationToken;
  readonly tell: (event: CallEvent) => void;
  readonly approve: Approve | undefined;
  readonly beforeCall: BeforeCall | undefined;
  readonly ledger: Ledger;
  readonly ledgerKey: (callId: string) => string;
  readonly keys: ExclusiveKeys;
  readonly live: Map<string, LiveCall>;
  readonly cleanupMs: number;
}

/** Runs one call to its one truthful result. It never rejects. */
export async function runCall(call: Call, tool: Tool, scope: CallScope): Promise<CallResult> {
  const { token } = scope;
  // Checkpoint: what has not begun does not begin.
  if (token.isCancelled) return notStarted(call, token);
  const ready = await waitUnder(prepare(call, tool, scope), token, 'drain');
  if (ready.by === 'level') return notStarted(call, token);
  if (ready.by === 'error') return refused(call, token, ready.error);
  const { input, keys } = ready.value;
  const release = keys.length === 0 ? undefined : await scope.keys.acquire(keys, { holder: call.id, token });
  if (release !== undefined && typeof release !== 'function') {
    return refused(
      call,
      token,
      new Error(`${keys.join(', ')} is still held by call '${release.heldBy}'; try again later`),
    );
  }
  // Checkpoint: the cancel may have come with the yes or with the key.
  if (token.isCancelled) {
    release?.();
    return notStarted(call, token);
  }
  return perform({ call, tool, input, release }, scope);
}

/** Everything that must be known before a call may begin: a valid input, somebody's yes, and what it must not share. */
async function prepare(call: Call, tool: Tool, scope: CallScope): Promise<{ input: unknown; keys: readonly string[] }> {
  const input = await parseInput(tool.input, call.input);
  if (tool.effects !== 'read') await askForApproval(call, tool, scope);
  await scope.beforeCall?.(call, { tool, signal: scope.token.signal });
  return { input, keys: call.exclusive ?? tool.exclusive?.(input) ?? [] };
}

async function askForApproval(call: Call, tool: Tool, { approve, token, tell }: CallScope): Promise<void> {
  if (approve === undefined) return;
  const about = { callId: call.id, tool: tool.name };
  tell({ type: 'approval-request', at: token.clock.now(), ...about, effects: tool.effects });
  const asking = token.child({ name: `approval of ${call.id}`, atOnce: true });
  try {
    const answer = await approve({ call, tool, effects: tool.effects }, { signal: asking.signal });
    tell({ type: 'approval-answer', at: token.clock.now(), ...about, approved: answer === true });
    if (answer !== true) throw new Error(answer === false ? 'denied by the user' : `denied: ${answer}`);
  } finally {
    asking[Symbol.dispose]();
  }
}

interface ReadyCall {
  readonly call: Call;
  readonly tool: Tool;
  readonly input: unknown;
  readonly release: (() => void) | undefined;
}

async function perform({ call, tool, input, release }: ReadyCall, scope: CallScope): Promise<CallResult> {
  const { token, tell } = scope;
  const { clock } = token;
  const about = { callId: call.id, tool: tool.name };
  let startedAt: number | undefined;
  let partial: ToolResult | undefined;
  let ended = false;
  const execute = async (context: WorkContext): Promise<ToolResult> => {
    const update = (shown: ToolResult): void => {
      if (ended) return;
      partial = shown;
      tell({ type: 'call-update', at: clock.now(), ...about, partial: shown });
    };
    const nest = (event: { readonly type: string }): void => {
      if (!ended) tell({ type: 'call-nested', at: clock.now(), ...about, event });
    };
    const value = await tool.execute(input, Object.assign(context, { callId: call.id, update, nest }));
    return resultFrom(value);
  };
  const end = await runBounded(execute, {
    token,
    name: tool.name,
    whenCancelled: tool.whenCancelled,
    timeoutMs: tool.timeoutMs,
    cleanupMs: scope.cleanupMs,
    nested: tool.nested,
    onStart(own) {
      startedAt = clock.now();
      scope.live.set(call.id, { tool, token: own });
      tell({ type: 'call-start', at: startedAt, ...about, input });
    },
    onWait(level, reason) {
      tell({ type: 'call-waiting', at: clock.now(), ...about, level, reason, until: startedAt! + tool.timeoutMs! });
    },
    onCleanupError: (error) => tell({ type: 'cleanup-error', at: clock.now(), ...about, error }),
  });
  ended = true;
  scope.live.delete(call.id);
  const result = boundResult(resultOf({ ...about, startedAt, endedAt: clock.now() }, end, partial));
  if (end.state !== 'unknown') release?.();
  else {
    const work = { key: scope.ledgerKey(call.id), name: tool.name, reason: end.reason, abandonedAt: result.endedAt };
    const onReturn = (late: Awaited<typeof end.late>): void => {
      release?.();
      tell({ type: 'call-late', at: late.at, ...about, late });
    };
    enterInLedger(scope.ledger, work, { late: end.late, onReturn });
  }
  tell({ type: 'call-end', at: result.endedAt, result });
  return result;
}

type Times = { callId: string; tool: string; startedAt: number | undefined; endedAt: number };

function resultOf(about: Times, end: BoundedEnd<ToolResult>, shown: ToolResult | undefined): CallResult {
  const { startedAt, ...rest } = about;
  const base = startedAt === undefined ? rest : { ...rest, startedAt };
  switch (end.state) {
    case 'finished':
      return { ...base, state: 'finished', isError: false, ...end.value };
    case 'failed':
      return { ...base, state: 'failed', content: describeError(end.error), isError: true };
    case 'interrupted':
      return { ...base, ...stopped(stateOf(end.error), end.reason, partialOf(end.error) ?? shown) };
    case 'unknown':
    case 'not-started':
      return { ...base, ...stopped(end.state, end.reason, shown) };
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
