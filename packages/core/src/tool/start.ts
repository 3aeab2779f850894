import { runBounded } from '../stop/bounded.ts';
import { isPromiseLike, waitUnder } from '../stop/wait.ts';
import { BegunCall } from './begun.ts';
import type { Approve, CallScope, WantedCall } from './call.ts';
import { notStarted, refused } from './ending.ts';
import type { CallResult } from './result.ts';
import { parseInput } from './schema.ts';

/**
 * Runs one call to its one truthful result. It never rejects. What can be answered at once is not waited for, so a call
 * that needs nobody's yes and no key begins in the tick of the checkpoint.
 */
export function runCall(wanted: WantedCall, scope: CallScope): CallResult | Promise<CallResult> {
  // Checkpoint: what has not begun does not begin.
  if (scope.token.isCancelled) return notStarted(wanted.call, scope.token);
  try {
    const prepared = prepare(wanted, scope);
    return isPromiseLike(prepared) ? beginWhenPrepared(wanted, prepared, scope) : begin(wanted, prepared, scope);
  } catch (error) {
    return refused(wanted.call, scope.token, error);
  }
}

interface Prepared {
  readonly input: unknown;
  readonly keys: readonly string[];
}

const NO_KEYS: readonly string[] = [];

/** Everything that must be known before a call may begin: a valid input, somebody's yes, and what it must not share. */
function prepare(wanted: WantedCall, scope: CallScope): Prepared | Promise<Prepared> {
  const input = parseInput(wanted.tool.input, wanted.call.input);
  const mustWait = isPromiseLike(input) || needsApproval(wanted, scope) || scope.beforeCall !== undefined;
  return mustWait ? waitForYes(wanted, input, scope) : { input, keys: keysOf(wanted, input) };
}

function keysOf({ call, tool }: WantedCall, input: unknown): readonly string[] {
  return call.exclusive ?? tool.exclusive?.(input) ?? NO_KEYS;
}

async function beginWhenPrepared(
  wanted: WantedCall,
  preparing: Promise<Prepared>,
  scope: CallScope,
): Promise<CallResult> {
  const { token } = scope;
  const prepared = await waitUnder(preparing, token, 'drain');
  if (prepared.by === 'level') return notStarted(wanted.call, token);
  if (prepared.by === 'error') return refused(wanted.call, token, prepared.error);
  return begin(wanted, prepared.value, scope);
}

function begin(wanted: WantedCall, { input, keys }: Prepared, scope: CallScope): Promise<CallResult> {
  if (keys.length > 0) return beginWithKeys(wanted, { input, keys }, scope);
  return runBounded(new BegunCall({ ...wanted, input, release: undefined }, scope));
}

async function beginWithKeys(wanted: WantedCall, { input, keys }: Prepared, scope: CallScope): Promise<CallResult> {
  const { token } = scope;
  const held = await scope.keys.acquire(keys, { holder: wanted.call.id, token });
  if (held !== undefined && typeof held !== 'function') {
    const busy = `${keys.join(', ')} is still held by call '${held.heldBy}'; try again later`;
    return refused(wanted.call, token, new Error(busy));
  }
  // A cancel that came with the keys is seen where the work begins; they are given back there.
  return runBounded(new BegunCall({ ...wanted, input, release: held }, scope));
}

async function waitForYes(wanted: WantedCall, parsed: unknown, scope: CallScope): Promise<Prepared> {
  const { call, tool } = wanted;
  const input = await parsed;
  // Checkpoints: nobody is asked about a call, or told of one, that can no longer begin.
  scope.token.throwIfCancelled();
  if (needsApproval(wanted, scope)) await askForApproval(wanted, scope);
  scope.token.throwIfCancelled();
  await scope.beforeCall?.(call, { tool, signal: scope.token.signal });
  return { input, keys: keysOf(wanted, input) };
}

type AskingScope = CallScope & { readonly approve: Approve };

function needsApproval({ tool }: WantedCall, scope: CallScope): scope is AskingScope {
  return tool.effects !== 'read' && scope.approve !== undefined;
}

async function askForApproval({ call, tool }: WantedCall, { approve, token, tell }: AskingScope): Promise<void> {
  const about = { callId: call.id, tool: tool.name };
  tell?.({ type: 'approval-request', at: token.clock.now(), ...about, effects: tool.effects });
  const asking = token.child({ name: `approval of ${call.id}`, atOnce: true });
  try {
    const answer = await approve({ call, tool, effects: tool.effects }, { signal: asking.signal });
    tell?.({ type: 'approval-answer', at: token.clock.now(), ...about, approved: answer === true });
    if (answer !== true) throw new Error(answer === false ? 'denied by the user' : `denied: ${answer}`);
  } finally {
    asking[Symbol.dispose]();
  }
}
