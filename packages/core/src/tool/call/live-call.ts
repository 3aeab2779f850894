import type { BoundedResult, BoundedWork, WhenCancelled, WorkContext } from '../../stop/bounded/bounded.ts';
import type { CleanupError } from '../../stop/bounded/cleanup.ts';
import { type LateResult, recordAbandoned } from '../../stop/bounded/late-results.ts';
import { unexpected } from '../../stop/settings.ts';
import type { StopLevel } from '../../stop/token/level.ts';
import type { CancelReason, CancelReasonLike } from '../../stop/token/reason.ts';
import type { CancelReceipt, WholeCancelOptions } from '../../stop/token/receipt.ts';
import { shield } from '../../stop/token/shield.ts';
import type { CancellationToken } from '../../stop/token/token.ts';
import { normalizeResult } from '../normalize.ts';
import { type Redact, redactResult } from '../redact.ts';
import type { CallResult, ToolResult } from '../result.ts';
import type { CallPreview, RawResult, Tool, ToolContext } from '../tool.ts';
import type { PlannedCall } from '../waves.ts';
import type { Call, CallScope } from './call.ts';
import {
  type Ending,
  notStarted,
  refused,
  type StartedCall,
  type StartedResult,
  toEnding,
  withoutEffect,
} from './ending.ts';
import { FIND_OUT_MS, look } from './find-out.ts';
import { NESTED, type NestedContext, type NestedRun, type WithNested } from './nested.ts';
import { saveUndoData } from './undo-data.ts';

/** The receipt of a cancel of one call. */
export type CallCancelReceipt = CancelReceipt | { readonly result: 'refused'; readonly message: string };

/** What a call starts with: a valid input, and the keys it holds. */
export interface Prepared {
  readonly input: unknown;
  readonly keys: readonly string[];
  /** The preview shown to the user who approved it. */
  readonly shown?: CallPreview | undefined;
  /** Returns the result of a call whose tool has no code. */
  readonly answer?: ((context: WorkContext) => RawResult | Promise<RawResult>) | undefined;
}

type Writable<T> = { -readonly [Field in keyof T]: T[Field] };

/** One call of an execution, from the request to its result. */
export class LiveCall implements BoundedWork<RawResult, CallResult | Promise<CallResult>>, PlannedCall {
  readonly call: Call;
  readonly tool: Tool;
  readonly id: string;
  readonly name: string;
  readonly dependsOn: readonly string[] | undefined;
  readonly exclusive: readonly string[] | undefined;
  readonly token: CancellationToken;
  readonly whenCancelled: WhenCancelled;
  readonly timeoutMs: number | undefined;
  readonly cleanupTimeoutMs: number;
  readonly nested: boolean;
  /** Set once, when it has ended. */
  result: CallResult | undefined;
  readonly #scope: CallScope;
  /** The call's own token. Before the call starts, it exists only if the call has to wait or is withdrawn. */
  #own: CancellationToken | undefined;
  #prepared: Prepared | undefined;
  #release: (() => void) | undefined;
  #startedAt: number | undefined;
  #partial: ToolResult | undefined;
  #isOver = false;
  #run: NestedRun | undefined;
  #effectKey: string | undefined;
  #killedAt: number | undefined;

  constructor(call: Call, tool: Tool, scope: CallScope) {
    this.call = call;
    this.tool = tool;
    this.#scope = scope;
    ({ id: this.id, tool: this.name, dependsOn: this.dependsOn, exclusive: this.exclusive } = call);
    ({ whenCancelled: this.whenCancelled, timeoutMs: this.timeoutMs } = tool);
    ({ token: this.token, cleanupTimeoutMs: this.cleanupTimeoutMs } = scope);
    this.nested = (tool as WithNested<Tool, unknown>)[NESTED] !== undefined;
  }

  /** Stops only this call. One that has not started never will; one that must finish and has started refuses. */
  cancel(reason: CancelReasonLike, options: WholeCancelOptions): CallCancelReceipt {
    if (this.#startedAt !== undefined && this.whenCancelled === 'finish') {
      const { name, timeoutMs } = this.tool;
      return { result: 'refused', message: `${name} must finish; it ends within ${timeoutMs} ms` };
    }
    return this.waiting.cancel(reason, options);
  }

  get effectKey(): string {
    return (this.#effectKey ??= this.call.effectKey ?? this.#scope.createEffectKey());
  }

  /** The call's own token, for what has to be awaited before it starts. */
  get waiting(): CancellationToken {
    return (this.#own ??= this.token.child(this.name));
  }

  /** The token that prevents it from starting, if any. */
  get stopped(): CancellationToken | undefined {
    return this.#own?.isCancelled ? this.#own : this.token.isCancelled ? this.token : undefined;
  }

  /** Call this in the same tick as the last check of `stopped`: after that it runs as work. */
  ready(prepared: Prepared, release?: () => void): this {
    this.#prepared = prepared;
    this.#release = release;
    this.#own?.[Symbol.dispose]();
    return this;
  }

  /** Reports by name something that the call started and that has not ended with it. */
  leaveRunning(what: string, ended: PromiseLike<unknown>, waitMs?: number): void {
    this.#scope.parent?.leaveRunning(`${what} of ${this.name} (${this.call.id})`, ended, waitMs);
  }

  /** Ends a call that never started. */
  endUnstarted(error?: unknown): CallResult {
    const { stopped } = this;
    this.#close();
    return stopped === undefined ? refused(this.call, this.token, error) : notStarted(this.call, stopped, this.tool);
  }

  inner(): Promise<unknown> | undefined {
    return this.#run?.outcome;
  }

  onStart(own: CancellationToken): void {
    this.#own = own;
    this.#startedAt = this.#now();
    if (this.tool.findOut !== undefined) own.onCancel((level) => level === 'kill' && (this.#killedAt = this.#now()));
    this.#scope.emit?.({ type: 'call-start', at: this.#startedAt, ...this.#about(), input: this.#prepared!.input });
  }

  execute(context: WorkContext): RawResult | Promise<RawResult> {
    // Extended, not copied: the context belongs to this call alone.
    const grown = context as Writable<WithNested<ToolContext, NestedContext>>;
    grown.callId = this.call.id;
    grown.workId = this.#scope.workId;
    grown.context = this.#scope.context;
    grown.effectKey = this.effectKey;
    grown.approvedPreview = this.#prepared!.shown;
    grown.update = (shown) => this.#update(shown);
    grown.emitNested = (event) => this.#nest(event);
    if (this.nested) grown[NESTED] = this.#nestedContext();
    const { input, answer } = this.#prepared!;
    return answer === undefined ? this.tool.execute(input, grown) : answer(grown);
  }

  onWait(level: StopLevel, reason: CancelReason): void {
    const until = this.#startedAt! + this.timeoutMs!;
    this.#scope.emit?.({ type: 'call-waiting', at: this.#now(), ...this.#about(), level, reason, until });
  }

  onCleanupError(error: CleanupError, running?: Promise<unknown>): void {
    if (running !== undefined) this.leaveRunning('cleanup', running, 0);
    this.#scope.emit?.({ type: 'cleanup-error', at: this.#now(), ...this.#about(), error });
  }

  /** Closes the call: nothing it does after that is shown. */
  onEnd(end: BoundedResult<RawResult>): CallResult | Promise<CallResult> {
    if (end.state !== 'unknown') this.#release?.();
    if (end.state === 'not-started') return this.endUnstarted();
    if (end.state === 'refused') return this.endUnstarted(end.error);
    this.#close();
    const endedAt = this.#now();
    const about = { callId: this.call.id, tool: this.name, startedAt: this.#startedAt!, endedAt };
    const { redact } = this.#scope;
    const started = { about, effects: this.tool.effects, nested: this.nested, shown: this.#partial, redact };
    const ending = toEnding(end, started);
    if (ending.result.state !== 'unknown' || this.tool.findOut === undefined) return this.#conclude(end, ending);
    return this.#findOut(end, { ...started, ending });
  }

  #conclude(end: StartedResult, { result, wholeDetails }: Ending): CallResult {
    if (this.tool.undo !== undefined) {
      const { effectKey } = this;
      saveUndoData(result, { ...this.#prepared!, effectKey, details: wholeDetails, nested: this.#run });
    }
    if (end.state === 'unknown') this.#abandon(end, result);
    this.#scope.emit?.({ type: 'call-end', at: result.foundOut?.at ?? result.endedAt, result });
    return result;
  }

  /** Asks the tool how a call ended whose end is unknown, in what is left of the time for cleanups. */
  async #findOut(end: StartedResult, started: StartedCall & { readonly ending: Ending }): Promise<CallResult> {
    const { ending, about } = started;
    const { context, workId, cleanupTimeoutMs } = this.#scope;
    const timeoutMs = Math.min(FIND_OUT_MS, cleanupTimeoutMs - (this.#now() - (this.#killedAt ?? this.#now())));
    if (timeoutMs <= 0) return this.#conclude(end, ending);
    let isRunning = end.state === 'unknown';
    const returned = (): unknown => (isRunning = false);
    if (end.state === 'unknown') end.late.then(returned, returned);
    const token = shield(this.token, { timeoutMs, name: `finding out about ${this.name}` });
    const known = { callId: this.id, effectKey: this.effectKey, workId, context, startedAt: this.#startedAt! };
    const finding = await look({
      tool: this.tool,
      input: this.#prepared!.input,
      about: known,
      token,
      leaveRunning: (what, looking) => this.leaveRunning(what, looking, 0),
    });
    token[Symbol.dispose]();
    // Code that still runs may still take effect.
    const isUnknown = finding.found === 'unknown' || (finding.found === 'not-started' && isRunning);
    if (isUnknown) return this.#conclude(end, ending);
    if (end.state === 'unknown' && isRunning) this.leaveRunning('code', end.late, 0);
    const found =
      finding.found === 'finished'
        ? toEnding({ state: 'finished', value: finding.result }, started)
        : { result: withoutEffect(about), wholeDetails: undefined };
    const result = Object.freeze({ ...found.result, foundOut: { at: this.#now() } });
    return this.#conclude(end, { ...found, result });
  }

  /** The context of a run inside this call. The keys of the call are free again when the run's are. */
  #nestedContext(): NestedContext {
    const keys = this.#scope.keys.lend(this.#prepared!.keys);
    const release = this.#release;
    if (release !== undefined) {
      this.#release = () => {
        const { returned } = keys;
        if (returned === undefined) release();
        else returned.then(release, release);
      };
    }
    const { parent, redact, approve, answer } = this.#scope;
    const workId = `${this.#scope.workId ?? ''}/${this.call.id}`;
    const path = [...(parent?.path ?? []), this.#about()];
    return { ...parent, workId, keys, redact, approve, answer, path, enter: (run) => (this.#run = run) };
  }

  #close(): void {
    this.#isOver = true;
    this.#own?.[Symbol.dispose]();
    this.#scope.forget(this.call.id);
  }

  /** An abandoned call keeps its keys until it really ends, and its late end changes only the late results. */
  #abandon({ reason, late }: { reason: CancelReason; late: Promise<LateResult> }, result: CallResult): void {
    const { lateResults, lateKey, emit, redact } = this.#scope;
    const work = { key: lateKey(this.call.id), name: this.name, reason, abandonedAt: result.endedAt };
    const returned = late.then((end) => {
      this.#release?.();
      return lateResult(end, redact);
    });
    const onReturn = (end: LateResult): void =>
      emit?.({ type: 'call-ended-late', at: end.at, ...this.#about(), late: end });
    recordAbandoned(lateResults, work, { late: returned, onReturn });
  }

  #update(shown: RawResult): void {
    if (this.#isOver) return;
    const partial = redactResult(normalizeResult(shown), this.#scope.redact);
    this.#partial = partial;
    this.#scope.emit?.({ type: 'call-update', at: this.#now(), ...this.#about(), partial });
  }

  #nest(event: { readonly type: string }): void {
    if (typeof event !== 'object' || event === null || typeof event.type !== 'string') {
      throw unexpected('event', event, 'an event of a run inside the call');
    }
    if (!this.#isOver) this.#scope.emit?.({ type: 'call-event', at: this.#now(), ...this.#about(), event });
  }

  #about(): { callId: string; tool: string } {
    return { callId: this.call.id, tool: this.name };
  }

  #now(): number {
    return this.token.clock.now();
  }
}

function lateResult(end: LateResult, redact: Redact | undefined): LateResult {
  return end.state === 'finished' ? { ...end, value: redactResult(normalizeResult(end.value), redact) } : end;
}
