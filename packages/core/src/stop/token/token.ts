import { ResourceScope } from '../bounded/resource-scope.ts';
import { type Clock, isNever, NEVER, systemClock } from '../clock.ts';
import { CancelledError } from '../errors.ts';
import type { StopLevel, StopSchedule } from './level.ts';
import { createStopSchedule, earliest, levelAt, rankLevel, shortenGrace } from './level.ts';
import { type CancelListener, CancelListeners, warnOfListener } from './listeners.ts';
import { type CancelReason, type CancelReasonLike, createReason, toAbortError, whenAborted } from './reason.ts';
import { type CancelOptions, type CancelReceipt, readCancelOptions } from './receipt.ts';

export interface TokenOptions {
  readonly parent?: CancellationToken | undefined;
  readonly name?: string | undefined;
  /** Time for ladders and deadlines. Defaults to the parent's. */
  readonly clock?: Clock | undefined;
  /** The lowest level inherited from the parent: `drain` is all, `abort` ignores drains, `nothing` is a shield. */
  readonly inheritFrom?: StopLevel | 'nothing' | undefined;
  /** The lowest level an inherited cancel arrives as. `abort`: for replies and questions, which drains don't wait for. */
  readonly minimumLevel?: StopLevel | undefined;
  /** Called with the error of a listener that throws. Defaults to the parent's, or to a process warning at the root. */
  readonly onListenerError?: ((error: unknown) => void) | undefined;
}

const ABORT = rankLevel('abort');
const KILL = rankLevel('kill');
const NOTHING = KILL + 1;

/**
 * Asks one piece of work, and everything under it, to stop.
 *
 * Tokens form a tree. A cancel marks the whole subtree before it calls the first listener, so a half-cancelled tree is
 * never visible. A cancelled token stays cancelled, its level only rises, and it keeps its first reason. Dispose a token
 * when its work has ended: that unlinks it, and cancels what is still running under it.
 *
 * @example
 * ```ts
 * import { CancellationToken } from '@whoa/core';
 * using token = new CancellationToken();
 * token.onCancel((level, reason) => console.log(level, reason.kind));
 * token.cancel({ kind: 'user' });
 * ```
 */
export class CancellationToken implements Disposable {
  readonly name: string;
  readonly #clock: Clock;
  readonly #onListenerError: (error: unknown) => void;
  readonly #inheritFrom: number;
  readonly #minimumRank: number;
  #rank = 0;
  #reason: CancelReason | undefined;
  #undo = false;
  #schedule: StopSchedule | undefined;
  #step: (Disposable & { readonly keepAlive: boolean }) | undefined;
  #ended = false;

  // Siblings form a linked list: a child of a parent with 100,000 children unlinks in constant time and needs no set.
  #parent: CancellationToken | undefined;
  #firstChild: CancellationToken | undefined;
  #next: CancellationToken | undefined;
  #previous: CancellationToken | undefined;
  #controller: AbortController | undefined;
  #listeners: CancelListeners | undefined;
  #owned: ResourceScope | undefined;

  constructor(options: TokenOptions = {}) {
    const { parent } = options;
    this.name = options.name ?? 'token';
    this.#clock = options.clock ?? parent?.clock ?? systemClock;
    this.#onListenerError = options.onListenerError ?? (parent ? parent.#onListenerError : warnOfListener);
    this.#inheritFrom = options.inheritFrom === 'nothing' ? NOTHING : rankLevel(options.inheritFrom ?? 'drain');
    this.#minimumRank = rankLevel(options.minimumLevel);
    if (parent !== undefined && this.#inheritFrom !== NOTHING) this.#join(parent);
  }

  /** Creates a token that is cancelled (`now`) when a signal aborts. Dispose it to remove the listener. */
  static from(signal: AbortSignal, options: TokenOptions = {}): CancellationToken {
    const token = new CancellationToken({ name: 'signal', ...options });
    token.#own(whenAborted(signal, (reason) => token.cancel(reason, { mode: 'now' })));
    return token;
  }

  /** True from the first cancel, at any level. */
  get isCancelled(): boolean {
    return this.#rank !== 0;
  }

  get level(): StopLevel | undefined {
    return levelAt(this.#rank);
  }

  get reason(): CancelReason | undefined {
    return this.#reason;
  }

  /** Whether the cancel asked for undo. */
  get undo(): boolean {
    return this.#undo;
  }

  get clock(): Clock {
    return this.#clock;
  }

  /** For code outside Whoa: fires at `abort`. Created on first use. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      this.#holdProcess();
      this.#fireSignal();
    }
    return this.#controller.signal;
  }

  /** Asks everything under this token to stop. The first reason is kept; a later cancel can only stop harder or sooner. */
  cancel(init: CancelReasonLike = {}, options: CancelOptions = {}): CancelReceipt {
    const now = this.#clock.now();
    const { mode, undo } = readCancelOptions(options, 'graceful');
    const schedule = createStopSchedule(mode, now);
    if (this.#ended) return { result: 'too-late' };
    const first = this.#rank === 0;
    const rank = rankLevel(schedule.level);
    const sooner = schedule.abortAt < this.#due('abort') || schedule.killAt < this.#due('kill');
    const stronger = rank > this.#rank || sooner || (undo && !this.#undo);
    if (stronger) {
      this.#schedule = this.#schedule ? earliest(this.#schedule, schedule) : schedule;
      this.#raise({ rank, undo, reason: this.#reason ?? createReason(init, now) });
    }
    const answer = first ? 'accepted' : stronger ? 'escalated' : 'unchanged';
    return { result: answer, level: this.level!, reason: this.#reason!, killAt: this.#due('kill') };
  }

  /** Cancels after `ms`; `Infinity` means never. Disposing this token or the result prevents it. */
  cancelAfter(ms: number, init: CancelReasonLike = {}, options: CancelOptions = {}): Disposable {
    const checked = readCancelOptions(options, 'graceful');
    if (isNever(ms)) return NEVER;
    const fire = (): void => {
      timer[Symbol.dispose]();
      this.cancel(init, checked);
    };
    const timer = this.#own(this.#clock.setTimer(ms, fire));
    return timer;
  }

  /** Throws a `CancelledError` if the token is cancelled. */
  throwIfCancelled(): void {
    if (this.#reason !== undefined) throw new CancelledError(this.#reason);
  }

  /** Creates a token that is cancelled with this one, and can be cancelled alone. */
  child(options?: string | Omit<TokenOptions, 'parent'>): CancellationToken {
    const named = typeof options === 'string' ? { name: options } : options;
    return new CancellationToken({ ...named, parent: this });
  }

  /** Calls a listener once for each level that is reached, including those reached before. */
  onCancel(listener: CancelListener): Disposable {
    // After the end no level can change, so the listener is called with the level reached and is not kept.
    const listeners = this.#ended ? new CancelListeners() : (this.#listeners ??= new CancelListeners());
    const subscription = listeners.add(listener);
    if (this.#reason !== undefined) subscription.notify(this.level!, this.#reason, this.#onListenerError);
    this.#holdProcess();
    return subscription;
  }

  [Symbol.dispose](): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#step?.[Symbol.dispose]();
    this.#step = undefined;
    this.#listeners?.clear();
    this.#owned?.[Symbol.dispose]();
    this.#leave();
    // Work must not outlive its owner: cancel what still runs under an ended token.
    for (let child = this.#firstChild; child !== undefined; child = this.#firstChild) {
      child.#leave();
      child.cancel(this.#reason ?? { kind: 'parent', message: `${this.name} ended` }, { mode: 'now' });
    }
  }

  /** Live links and listeners, for leak checks. */
  get statistics(): { readonly children: number; readonly listeners: number } {
    let children = 0;
    for (let child = this.#firstChild; child !== undefined; child = child.#next) children++;
    return { children, listeners: this.#listeners?.size ?? 0 };
  }

  #join(parent: CancellationToken): void {
    if (parent.#ended) {
      this.cancel(parent.#reason ?? { kind: 'parent', message: `${parent.name} ended` }, { mode: 'now' });
      return;
    }
    this.#parent = parent;
    this.#next = parent.#firstChild;
    if (this.#next) this.#next.#previous = this;
    parent.#firstChild = this;
    this.#inherit();
    parent.#holdProcess();
  }

  #leave(): void {
    const parent = this.#parent;
    if (parent === undefined) return;
    if (this.#previous) this.#previous.#next = this.#next;
    else parent.#firstChild = this.#next;
    if (this.#next) this.#next.#previous = this.#previous;
    this.#parent = this.#next = this.#previous = undefined;
    parent.#holdProcess();
  }

  /** Marks the subtree and sets the next step of the ladder before it calls listeners: they may do anything. */
  #raise(to: { rank: number; undo: boolean; reason: CancelReason }): void {
    const marked: CancellationToken[] = [];
    // Walk by links, not by recursion: a chain may be 100,000 deep.
    let node: CancellationToken = this;
    let entering = true;
    for (;;) {
      if (entering && (node === this ? node.#mark(to.rank, to.undo, to.reason) : node.#inherit())) {
        if (node.#controller !== undefined || node.#listeners !== undefined) marked.push(node);
        if (node.#firstChild !== undefined) {
          node = node.#firstChild;
          continue;
        }
      }
      if (node === this) break;
      entering = node.#next !== undefined;
      node = node.#next ?? node.#parent!;
    }
    this.#setStep();
    this.#holdProcess();
    for (const token of marked) token.#notify();
  }

  /** Takes over the parent's state, to the extent that this token inherits it. */
  #inherit(): boolean {
    const parent = this.#parent!;
    if (parent.#reason === undefined || parent.#rank < this.#inheritFrom) return false;
    return this.#mark(Math.max(parent.#rank, this.#minimumRank), parent.#undo, parent.#reason);
  }

  /** Returns whether anything changed. If not, nothing below can change either. */
  #mark(rank: number, undo: boolean, reason: CancelReason): boolean {
    if (rank <= this.#rank && (!undo || this.#undo)) return false;
    this.#rank = Math.max(this.#rank, rank);
    this.#undo ||= undo;
    this.#reason ??= reason;
    // At `kill` no ladder has a next level, whichever token it belongs to.
    if (this.#rank === KILL && this.#step !== undefined) this.#setStep();
    return true;
  }

  #notify(): void {
    this.#fireSignal();
    this.#listeners?.notify(this.level!, this.#reason!, this.#onListenerError);
  }

  #fireSignal(): void {
    if (this.#rank >= ABORT) this.#controller?.abort(toAbortError(this.#reason!));
  }

  #setStep(): void {
    this.#step?.[Symbol.dispose]();
    this.#step = undefined;
    if (this.#rank === KILL || this.#schedule === undefined) return;
    const [rank, at] = this.#rank < ABORT ? [ABORT, this.#schedule.abortAt] : [KILL, this.#schedule.killAt];
    const keepAlive = this.#hasObservers;
    const climb = (): void => {
      this.#schedule = shortenGrace(this.#schedule!, at - this.#clock.now());
      this.#raise({ rank, undo: this.#undo, reason: this.#reason! });
    };
    const timer = this.#clock.setTimer(Math.max(0, at - this.#clock.now()), climb, { keepAlive });
    this.#step = { keepAlive, [Symbol.dispose]: () => timer[Symbol.dispose]() };
  }

  /** A waiting ladder keeps the process alive only while the token has listeners, children or a signal to fire. */
  #holdProcess(): void {
    if (this.#step === undefined) return;
    if (this.#listeners) this.#listeners.onEmpty ??= () => this.#holdProcess();
    if (this.#step.keepAlive !== this.#hasObservers) this.#setStep();
  }

  get #hasObservers(): boolean {
    const hasSignalToFire = this.#controller !== undefined && this.#rank < ABORT;
    return hasSignalToFire || this.#firstChild !== undefined || this.#listeners?.isEmpty === false;
  }

  /** When a level is due here, by this token's own ladder or by an ancestor's. */
  #due(level: 'abort' | 'kill'): number {
    let due = Infinity;
    for (let token: CancellationToken | undefined = this; token !== undefined; token = token.#parent) {
      due = Math.min(due, token.#schedule?.[`${level}At`] ?? Infinity);
      if (token.#inheritFrom > rankLevel(level)) break;
    }
    return due;
  }

  #own(thing: Disposable): Disposable {
    this.#owned ??= new ResourceScope();
    if (this.#ended) this.#owned[Symbol.dispose]();
    return this.#owned.add(thing);
  }
}
