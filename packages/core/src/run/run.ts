import { CLEANUP_MS } from '../stop/cleanup.ts';
import type { World } from '../stop/clock.ts';
import { isCancelledError } from '../stop/errors.ts';
import { createTeller } from '../stop/hooks.ts';
import type { Ledger } from '../stop/ledger.ts';
import { type CancelReasonInit, createReason } from '../stop/reason.ts';
import type { CancelReceipt } from '../stop/receipt.ts';
import { CancellationToken, type CancelOptions } from '../stop/token.ts';
import { notStarted, refused } from '../tool/ending.ts';
import type { ExclusiveKeys } from '../tool/exclusive.ts';
import { type CallCancelReceipt, createRuntime, type Runtime } from '../tool/runtime.ts';
import { EventLog } from './event-log.ts';
import { AFTER_THE_END, type RunEvent, type UnstampedEvent } from './events.ts';
import { type LoopState, runLoop } from './loop.ts';
import { type RunInput, type UserMessage, userMessage } from './message.ts';
import type { Outcome } from './outcome.ts';
import type { Planner } from './planner.ts';
import { StopReporter } from './reporter.ts';
import type { AgentParts, RunOptions } from './setup.ts';
import { Steering } from './steering.ts';
import { Transcript } from './transcript.ts';
import { UNDO_MS, type UndoneCall, undoCalls } from './undo.ts';

/** An agent at work on one input. */
export interface Run {
  readonly id: string;
  /** The words of the reply so far. */
  readonly text: string;
  /** Everything that happens, from the start, for any number of readers. None of them can slow the run down. */
  readonly events: AsyncIterable<RunEvent>;
  /** Always resolves. */
  readonly outcome: Promise<Outcome>;
  cancel(reason?: CancelReasonInit, options?: CancelOptions): CancelReceipt;
  /** Stops one call, `now` unless said otherwise; the run goes on. A call that must finish refuses. */
  cancelCall(callId: string, reason?: CancelReasonInit, options?: CancelOptions): CallCancelReceipt;
  /** Takes the completed calls back once the run has ended, at most once: asked again, it answers what was done. */
  undo(): Promise<readonly UndoneCall[]>;
  /** Says something to the run; it is heard at the next boundary, or handed back in the outcome. */
  steer(message: RunInput): { readonly answer: 'accepted' | 'too-late' };
}

interface RunSetup extends RunOptions {
  readonly agent: AgentParts & {
    readonly planner: Planner;
    readonly world: World;
    readonly ledger: Ledger;
    readonly keys: ExclusiveKeys;
  };
  readonly input: RunInput;
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
  readonly #log = new EventLog();
  readonly #reporter = new StopReporter();
  readonly #tellHooks: (event: RunEvent) => void;
  readonly #transcript: Transcript;
  readonly #steering = new Steering();
  readonly #runtime: Runtime;
  readonly #input: UserMessage;
  readonly #startedAt: number;
  readonly #callInputs = new Map<string, unknown>();
  #undone: Promise<readonly UndoneCall[]> | undefined;
  #shown = '';
  #ended = false;

  constructor(setup: RunSetup) {
    const { agent } = setup;
    const { world } = agent;
    this.#setup = setup;
    this.id = setup.id ?? world.createId();
    this.#startedAt = world.clock.now();
    this.#input = userMessage(setup.input);
    this.#transcript = new Transcript(setup.history ?? []);
    this.#tellHooks = createTeller<RunEvent>(agent.hooks, setup.hooks);
    const options = { parent: setup.token, name: agent.name, clock: world.clock };
    this.#token = setup.signal ? CancellationToken.from(setup.signal, options) : new CancellationToken(options);
    this.#runtime = createRuntime({
      ...agent,
      tools: agent.tools ?? [],
      owner: this.id,
      beforeCall: setup.beforeCall,
      hooks: { any: (event) => this.#tell(event) },
    });
    this.#tell({ type: 'run-start', agent: agent.name, input: this.#input });
    this.#watchToken();
    this.outcome = this.#live();
  }

  get text(): string {
    return this.#shown;
  }

  get events(): AsyncIterable<RunEvent> {
    return this.#log;
  }

  cancel(reason: CancelReasonInit = {}, options: CancelOptions = {}): CancelReceipt {
    const { ladder = 'graceful', world } = this.#setup.agent;
    const given = createReason(reason, world.clock.now());
    const receipt = this.#token.cancel(given, { how: ladder, ...options });
    // The accepted one is told by the token itself, as are cancels that come from above.
    if (receipt.answer !== 'accepted') this.#tell({ type: 'cancel-request', answer: receipt.answer, reason: given });
    return receipt;
  }

  cancelCall(callId: string, reason?: CancelReasonInit, options?: CancelOptions): CallCancelReceipt {
    return this.#runtime.cancelCall(callId, reason, options);
  }

  steer(message: RunInput): { answer: 'accepted' | 'too-late' } {
    return { answer: this.#steering.add(userMessage(message)) ? 'accepted' : 'too-late' };
  }

  async undo(): Promise<readonly UndoneCall[]> {
    await this.outcome;
    return this.#undo();
  }

  #watchToken(): void {
    let first = true;
    this.#token.onCancel((level, reason) => {
      if (first) this.#tell({ type: 'cancel-request', answer: 'accepted', reason });
      first = false;
      this.#tell({ type: 'level-change', level, reason });
    });
    const { deadlineMs } = this.#setup.agent.budgets ?? {};
    if (deadlineMs !== undefined) {
      this.#token.cancelAfter(
        deadlineMs,
        { kind: 'deadline', message: `the run took longer than ${deadlineMs} ms` },
        { how: 'now' },
      );
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
      cleanupMs: agent.cleanupMs ?? CLEANUP_MS,
      tell: (event) => this.#tell(event),
      turns: 0,
    };
    this.#transcript.addUser(this.#input);
    const end: { failed?: unknown; complete: boolean } = { complete: false };
    try {
      // Start in a later microtask: whoever called `run` gets to hold it, and to cancel it, before it does anything.
      await Promise.resolve();
      end.complete = await runLoop(state);
    } catch (error) {
      if (!this.#token.isCancelled || !isCancelledError(error)) {
        end.failed = error;
        end.complete = this.#token.isCancelled;
      }
    }
    this.#closeCalls(end.failed);
    if (this.#token.isCancelled && this.#token.undo) await this.#undo();
    return this.#settle(state.turns, end);
  }

  #closeCalls(error: unknown): void {
    const close = (call: { id: string; tool: string }) => {
      const ended = { ...call, input: undefined };
      return this.#token.isCancelled ? notStarted(ended, this.#token) : refused(ended, this.#token, error);
    };
    this.#transcript.close((call) => {
      const result = close(call);
      this.#tell({ type: 'call-end', result });
      return result;
    });
  }

  #undo(): Promise<readonly UndoneCall[]> {
    this.#undone ??= undoCalls({
      calls: this.#transcript.calls,
      inputs: this.#callInputs,
      tools: this.#runtime.tools,
      token: this.#token,
      boundMs: this.#setup.agent.undoMs ?? UNDO_MS,
      beforeUndo: this.#setup.beforeUndo,
      tell: (event) => this.#tell(event),
    });
    return this.#undone;
  }

  /** Decides how the run ended, and ends it, in one step: a cancel comes either before this or too late. */
  #settle(turns: number, end: { failed?: unknown; complete: boolean }): Outcome {
    const { agent } = this.#setup;
    const endedAt = agent.world.clock.now();
    const base = {
      runId: this.id,
      agent: agent.name,
      text: this.#transcript.text,
      messages: this.#transcript.messages,
      calls: this.#transcript.calls,
      usage: this.#transcript.usage,
      turns,
      undelivered: this.#steering.close(),
      startedAt: this.#startedAt,
      endedAt,
    };
    const failure = 'failed' in end ? { error: end.failed } : undefined;
    const { reason } = this.#token;
    const outcome: Outcome =
      reason !== undefined
        ? {
            ...base,
            status: 'cancelled',
            reason,
            stop: this.#reporter.finish(endedAt),
            complete: end.complete,
            ...failure,
          }
        : failure
          ? { ...base, status: 'failed', ...failure }
          : { ...base, status: 'success' };
    Object.freeze(outcome);
    this.#token[Symbol.dispose]();
    this.#tell({ type: 'run-end', outcome });
    this.#ended = true;
    this.#log.close();
    return outcome;
  }

  /** The run's gate: stamps what happens and tells everybody. After the end only hooks hear, and only of late things. */
  #tell(event: UnstampedEvent): void {
    const at = 'at' in event && typeof event.at === 'number' ? event.at : this.#setup.agent.world.clock.now();
    const stamped = { ...event, runId: this.id, at } as RunEvent;
    if (this.#ended) {
      if (AFTER_THE_END.has(stamped.type)) this.#tellHooks(stamped);
      return;
    }
    if (event.type === 'turn-start') this.#shown = '';
    if (event.type === 'text') this.#shown += event.text;
    if (event.type === 'call-start') this.#callInputs.set(event.callId, event.input);
    this.#reporter.observe(stamped);
    this.#log.push(stamped);
    this.#tellHooks(stamped);
  }
}
