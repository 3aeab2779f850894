import { runBounded } from '../stop/bounded.ts';
import { CancelledError, isCancelledError } from '../stop/errors.ts';
import type { CancellationToken } from '../stop/token.ts';
import { sleep } from '../stop/wait.ts';
import type { CallResult } from '../tool/result.ts';
import type { Runtime } from '../tool/runtime.ts';
import { type Budgets, overspent } from './budget.ts';
import type { TurnEvent, UnstampedEvent } from './events.ts';
import type { AssistantMessage, Message } from './message.ts';
import type { Planner, Step } from './planner.ts';
import type { Steering } from './steering.ts';
import type { Transcript } from './transcript.ts';

/** Makes a long history short enough for the model's window; returns it unchanged if it already is. */
export type Compact = (
  messages: readonly Message[],
  context: { signal: AbortSignal; turn: number },
) => readonly Message[] | Promise<readonly Message[]>;

/** What the loop works with. It belongs to one run. */
export interface LoopState {
  readonly token: CancellationToken;
  readonly planner: Planner;
  readonly runtime: Runtime;
  readonly transcript: Transcript;
  readonly steering: Steering;
  readonly budgets: Budgets;
  readonly compact: Compact | undefined;
  readonly cleanupMs: number;
  readonly tell: (event: UnstampedEvent) => void;
  turns: number;
}

/** Turns that never wait, of a model and tools that answer from memory, may hold the event loop for this long. */
const HOLD_MS = 20;

/**
 * Plan, run the waves, adapt to what they brought, until there is a reply. Answers whether it came to that: not if the
 * reply was cut off. Cancelled elsewhere, it throws `CancelledError`.
 */
export async function runLoop(state: LoopState): Promise<boolean> {
  const { token, transcript, steering } = state;
  let restedAt = token.clock.now();
  for (;;) {
    token.throwIfCancelled(); // Checkpoint: between turns.
    spend(state, { turn: state.turns + 1, calls: 0 });
    deliverSteers(state);
    await compactHistory(state);
    const step = await takeTurn(state);
    if (token.isCancelled && step.message.stopReason === 'aborted') return false;
    if (step.calls.length > 0) {
      spend(state, { turn: state.turns, calls: step.calls.length });
      for (const result of await runCalls(step, state)) transcript.addResult(result);
    } else if (!steering.hasWaiting) return true;
    // Without a rest no timer, signal or message would ever be heard, and nobody outside could cancel the run.
    if (token.clock.now() - restedAt < HOLD_MS) continue;
    await sleep(0, { clock: token.clock, token });
    restedAt = token.clock.now();
  }
}

function spend({ token, budgets, transcript }: LoopState, next: { turn: number; calls: number }): void {
  const reason = overspent(budgets, { ...next, transcript });
  if (reason !== undefined) token.cancel(reason, { how: 'now' });
  token.throwIfCancelled();
}

function deliverSteers({ steering, transcript, tell }: LoopState): void {
  for (const message of steering.take()) {
    transcript.addUser(message);
    tell({ type: 'steer-delivered', message });
  }
}

async function compactHistory({ compact, transcript, token, turns, tell, cleanupMs }: LoopState): Promise<void> {
  if (compact === undefined) return;
  const before = transcript.messages;
  const after = await stoppable(
    () => {
      const asked = token.child({ name: 'compact', atOnce: true });
      return Promise.resolve(compact(before, { signal: asked.signal, turn: turns + 1 })).finally(() =>
        asked[Symbol.dispose](),
      );
    },
    { token, name: 'compact', cleanupMs },
  );
  if (after === before) return;
  transcript.replace(after);
  tell({ type: 'history-compacted', before: before.length, after: after.length, messages: [...after] });
}

/** One step of the planner. Words that were shown are kept, also when the planner fails or is cut off. */
async function takeTurn(state: LoopState): Promise<Step> {
  const { planner, transcript, tell } = state;
  const turn = ++state.turns;
  let shown = '';
  const tellTurn = (event: TurnEvent): void => {
    if (event.type === 'text') shown += event.text;
    tell(event);
  };
  tell({ type: 'turn-start', turn });
  const end = (message: AssistantMessage): void => {
    transcript.addReply(message);
    tell({ type: 'turn-end', turn, message });
  };
  // Words are never protected: any level, drain included, reaches the planner as an abort.
  const token = state.token.child({ name: `turn ${turn}`, atOnce: true });
  try {
    const step = await stoppable((own) => planner.next(transcript.messages, { token: own, turn, tell: tellTurn }), {
      token,
      name: 'planner',
      cleanupMs: state.cleanupMs,
    });
    end(step.message);
    return step;
  } catch (error) {
    const stopReason = state.token.isCancelled ? 'aborted' : 'error';
    end(
      partialMessage(error) ?? {
        role: 'assistant',
        content: shown === '' ? [] : [{ type: 'text', text: shown }],
        stopReason,
      },
    );
    throw error;
  } finally {
    token[Symbol.dispose]();
  }
}

/** Runs something that can be stopped at once. Throws `CancelledError` if it was, at `kill` at the latest. */
function stoppable<T>(
  execute: (own: CancellationToken) => T | PromiseLike<T>,
  { token, name, cleanupMs }: { token: CancellationToken; name: string; cleanupMs: number },
): Promise<T> {
  return runBounded<T, T>({
    execute: ({ token: own }) => execute(own),
    token,
    name,
    cleanupMs,
    nested: false,
    whenCancelled: 'interrupt',
    timeoutMs: undefined,
    onCleanupError: () => {},
    onEnd(end) {
      if (end.state === 'finished') return end.value;
      if (end.state === 'failed') throw end.error;
      const cause = 'error' in end ? end.error : undefined;
      throw isCancelledError(cause) ? cause : new CancelledError(end.reason, { cause });
    },
  });
}

/** What a planner hands over when it breaks off: errors may carry the message so far as `partial`. */
function partialMessage(error: unknown): AssistantMessage | undefined {
  const partial =
    error instanceof Error && 'partial' in error ? (error.partial as Partial<AssistantMessage> | undefined) : undefined;
  return partial?.role === 'assistant' ? (partial as AssistantMessage) : undefined;
}

/** Runs the waves of a step. When cancelled, the results there are go into the transcript before the throw. */
async function runCalls(step: Step, { runtime, token, transcript }: LoopState): Promise<readonly CallResult[]> {
  try {
    return await runtime.execute(step.calls, { token });
  } catch (error) {
    if (isCancelledError(error))
      for (const result of error.partial as readonly CallResult[]) transcript.addResult(result);
    throw error;
  }
}
