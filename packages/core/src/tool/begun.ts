import type { BoundedEnd, BoundedWork, WhenCancelled, WorkContext } from '../stop/bounded.ts';
import type { CleanupError } from '../stop/cleanup.ts';
import { enterInLedger, type LateEnd } from '../stop/ledger.ts';
import type { StopLevel } from '../stop/level.ts';
import type { CancelReason } from '../stop/reason.ts';
import type { CancellationToken } from '../stop/token.ts';
import { boundResult } from './bounds.ts';
import type { Call, CallScope, LiveCall, ReadyCall } from './call.ts';
import { notStarted, resultOf } from './ending.ts';
import type { CallResult, ToolResult } from './result.ts';
import { type RawResult, resultFrom, type Tool, type ToolContext } from './tool.ts';

/** A call that has begun: what it shows on the way, and its one result. */
export class BegunCall implements BoundedWork<RawResult, CallResult>, LiveCall {
  readonly tool: Tool;
  readonly token: CancellationToken;
  readonly #call: Call;
  readonly #input: unknown;
  readonly #release: (() => void) | undefined;
  readonly #scope: CallScope;
  own: CancellationToken | undefined;
  #startedAt = 0;
  #partial: ToolResult | undefined;
  #isOver = false;

  constructor({ call, tool, input, release }: ReadyCall, scope: CallScope) {
    this.tool = tool;
    this.token = scope.token;
    this.#call = call;
    this.#input = input;
    this.#release = release;
    this.#scope = scope;
  }

  get name(): string {
    return this.tool.name;
  }

  get whenCancelled(): WhenCancelled {
    return this.tool.whenCancelled;
  }

  get timeoutMs(): number | undefined {
    return this.tool.timeoutMs;
  }

  get nested(): boolean {
    return this.tool.nested;
  }

  get cleanupMs(): number {
    return this.#scope.cleanupMs;
  }

  onStart(own: CancellationToken): void {
    this.own = own;
    this.#startedAt = this.#now();
    this.#scope.live.set(this.#call.id, this);
    this.#scope.tell?.({ type: 'call-start', at: this.#startedAt, ...this.#about(), input: this.#input });
  }

  execute(context: WorkContext): RawResult | Promise<RawResult> {
    // Grown and not copied: the context is this call's own.
    const grown = context as { -readonly [Field in keyof ToolContext]: ToolContext[Field] };
    grown.callId = this.#call.id;
    grown.update = (shown) => this.#update(shown);
    grown.nest = (event) => this.#nest(event);
    return this.tool.execute(this.#input, grown);
  }

  onWait(level: StopLevel, reason: CancelReason): void {
    const until = this.#startedAt + this.timeoutMs!;
    this.#scope.tell?.({ type: 'call-waiting', at: this.#now(), ...this.#about(), level, reason, until });
  }

  onCleanupError(error: CleanupError): void {
    this.#scope.tell?.({ type: 'cleanup-error', at: this.#now(), ...this.#about(), error });
  }

  /** Closes the call: from here on nothing it does is shown. */
  onEnd(end: BoundedEnd<RawResult>): CallResult {
    if (end.state !== 'unknown') this.#release?.();
    if (end.state === 'not-started') return notStarted(this.#call, this.token);
    const endedAt = this.#now();
    this.#isOver = true;
    this.#scope.live.delete(this.#call.id);
    const about = { callId: this.#call.id, tool: this.name, startedAt: this.#startedAt, endedAt };
    const result = boundResult(resultOf(about, end, this.#partial));
    if (end.state === 'unknown') this.#abandon(end, result);
    this.#scope.tell?.({ type: 'call-end', at: endedAt, result });
    return result;
  }

  /** An abandoned call keeps its keys until it really ends, and its late end changes nothing but the ledger. */
  #abandon({ reason, late }: { reason: CancelReason; late: Promise<LateEnd> }, result: CallResult): void {
    const { ledger, ledgerKey, tell } = this.#scope;
    const work = { key: ledgerKey(this.#call.id), name: this.name, reason, abandonedAt: result.endedAt };
    const onReturn = (end: LateEnd): void => {
      this.#release?.();
      tell?.({ type: 'call-late', at: end.at, ...this.#about(), late: end });
    };
    enterInLedger(ledger, work, { late: late.then(lateResult), onReturn });
  }

  #update(shown: ToolResult): void {
    if (this.#isOver) return;
    this.#partial = shown;
    this.#scope.tell?.({ type: 'call-update', at: this.#now(), ...this.#about(), partial: shown });
  }

  #nest(event: { readonly type: string }): void {
    if (!this.#isOver) this.#scope.tell?.({ type: 'call-nested', at: this.#now(), ...this.#about(), event });
  }

  #about(): { callId: string; tool: string } {
    return { callId: this.#call.id, tool: this.name };
  }

  #now(): number {
    return this.token.clock.now();
  }
}

function lateResult(end: LateEnd): LateEnd {
  return end.state === 'finished' ? { ...end, value: resultFrom(end.value) } : end;
}
