import { isCancelledError } from '../stop/errors.ts';
import { emitStopEvents } from '../stop/stop-events.ts';
import { LONGEST_LADDER } from '../stop/token/level.ts';
import { type CancelReasonLike, createReason } from '../stop/token/reason.ts';
import { type CancelOptions, type CancelReceipt, readCancelOptions } from '../stop/token/receipt.ts';
import type { CallCancelReceipt } from '../tool/call/live-call.ts';
import { NESTED, type NestedRun, type UndoStep } from '../tool/call/nested.ts';
import { CallIds } from './history/call-ids.ts';
import { readInput } from './history/given-messages.ts';
import type { RunInput } from './history/message.ts';
import { type LoopState, runLoop } from './loop.ts';
import { createParts, type RunParts, type RunSetup } from './parts.ts';
import { Repeats } from './repeats.ts';
import { plannedRequests } from './reply/planner.ts';
import type { RunEvent } from './report/events.ts';
import type { Outcome } from './report/outcome.ts';
import { closeCalls, type LoopEnd, settle } from './settle.ts';
import { RESUMED } from './setup.ts';
import type { SteerOptions, SteerReceipt } from './steering.ts';
import { type UndoneCall, undoCalls, undoSteps, undoWhole, withoutUndo } from './undo.ts';

/** An agent working on one input. Disposing it (`await using`) cancels it, unless it has ended, and waits for its outcome. */
export interface Run extends AsyncDisposable {
  readonly id: string;
  /** The text of the reply so far. */
  readonly text: string;
  /** All events from the start, for any number of readers. Readers cannot slow the run down. */
  readonly events: AsyncIterable<RunEvent>;
  /** How the run ended: `success`, `failed` or `cancelled`. Always resolves, never rejects. */
  readonly outcome: Promise<Outcome>;
  /** Stops the run, as hard as `mode` says, and returns what that did. Cancel again to stop harder. */
  cancel(reason?: CancelReasonLike, options?: CancelOptions): CancelReceipt;
  /** Stops one call, by default with `now`; the run continues. A call that has started and must finish refuses. */
  cancelCall(callId: string, reason?: CancelReasonLike, options?: CancelOptions): CallCancelReceipt;
  /** Undoes the completed calls once the run has ended. Runs at most once: later calls return the same result. */
  undo(): Promise<readonly UndoneCall[]>;
  /** Sends a message to the run. The run reads it at the next boundary, or returns it in the outcome. */
  steer(message: RunInput, options?: SteerOptions): SteerReceipt;
}

/** Starts a run. */
export function startRun(setup: RunSetup): Run {
  return new AgentRun(createParts(setup));
}

class AgentRun implements Run {
  readonly id: string;
  readonly outcome: Promise<Outcome>;
  readonly #parts: RunParts;
  #undone: Promise<readonly UndoneCall[]> | undefined;

  constructor(parts: RunParts) {
    const { id, setup, gate } = parts;
    this.#parts = parts;
    this.id = id;
    gate.emit({ type: 'run-start', agent: setup.agent.name, ...(!setup[RESUMED]?.left && { input: setup.input }) });
    this.#watchToken();
    this.outcome = this.#live();
  }

  get text(): string {
    return this.#parts.gate.text;
  }

  get events(): AsyncIterable<RunEvent> {
    return this.#parts.gate.log;
  }

  cancel(reason: CancelReasonLike = {}, options: CancelOptions = {}): CancelReceipt {
    const { setup, gate, token } = this.#parts;
    const { stopMode = 'graceful', world } = setup.agent;
    const given = createReason(reason, world.clock.now());
    const receipt = token.cancel(given, readCancelOptions(options, stopMode));
    // The token itself reports the accepted cancel, and cancels inherited from its parent. Don't report a cancel that
    // changed nothing to the hook that requested it: a hook that cancels on every cancel event would never end.
    if (receipt.result === 'escalated' || (receipt.result !== 'accepted' && !gate.isNotifying))
      gate.emit({ type: 'cancel-requested', receipt: receipt.result, reason: given });
    // A hook may have cancelled harder since: ask for nothing more, to read what is true now.
    const now = token.cancel(given, { mode: LONGEST_LADDER });
    return now.result === 'too-late' ? receipt : { ...now, result: receipt.result };
  }

  cancelCall(callId: string, reason?: CancelReasonLike, options?: CancelOptions): CallCancelReceipt {
    return this.#parts.runtime.cancelCall(callId, reason, options);
  }

  steer(given: RunInput, { token }: SteerOptions = {}): SteerReceipt {
    const message = readInput(given, 'message');
    return { result: this.#parts.steering.add(message, token) ? 'accepted' : 'too-late', message };
  }

  async undo(): Promise<readonly UndoneCall[]> {
    await this.outcome;
    return this.#undo();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { setup, token } = this.#parts;
    // Not `cancel`, which reports a cancel that arrives too late.
    token.cancel({ kind: 'parent', message: 'its owner ended' }, { mode: setup.agent.stopMode ?? 'graceful' });
    await this.outcome;
  }

  /** This run as seen by the call it runs in. */
  get [NESTED](): NestedRun {
    const { undoing } = this.#parts;
    const steps = (): readonly UndoStep[] =>
      this.#undone === undefined ? undoSteps(undoing) : [{ order: 0, undo: () => undoWhole(this) }];
    return { outcome: this.outcome, undoSteps: steps, withoutUndo: () => withoutUndo(undoing) };
  }

  #watchToken(): void {
    const { setup, gate, token } = this.#parts;
    emitStopEvents(token, (event) => gate.emit(event));
    const { maxDurationMs } = setup.agent.budgets ?? {};
    if (maxDurationMs !== undefined) {
      const reason = { kind: 'deadline', message: `the run took longer than ${maxDurationMs} ms` } as const;
      token.cancelAfter(maxDurationMs, reason, { mode: 'now' });
    }
  }

  async #live(): Promise<Outcome> {
    const { setup, token, runtime, transcript, steering, gate, leftovers, requests, raise } = this.#parts;
    const { planner, budgets = {}, compact } = setup.agent;
    const shared = { token, planner, runtime, transcript, steering, budgets, compact, requests, raise };
    const state: LoopState = {
      ...shared,
      before: setup[RESUMED],
      beforeTurn: setup.beforeTurn ?? setup[NESTED]?.recorder?.beforeTurn,
      repeats: budgets.repeats === undefined ? undefined : new Repeats(budgets.repeats, runtime.tools),
      emit: (event) => gate.emit(event),
      leaveRunning: leftovers.add,
      ids: new CallIds(),
      planned: requests && plannedRequests(planner),
      turns: 0,
    };
    const end: LoopEnd = { isComplete: false };
    try {
      // Start in a later microtask: the caller gets the run, and can cancel it, before it does anything.
      await Promise.resolve();
      transcript.begin(setup.history ?? [], setup[RESUMED]?.left ?? setup.input);
      state.ids.reserve(transcript.messages);
      state.repeats?.read(transcript.messages);
      end.isComplete = await runLoop(state, setup[RESUMED]?.left);
    } catch (error) {
      if (!token.isCancelled || !isCancelledError(error)) {
        end.failed = error;
        end.isComplete = token.isCancelled;
      }
    }
    try {
      closeCalls(this.#parts, end.failed);
      await leftovers.settle(token);
      if (token.undo && !setup[NESTED]?.undoes?.()) await this.#undo();
    } catch (error) {
      // A part of the run failed, for example its clock. The run must end anyway.
      end.failed ??= error;
    }
    return settle(this.#parts, state.turns, end);
  }

  #undo(): Promise<readonly UndoneCall[]> {
    return (this.#undone ??= undoCalls(this.#parts.undoing));
  }
}
