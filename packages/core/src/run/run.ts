import { findLateEnd } from '../stop/bounded/bounded.ts';
import { enterInLedger, type Ledger } from '../stop/bounded/ledger.ts';
import type { World } from '../stop/clock.ts';
import { isCancelledError } from '../stop/errors.ts';
import { createHookDispatcher } from '../stop/hooks.ts';
import { emitStopEvents } from '../stop/stop-events.ts';
import { type CancelReasonLike, createReason } from '../stop/token/reason.ts';
import { type CancelOptions, type CancelReceipt, readCancelOptions } from '../stop/token/receipt.ts';
import { tokenFor } from '../stop/token/source.ts';
import type { CancellationToken } from '../stop/token/token.ts';
import type { Approve } from '../tool/call/call.ts';
import { notStarted, refused } from '../tool/call/ending.ts';
import type { ExclusiveKeys } from '../tool/call/exclusive.ts';
import type { CallCancelReceipt } from '../tool/call/live-call.ts';
import { NESTED, type NestedRun, type UndoStep } from '../tool/call/nested.ts';
import { buildRuntime, type Runtime } from '../tool/runtime.ts';
import type { Tool } from '../tool/tool.ts';
import { overspent } from './budget.ts';
import { RunGate } from './gate.ts';
import { CallIds } from './history/call-ids.ts';
import { readInput } from './history/given-messages.ts';
import type { RunInput, Usage, UserMessage } from './history/message.ts';
import { Transcript } from './history/transcript.ts';
import { type LoopState, runLoop } from './loop.ts';
import type { Planner } from './reply/planner.ts';
import type { RunEvent } from './report/events.ts';
import { type Leftover, Leftovers } from './report/leftovers.ts';
import type { Outcome } from './report/outcome.ts';
import type { StopReport } from './report/report.ts';
import { type AgentParts, RESUMED, type RunOptions } from './setup.ts';
import { Steering, type SteerOptions, type SteerReceipt } from './steering.ts';
import { UNDO_MS, type UndoneCall, type UndoOptions, undoCalls, undoSteps, undoWhole, withoutUndo } from './undo.ts';

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

interface RunSetup extends RunOptions {
  readonly agent: AgentParts & {
    readonly planner: Planner;
    readonly tools: readonly Tool[];
    readonly world: World;
    readonly ledger: Ledger;
    readonly keys: ExclusiveKeys;
  };
  readonly input: UserMessage;
}

/** Starts a run. */
export function startRun(setup: RunSetup): Run {
  return new AgentRun(setup);
}

class AgentRun implements Run {
  readonly id: string;
  readonly outcome: Promise<Outcome>;
  readonly #setup: RunSetup;
  readonly #token: CancellationToken;
  readonly #gate: RunGate;
  readonly #transcript: Transcript;
  readonly #keys: ExclusiveKeys;
  readonly #steering = new Steering();
  readonly #leftovers: Leftovers;
  readonly #runtime: Runtime;
  readonly #startedAt: number;
  readonly #workId: string;
  #undone: Promise<readonly UndoneCall[]> | undefined;

  constructor(setup: RunSetup) {
    const { agent, context } = setup;
    const { world } = agent;
    this.#setup = setup;
    this.id = setup.id ?? world.createId();
    const dispatch = createHookDispatcher<RunEvent>(agent.hooks, setup.hooks);
    const tellHooks = (event: RunEvent): void => dispatch(event, { context });
    this.#gate = new RunGate({ runId: this.id, clock: world.clock, tellHooks });
    this.#startedAt = this.#gate.now();
    this.#token = tokenFor(setup, { name: agent.name, clock: world.clock });
    const parent = setup[NESTED];
    this.#workId = setup.workId ?? parent?.workId ?? this.id;
    this.#keys = parent?.keys ?? agent.keys;
    this.#transcript = new Transcript(parent?.addUsage);
    this.#leftovers = new Leftovers(world.clock);
    this.#runtime = buildRuntime({
      ...agent,
      approve: agent.approve ?? (parent?.approve as Approve | undefined),
      context,
      workId: this.#workId,
      keys: this.#keys,
      [NESTED]: {
        addUsage: (usage) => this.#addUsage(usage),
        undoes: () => this.#token.undo,
        leaveRunning: this.#leftovers.add,
        ...(parent?.path && { path: parent.path }),
      },
      owner: this.id,
      emitsCancelEvents: false,
      beforeCall: setup.beforeCall,
      redact: setup.redact ?? parent?.redact,
      hooks: { any: (event) => this.#gate.tell(event) },
    });
    this.#gate.tell({ type: 'run-start', agent: agent.name, ...(!setup[RESUMED] && { input: setup.input }) });
    this.#watchToken();
    this.outcome = this.#live();
  }

  get text(): string {
    return this.#gate.text;
  }

  get events(): AsyncIterable<RunEvent> {
    return this.#gate.log;
  }

  cancel(reason: CancelReasonLike = {}, options: CancelOptions = {}): CancelReceipt {
    const { stopMode = 'graceful', world } = this.#setup.agent;
    const given = createReason(reason, world.clock.now());
    const receipt = this.#token.cancel(given, readCancelOptions(options, stopMode));
    // The token itself reports the accepted cancel, and cancels inherited from its parent. Don't report a cancel that
    // changed nothing to the hook that requested it: a hook that cancels on every cancel event would never end.
    if (receipt.result === 'escalated' || (receipt.result !== 'accepted' && !this.#gate.isTelling))
      this.#gate.tell({ type: 'cancel-requested', receipt: receipt.result, reason: given });
    return receipt;
  }

  cancelCall(callId: string, reason?: CancelReasonLike, options?: CancelOptions): CallCancelReceipt {
    return this.#runtime.cancelCall(callId, reason, options);
  }

  steer(given: RunInput, { token }: SteerOptions = {}): SteerReceipt {
    const message = readInput(given, 'message');
    return { result: this.#steering.add(message, token) ? 'accepted' : 'too-late', message };
  }

  async undo(): Promise<readonly UndoneCall[]> {
    await this.outcome;
    return this.#undo();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { stopMode = 'graceful' } = this.#setup.agent;
    // Not `cancel`, which reports a cancel that comes too late.
    this.#token.cancel({ kind: 'parent', message: 'its owner ended' }, { mode: stopMode });
    await this.outcome;
  }

  #watchToken(): void {
    emitStopEvents(this.#token, (event) => this.#gate.tell(event));
    const { maxDurationMs } = this.#setup.agent.budgets ?? {};
    if (maxDurationMs !== undefined) {
      const reason = { kind: 'deadline', message: `the run took longer than ${maxDurationMs} ms` } as const;
      this.#token.cancelAfter(maxDurationMs, reason, { mode: 'now' });
    }
  }

  async #live(): Promise<Outcome> {
    const { agent } = this.#setup;
    const state: LoopState = {
      token: this.#token,
      planner: agent.planner,
      runtime: this.#runtime,
      transcript: this.#transcript,
      steering: this.#steering,
      budgets: agent.budgets ?? {},
      compact: agent.compact,
      beforeTurn: this.#setup.beforeTurn,
      tell: (event) => this.#gate.tell(event),
      leaveRunning: this.#leftovers.add,
      ids: new CallIds(),
      turns: 0,
    };
    const end: { failed?: unknown; isComplete: boolean } = { isComplete: false };
    try {
      // Start in a later microtask: the caller gets the run, and can cancel it, before it does anything.
      await Promise.resolve();
      this.#transcript.begin(this.#setup.history ?? [], this.#setup[RESUMED] ?? this.#setup.input);
      state.ids.reserve(this.#transcript.messages);
      end.isComplete = await runLoop(state, this.#setup[RESUMED]);
    } catch (error) {
      if (!this.#token.isCancelled || !isCancelledError(error)) {
        end.failed = error;
        end.isComplete = this.#token.isCancelled;
      }
    }
    try {
      this.#closeCalls(end.failed);
      await this.#leftovers.settle();
      if (this.#token.undo && !this.#setup[NESTED]?.undoes?.()) await this.#undo();
    } catch (error) {
      // A part of the run failed, for example its clock. The run must end anyway.
      end.failed ??= error;
    }
    return this.#settle(state.turns, end);
  }

  #closeCalls(error: unknown): void {
    const close = (call: { id: string; tool: string }) => {
      const ended = { ...call, input: undefined };
      return this.#token.isCancelled
        ? notStarted(ended, this.#token)
        : refused(ended, this.#token, error ?? new Error('its planner did not ask for it to run'));
    };
    this.#transcript.close((call) => {
      const result = close(call);
      this.#gate.tell({ type: 'call-end', result });
      return result;
    });
  }

  /** This run as seen by the call it runs in. */
  get [NESTED](): NestedRun {
    const steps = (): readonly UndoStep[] =>
      this.#undone === undefined ? undoSteps(this.#undoing) : [{ order: 0, undo: () => undoWhole(this) }];
    return { outcome: this.outcome, undoSteps: steps, withoutUndo: () => withoutUndo(this.#undoing) };
  }

  /** Usage of nested runs counts for this run. When it exceeds its budget it stops, and they stop with it. */
  #addUsage(usage: Usage): void {
    this.#transcript.addUsage(usage);
    const reason = overspent(this.#setup.agent.budgets ?? {}, { turn: 0, calls: 0, transcript: this.#transcript });
    if (reason !== undefined) this.#token.cancel(reason, { mode: 'now' });
  }

  #undo(): Promise<readonly UndoneCall[]> {
    return (this.#undone ??= undoCalls(this.#undoing));
  }

  #report(endedAt: number): StopReport {
    return this.#gate.reporter.finish(endedAt, this.#token.undo ? withoutUndo(this.#undoing) : []);
  }

  get #undoing(): UndoOptions {
    return {
      calls: this.#transcript.calls,
      keys: this.#keys,
      context: this.#setup.context,
      workId: this.#workId,
      leaveRunning: this.#leftovers.add,
      tools: this.#runtime.tools,
      token: this.#token,
      timeoutMs: this.#setup.agent.undoTimeoutMs ?? UNDO_MS,
      beforeUndo: this.#setup.beforeUndo,
      tell: (event, within) => {
        this.#gate.tell(event);
        within.emit(this.#gate.stamp(event));
      },
    };
  }

  /** Work that still runs when the run settles is reported by name. Its late end changes only the ledger. */
  #abandon({ name, ended }: Leftover, abandonedAt: number): void {
    const { ledger, world } = this.#setup.agent;
    const late = findLateEnd(ended, this.#gate);
    const reason = this.#token.reason ?? createReason({ kind: 'parent', message: 'its run ended' }, abandonedAt);
    enterInLedger(ledger, { key: `${this.id}/${name}/${world.createId()}`, name, reason, abandonedAt }, { late });
    this.#gate.tell({ type: 'work-abandoned', name });
  }

  /** Decides how the run ended, and ends it, in one step: a cancel comes either before this or too late. */
  #settle(turns: number, end: { failed?: unknown; isComplete: boolean }): Outcome {
    const { agent } = this.#setup;
    const endedAt = this.#gate.now();
    for (const left of this.#leftovers.running) this.#abandon(left, endedAt);
    const base = {
      runId: this.id,
      agent: agent.name,
      text: this.#transcript.text,
      messages: Object.freeze([...this.#transcript.messages]),
      calls: Object.freeze([...this.#transcript.calls]),
      usage: this.#transcript.usage,
      turns,
      undelivered: this.#steering.close(),
      startedAt: this.#startedAt,
      endedAt,
    };
    const { reason } = this.#token;
    const stopped = reason && { reason, stop: this.#report(endedAt), isComplete: end.isComplete };
    const status = stopped ? 'cancelled' : 'failed' in end ? 'failed' : 'success';
    const failure = 'failed' in end && { error: end.failed };
    const outcome = Object.freeze({ ...base, status, ...stopped, ...failure }) as Outcome;
    this.#token[Symbol.dispose]();
    this.#gate.tell({ type: 'run-end', outcome });
    return outcome;
  }
}
