import { runBounded } from '../stop/bounded/bounded.ts';
import { CLEANUP_MS } from '../stop/bounded/cleanup.ts';
import { CancelledError, isCancelledError } from '../stop/errors.ts';
import { LoopYielder } from '../stop/loop-yielder.ts';
import { isList, unexpected } from '../stop/settings.ts';
import type { CancellationToken } from '../stop/token/token.ts';
import { waitUntilLevel } from '../stop/wait.ts';
import { type Call, readCalls } from '../tool/call/call.ts';
import type { CallResult } from '../tool/result.ts';
import { type ExecuteOptions, REFUSED, type Runtime } from '../tool/runtime.ts';
import { type Budgets, MAX_TURNS, overspent, type Spent } from './budget.ts';
import type { Reached } from './budget-question.ts';
import { type CallIds, TurnCallIds } from './history/call-ids.ts';
import { recordReply } from './history/given-messages.ts';
import type { AssistantMessage, Message, Usage } from './history/message.ts';
import type { Transcript } from './history/transcript.ts';
import type { Repeats } from './repeats.ts';
import { PAID, type PlannedRequests, type Planner, type Step } from './reply/planner.ts';
import type { TurnEvent, UnstampedEvent } from './report/events.ts';
import type { Leftovers } from './report/leftovers.ts';
import { estimateUsage } from './spending/estimate.ts';
import type { PaidRequest, Requests } from './spending/requests.ts';
import type { Steering } from './steering.ts';

/** Shortens a long history to fit the model's context window. Returns it unchanged if it already fits. */
export type Compact = (
  messages: readonly Message[],
  context: {
    signal: AbortSignal;
    turn: number;
    /** Counts what it used itself. `model` defaults to the run's. */
    addUsage: (usage: Usage, model?: string) => void;
  },
) => readonly Message[] | Promise<readonly Message[]>;

/** Runs before a turn, for example to check elsewhere whether the run was cancelled. */
export type BeforeTurn = (turn: number) => unknown;

/** The state of the loop. It belongs to one run. */
export interface LoopState {
  readonly token: CancellationToken;
  readonly planner: Planner;
  readonly runtime: Runtime;
  readonly transcript: Transcript;
  readonly steering: Steering;
  budgets: Budgets;
  /** Deals with a limit that is reached. Resolves with how much more was given. */
  readonly raise: (reached: Reached) => Promise<number>;
  readonly before: Spent | undefined;
  /** Counts calls that are made again and again, if that has a limit. */
  readonly repeats: Repeats | undefined;
  /** What its requests are paid from, if there is a limit in money. */
  readonly requests: Requests | undefined;
  readonly planned: PlannedRequests | undefined;
  readonly compact: Compact | undefined;
  readonly beforeTurn: BeforeTurn | undefined;
  readonly emit: (event: UnstampedEvent) => void;
  readonly leaveRunning: Leftovers['add'];
  readonly ids: CallIds;
  turns: number;
}

/**
 * Plans, runs the waves and continues with their results, until there is a reply. Starts with the calls that an earlier
 * run left, if any. Returns whether the reply is isComplete: false if it was cut off. Throws `CancelledError` when cancelled.
 */
export async function runLoop(state: LoopState, left: readonly Call[] = []): Promise<boolean> {
  const { token } = state;
  const yielder = new LoopYielder(token.clock);
  try {
    if (left.length > 0) await runCalls(left, state);
    for (;;) {
      token.throwIfCancelled(); // Checkpoint: between turns.
      const isOver = await takeStep(state);
      if (isOver !== undefined) return isOver;
      const turn = yielder.yieldIfDue();
      if (turn !== undefined) await waitUntilLevel(turn, token, 'drain');
    }
  } finally {
    yielder[Symbol.dispose]();
  }
}

/** Takes one turn. Returns `undefined` if more turns follow. */
async function takeStep(state: LoopState): Promise<boolean | undefined> {
  const { token, steering } = state;
  if (state.beforeTurn !== undefined) await waitBeforeTurn(state, state.beforeTurn);
  const over = findOver(state, { turn: state.turns + 1, calls: 0 });
  if (over !== undefined) await raiseLimit(state, over, { turn: state.turns + 1, calls: 0 });
  token.throwIfCancelled();
  deliverSteers(state);
  await compactHistory(state);
  const paid = state.requests && (await beginRequest(state, state.requests));
  const { message, calls } = await takeTurn(state, paid);
  if (token.isCancelled && message.stopReason === 'aborted') return false;
  if (message.stopReason === 'error') throw new Error('The planner ended its reply with an error');
  if (calls.length === 0) return steering.hasWaiting ? undefined : true;
  const beyond = findOver(state, { turn: state.turns, calls: calls.length });
  if (beyond !== undefined) await raiseLimit(state, beyond, { turn: state.turns, calls: calls.length });
  token.throwIfCancelled();
  if (state.requests?.isAsking) await state.requests.open(token);
  await runCalls(calls, state);
  return undefined;
}

/** Nothing has an effect here, so any level ends the wait. */
async function waitBeforeTurn({ token, turns, leaveRunning }: LoopState, beforeTurn: BeforeTurn): Promise<void> {
  const asked = Promise.resolve(turns + 1).then(beforeTurn);
  const end = await waitUntilLevel(asked, token, 'drain');
  if (end.by === 'level') leaveRunning('beforeTurn', asked, 0);
  token.throwIfCancelled();
  if (end.by === 'error') throw end.error;
}

interface Next {
  readonly turn: number;
  readonly calls: number;
}

function findOver(state: LoopState, next: Next): Reached | undefined {
  const { budgets, transcript, before, steering } = state;
  // A waiting message starts the count again.
  const repeats = steering.hasWaiting ? undefined : state.repeats;
  return overspent(budgets, { ...next, transcript, before, repeats });
}

/** Gets more until no limit is exceeded, or stops the run. */
async function raiseLimit(state: LoopState, reached: Reached, next: Next): Promise<void> {
  for (let over: Reached | undefined = reached; over !== undefined; over = findOver(state, next)) {
    const more = await state.raise(over);
    if (more === 0) return;
    if (over.limit === 'repeats') state.repeats?.raise(more);
    else state.budgets = { ...state.budgets, [over.limit]: (state.budgets[over.limit] ?? MAX_TURNS) + more };
  }
}

function deliverSteers({ steering, transcript, emit, repeats }: LoopState): void {
  for (const message of steering.take()) {
    if (!message.isNotice) repeats?.restart();
    transcript.addUser(message);
    emit({ type: 'steer-delivered', message });
  }
}

async function compactHistory(state: LoopState): Promise<void> {
  const { compact, transcript, turns, emit } = state;
  if (compact === undefined) return;
  const before = transcript.messages;
  const kept = await stoppable('compact', state, ({ signal }) =>
    compact(before, { signal, turn: turns + 1, addUsage: (usage, model) => countUsage(state, usage, model) }),
  );
  if (kept === before) return;
  transcript.replace(kept, 'compact');
  const after = startingWithUser(transcript.messages, before);
  transcript.replace(after);
  emit({ type: 'history-compacted', before: before.length, after: after.length, messages: [...after] });
}

function countUsage({ transcript, requests, planned }: LoopState, usage: Usage, model?: string): void {
  transcript.addUsage(usage);
  requests?.charge(usage, model === undefined ? planned!.ids : [model]);
}

/** Reserves what the next request may cost. Throws if a limit ends the run instead. */
function beginRequest({ token, transcript, planned }: LoopState, requests: Requests): Promise<PaidRequest> {
  return requests.begin({ ids: planned!.ids, estimate: estimateUsage(transcript.messages, planned!), token });
}

/** Providers refuse a history that starts with a reply or a result, so it starts with a question, if need be the last. */
function startingWithUser(kept: readonly Message[], before: readonly Message[]): readonly Message[] {
  const first = kept.findIndex(({ role }) => role === 'user');
  if (first >= 0) return kept.slice(first);
  const reply = kept.findIndex(({ role }) => role === 'assistant');
  return [...before.filter(({ role }) => role === 'user').slice(-1), ...(reply < 0 ? [] : kept.slice(reply))];
}

/** Takes one step of the planner. Text that was shown is kept, even when the planner fails or is cut off. */
async function takeTurn(state: LoopState, paid: PaidRequest | undefined): Promise<Step> {
  const { planner, transcript, emit } = state;
  const turn = ++state.turns;
  const ids = new TurnCallIds(state.ids);
  let shown = '';
  let isOver = false;
  const emitTurn = (event: TurnEvent): void => {
    // Text that a planner emits after its turn would belong to no message.
    if (isOver) return;
    if ('text' in event && typeof event.text !== 'string') throw unexpected('event.text', event.text, 'a string');
    if (event.type === 'text') shown += event.text;
    emit(event.type === 'call-planned' ? { ...event, callId: ids.own(event.callId) } : event);
  };
  emit({ type: 'turn-start', turn });
  const end = (message: AssistantMessage): void => {
    isOver = true;
    // Of a planner that does not settle its requests itself.
    paid?.settle(message.usage);
    emit({ type: 'turn-end', turn, message: transcript.addReply(message) });
  };
  try {
    const planned = await stoppable('planner', state, (token) =>
      planner.next(transcript.messages, {
        token,
        turn,
        emit: emitTurn,
        leaveRunning: state.leaveRunning,
        ...(paid && { [PAID]: paid }),
      }),
    );
    const step = ids.ofStep(checkStep(planned));
    end(recordReply(step.message));
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
  }
}

function checkStep(step: Step): Step {
  const { message, calls } = (step ?? {}) as Partial<Step>;
  if (message?.role !== 'assistant' || !isList(message.content) || !isList(calls)) {
    throw new TypeError('planner: `next` must return { message, calls }; create one with `reply` or `callTools`');
  }
  return { message, calls: readCalls(calls) };
}

/**
 * Runs something that can always be stopped immediately: replies are never protected, so any level, drain included,
 * reaches it as an abort. Throws `CancelledError` if it was stopped, at `kill` at the latest; then it is left running
 * and reported by name.
 */
function stoppable<T>(
  name: string,
  state: LoopState,
  execute: (token: CancellationToken) => T | PromiseLike<T>,
): Promise<T> {
  const token = state.token.child({ name, minimumLevel: 'abort' });
  return runBounded<T, T>({
    execute: ({ token: own }) => execute(own),
    token,
    name,
    // Unused: this work cannot register cleanups.
    cleanupTimeoutMs: CLEANUP_MS,
    onCleanupError: () => {},
    onEnd(end) {
      token[Symbol.dispose]();
      if (end.state === 'finished') return end.value;
      if (end.state === 'failed' || end.state === 'refused') throw end.error;
      if (end.state === 'unknown') state.leaveRunning(name, end.late, 0);
      const cause = 'error' in end ? end.error : undefined;
      throw isCancelledError(cause) ? cause : new CancelledError(end.reason, { cause });
    },
  });
}

/** Reads the message so far from a planner's error, which may carry it as `partial`. */
function partialMessage(error: unknown): AssistantMessage | undefined {
  try {
    return recordReply((error as { partial: AssistantMessage }).partial);
  } catch {
    return undefined;
  }
}

/** Runs waves of calls and adds their results to the transcript: when cancelled, the available ones. */
async function runCalls(calls: readonly Call[], { runtime, token, transcript, repeats }: LoopState): Promise<void> {
  const options: ExecuteOptions = repeats === undefined ? { token } : { token, [REFUSED]: repeats.refuse(calls) };
  try {
    const results = await runtime.execute(calls, options);
    for (const [index, result] of results.entries()) {
      transcript.addResult(result);
      repeats?.record(calls[index], result);
    }
  } catch (error) {
    if (isCancelledError(error))
      for (const result of error.partial as readonly CallResult[]) transcript.addResult(result);
    throw error;
  }
}
