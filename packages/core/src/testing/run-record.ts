import { inspect, isDeepStrictEqual } from 'node:util';
import { AFTER_THE_END, type RunEvent } from '../run/report/events.ts';
import type { Outcome } from '../run/report/outcome.ts';
import { CLEANUP_MS } from '../stop/bounded/cleanup.ts';
import { rankLevel } from '../stop/token/level.ts';
import type { CancelReason } from '../stop/token/reason.ts';
import type { CancelReceipt } from '../stop/token/receipt.ts';
import { CallAudit } from './call-audit.ts';
import type { Effect, Violation } from './history.ts';
import { findUnpaired, Words } from './words.ts';

export interface CheckOptions {
  /** Time limit for undo, where a history uses it. */
  readonly undoTimeoutMs?: number | undefined;
  readonly cleanupTimeoutMs?: number | undefined;
}

type CallEnd = Extract<RunEvent, { type: 'call-end' }>['result'];

/** What a history says about one run. */
export class RunRecord {
  readonly cancelledCalls: Set<string> = new Set();
  readonly #id: string;
  readonly #violations: Violation[];
  readonly #ends = new Map<string, CallEnd>();
  readonly #audit: CallAudit;
  readonly #words = new Words();
  #outcome: Outcome | undefined;
  #given: Outcome | undefined;
  #reason: CancelReason | undefined;
  #rank = 0;
  #accepted = false;
  /** When the last level is due, if it is known: a cancel that came from a parent has no receipt. */
  #killAt: number | undefined;
  /** Until when it may wait for calls that must finish. */
  #waitsUntil = 0;

  constructor(id: string, violations: Violation[]) {
    this.#id = id;
    this.#violations = violations;
    this.#audit = new CallAudit((promise, what) => this.#broken(promise, what));
  }

  event(event: RunEvent): void {
    if (this.#outcome !== undefined && !AFTER_THE_END.has(event.type)) {
      this.#broken(event.type === 'run-end' ? 'P1' : 'P4', `${event.type} after the end`);
    }
    this.#words.event(event);
    switch (event.type) {
      case 'level-changed':
        if (rankLevel(event.level) <= this.#rank)
          this.#broken('P3', `the level went from rank ${this.#rank} to ${event.level}`);
        this.#rank = rankLevel(event.level);
        if (event.level === 'kill') this.#mayLastUntil(event.at);
        this.#sameReason(event.reason, 'a level change');
        break;
      case 'call-start':
        if (this.#rank > 0) this.#broken('P4', `call ${event.callId} started after the cancel`);
        break;
      case 'call-waiting':
        this.#mayWaitUntil(event.until);
        break;
      case 'call-event':
        // A parent waits for everything that its sub-agents wait for.
        for (let inner = event.event as RunEvent; ; inner = inner.event as RunEvent) {
          if (inner.type === 'call-waiting') this.#mayWaitUntil(inner.until);
          // A sub-agent may stop by itself, for its own reason.
          if (inner.type === 'level-changed' && this.#rank === 0) this.cancelledCalls.add(event.callId);
          if (inner.type !== 'call-event') break;
        }
        break;
      case 'call-end':
        this.#callEnd(event.result);
        break;
      case 'call-ended-late':
        if (!this.#wasAbandoned(event.callId)) this.#broken('P10', `${event.callId} was late but not abandoned`);
        break;
      case 'undo-end':
        this.#audit.toldUndo(event.callId, event.state);
        break;
      case 'run-end':
        this.#outcome = event.outcome;
        break;
      default:
        break;
    }
  }

  receipt(receipt: CancelReceipt): void {
    if (receipt.result === 'too-late') {
      if (this.#outcome === undefined) this.#broken('P3', 'too-late before the end');
      return;
    }
    if (this.#outcome !== undefined) this.#broken('P3', `${receipt.result} after the end`);
    if (receipt.result === 'accepted') {
      if (this.#accepted) this.#broken('P3', 'accepted twice');
      this.#accepted = true;
    }
    if (rankLevel(receipt.level) < this.#rank)
      this.#broken('P3', `a receipt says '${receipt.level}', which is lower than before`);
    this.#mayLastUntil(receipt.killAt);
    this.#sameReason(receipt.reason, `an '${receipt.result}' receipt`);
  }

  /** What a tool found out says nothing about its code: that may still run. */
  #wasAbandoned(callId: string): boolean {
    const end = this.#ends.get(callId);
    return end?.state === 'unknown' || end?.foundOut !== undefined;
  }

  outcome(outcome: Outcome): void {
    this.#given = outcome;
  }

  effect(effect: Effect): void {
    const { callId, phase } = effect;
    this.#audit.effect(effect);
    // An undo may be requested after the end.
    if (this.#outcome === undefined || phase.startsWith('undo')) return;
    if (phase === 'begin') this.#broken('P4', `the tool of ${callId} began after the end`);
    else if (!this.#wasAbandoned(callId)) this.#broken('P4', `the tool of ${callId} ran on after the end`);
  }

  finish({ undoTimeoutMs = 0, cleanupTimeoutMs = CLEANUP_MS }: CheckOptions): void {
    const outcome = this.#outcome;
    if (outcome === undefined) {
      this.#broken(this.#rank > 0 || this.#accepted ? 'P2' : 'P1', 'it never ended');
      return;
    }
    if (this.#given !== undefined && !isSame(this.#given, outcome)) {
      this.#broken('P1', 'its outcome is not the one announced at its end');
    }
    this.#nothingLost(outcome);
    this.#audit.finish();
    for (const result of outcome.calls) {
      if (!isDeepStrictEqual(this.#ends.get(result.callId), result))
        this.#broken('P10', `${result.callId} has another result in the outcome`);
    }
    if (outcome.status === 'cancelled') {
      this.#sameReason(outcome.reason, 'the outcome');
      this.#sameReason(outcome.stop.reason, 'the stop report');
      if (this.#rank === 0) this.#broken('P8', 'it was cancelled without a request');
      const due = this.#killAt === undefined ? Infinity : Math.max(this.#killAt, this.#waitsUntil);
      if (outcome.endedAt > due + cleanupTimeoutMs + undoTimeoutMs)
        this.#broken('P2', `it settled ${outcome.endedAt - due} ms past its bound`);
    } else if (this.#accepted || this.#rank > 0)
      this.#broken('P3', `it ended '${outcome.status}' after a cancel was accepted`);
  }

  #nothingLost({ messages, calls }: Outcome): void {
    const missing = this.#words.missingFrom(messages);
    if (missing !== undefined) this.#broken('P5', `'${missing}' was shown and is not in the outcome`);
    for (const callId of this.#ends.keys()) {
      if (!calls.some((call) => call.callId === callId))
        this.#broken('P5', `${callId} ended and is not in the outcome`);
    }
    const unpaired = this.#words.isWhole ? findUnpaired(messages) : undefined;
    if (unpaired !== undefined) this.#broken('P6', `its messages have ${unpaired}`);
  }

  #mayLastUntil(at: number): void {
    this.#killAt = Math.max(this.#killAt ?? at, at);
  }

  #mayWaitUntil(at: number): void {
    this.#waitsUntil = Math.max(this.#waitsUntil, at);
  }

  #callEnd(result: CallEnd): void {
    if (this.#ends.has(result.callId)) this.#broken('P10', `${result.callId} ended twice`);
    this.#ends.set(result.callId, result);
    this.#audit.recordReported(result);
    const { reason } = result;
    if (reason === undefined || reason.kind === 'deadline' || this.cancelledCalls.has(result.callId)) return;
    if (this.#rank === 0) this.#broken('P8', `${result.callId} was stopped though its run was not`);
    else if (!isDeepStrictEqual(reason, this.#reason))
      this.#broken('P7', `${result.callId} was stopped for another reason`);
  }

  #sameReason(reason: CancelReason, where: string): void {
    this.#reason ??= reason;
    if (!isDeepStrictEqual(reason, this.#reason)) this.#broken('P7', `${where} gives another reason`);
  }

  #broken(promise: Violation['promise'], what: string): void {
    this.#violations.push({ promise, what: `${this.#id}: ${what}` });
  }
}

/** The recorded outcome may be a copy. One that cannot be copied was recorded itself. */
function isSame(given: Outcome, recorded: Outcome): boolean {
  if (given === recorded) return true;
  try {
    const copy = structuredClone(given);
    // Compare as text where an error is its own cause: Node never finishes comparing such errors.
    return hasOwnCause(given) ? inspect(copy) === inspect(recorded) : isDeepStrictEqual(copy, recorded);
  } catch {
    return false;
  }
}

function hasOwnCause(outcome: Outcome): boolean {
  const causes = new Set<unknown>();
  let error: unknown = 'error' in outcome ? outcome.error : undefined;
  for (; error instanceof Error && !causes.has(error); error = error.cause) causes.add(error);
  return causes.has(error);
}
