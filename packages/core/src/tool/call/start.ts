import { runBounded } from '../../stop/bounded/bounded.ts';
import { isList } from '../../stop/settings.ts';
import { isPromiseLike, waitUntilLevel } from '../../stop/wait.ts';
import { describeError } from '../normalize.ts';
import type { CallResult } from '../result.ts';
import { parseInput } from '../schema.ts';
import type { CallPreview } from '../tool.ts';
import { prepareAnswer } from './answer.ts';
import type { ApprovalRequest, CallScope } from './call.ts';
import type { LiveCall, Prepared } from './live-call.ts';

/** Runs one call to its result. A call that has nothing to wait for starts in the tick of the checkpoint. */
export function runCall(call: LiveCall, scope: CallScope): CallResult | Promise<CallResult> {
  // Checkpoint: a stopped call does not start.
  if (call.stopped) return call.endUnstarted();
  try {
    const prepared = prepare(call, scope);
    return isPromiseLike(prepared) ? beginWhenPrepared(call, prepared, scope) : begin(call, prepared, scope);
  } catch (error) {
    return call.endUnstarted(error);
  }
}

const NO_KEYS: readonly string[] = [];

/** Prepares a call: a valid input, approval, and its exclusive keys. */
function prepare(call: LiveCall, scope: CallScope): Prepared | Promise<Prepared> {
  const input = parseInput(call.tool.inputSchema, call.call.input);
  const isAsking = call.tool.needsApproval !== undefined || call.tool.answeredBy !== undefined;
  const mayWait =
    isPromiseLike(input) || scope.beforeCall !== undefined || isAsking || scope.parent?.requests?.isAsking;
  const mustWait = mayWait || needsYes(call, input, scope);
  return mustWait ? waitForYes(call, input, scope) : { input, keys: findKeys(call, input) };
}

function findKeys({ call, tool }: LiveCall, input: unknown): readonly string[] {
  const keys: unknown = call.exclusive ?? tool.exclusive?.(input) ?? NO_KEYS;
  if (isList(keys) && keys.every((key) => typeof key === 'string')) return keys;
  throw new TypeError(`exclusive: '${tool.name}' must return a list of strings`);
}

async function beginWhenPrepared(call: LiveCall, preparing: Promise<Prepared>, scope: CallScope): Promise<CallResult> {
  const prepared = await waitUntilLevel(preparing, call.waiting, 'drain');
  if (prepared.by === 'value' && !call.stopped) return begin(call, prepared.value, scope);
  if (prepared.by === 'level') call.leaveRunning('approval', preparing);
  return call.endUnstarted(prepared.by === 'error' ? prepared.error : undefined);
}

function begin(call: LiveCall, prepared: Prepared, scope: CallScope): Promise<CallResult> {
  return prepared.keys.length > 0 ? beginWithKeys(call, prepared, scope) : runBounded(call.ready(prepared));
}

async function beginWithKeys(call: LiveCall, prepared: Prepared, scope: CallScope): Promise<CallResult> {
  const held = await scope.keys.acquire(prepared.keys, { holder: call.call.id, token: call.waiting });
  if (typeof held === 'function') {
    if (!call.stopped) return runBounded(call.ready(prepared, held));
    held();
  }
  const busy = typeof held === 'object' ? heldBy(prepared.keys, held) : undefined;
  return call.endUnstarted(busy);
}

function heldBy(keys: readonly string[], held: { readonly heldBy: string }): Error {
  return new Error(`${keys.join(', ')} is still held by call '${held.heldBy}'; try again later`);
}

async function waitForYes(wanted: LiveCall, parsed: unknown, scope: CallScope): Promise<Prepared> {
  const { call, tool, waiting } = wanted;
  const input = await parsed;
  // Checkpoints: don't ask about a call, or announce one, that can no longer start.
  waiting.throwIfCancelled();
  const { context } = scope;
  const own = await tool.needsApproval?.(input, { callId: call.id, signal: waiting.signal, context });
  waiting.throwIfCancelled();
  const isRequired = tool.needsApproval !== undefined && own !== false;
  const request = requestFor(wanted, input, scope);
  const effects = isRequired && tool.effects === 'read' ? 'write' : tool.effects;
  const isAsked = isRequired || needsYes(wanted, input, scope);
  const shown = isAsked ? await askForApproval({ ...request, effects }, wanted, scope) : undefined;
  const answer = tool.answeredBy && (await prepareAnswer(request, wanted, scope));
  if (scope.parent?.requests?.isAsking) await scope.parent.requests.open(waiting);
  waiting.throwIfCancelled();
  await scope.beforeCall?.(call, { tool, signal: waiting.signal, effectKey: wanted.effectKey });
  return { input, keys: findKeys(wanted, input), shown, answer };
}

/** Only a clear no of the approver means that it need not be asked. */
function needsYes(call: LiveCall, input: unknown, scope: CallScope): boolean {
  const { approve } = scope;
  if (approve?.isRequired !== undefined) return approve.isRequired(requestFor(call, input, scope)) !== false;
  return approve !== undefined && call.tool.effects !== 'read';
}

function requestFor({ call, tool }: LiveCall, input: unknown, { parent }: CallScope): ApprovalRequest {
  const { path } = parent ?? {};
  const request = { call, tool, effects: tool.effects, input };
  if (path === undefined) return request;
  const id = [...path.map(({ callId }) => callId), call.id].join('/');
  return { ...request, call: { ...call, id }, within: path.map((outer) => outer.tool) };
}

async function askForApproval(
  request: ApprovalRequest,
  { call, tool, waiting }: LiveCall,
  { approve, context, token, emit }: CallScope,
): Promise<CallPreview | undefined> {
  if (approve === undefined) throw new Error('it needs approval, and its agent has no `approve` function');
  const about = { callId: call.id, tool: tool.name };
  emit?.({ type: 'approval-requested', at: token.clock.now(), ...about, effects: request.effects });
  // A listener for the question may have cancelled: then don't ask.
  waiting.throwIfCancelled();
  const asking = waiting.child({ name: `approval of ${call.id}`, minimumLevel: 'abort' });
  let approved = false;
  try {
    const answer = await approve(request, { signal: asking.signal, context });
    const yes = typeof answer === 'object' && answer?.approved === true ? answer : undefined;
    approved = answer === true || yes !== undefined;
    if (!approved) throw new Error(answer === false ? 'denied by the user' : `denied: ${describeError(answer)}`);
    return yes?.shown;
  } finally {
    asking[Symbol.dispose]();
    // An answer to a call that was stopped in between changes nothing.
    if (!waiting.isCancelled) emit?.({ type: 'approval-answered', at: token.clock.now(), ...about, approved });
  }
}
