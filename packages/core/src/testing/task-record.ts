import { isDeepStrictEqual } from 'node:util';
import type { CancelReason } from '../stop/token/reason.ts';
import type { CallResult } from '../tool/result.ts';
import { CallAudit } from './call-audit.ts';
import { isHeldLater } from './draft.ts';
import type { Effect, JournalSeen, TaskReceipt, TaskSeen, Violation } from './history.ts';

const FINAL: ReadonlySet<string> = new Set(['success', 'failed', 'cancelled']);

/** What a history says about one task, from all observers. */
export class TaskRecord {
  readonly #id: string;
  readonly #violations: Violation[];
  readonly #audit: CallAudit;
  #journal: ReadonlyMap<number, JournalSeen> = new Map();
  #last: TaskSeen | undefined;
  #epoch = 0;
  #reason: CancelReason | undefined;
  #accepted = false;

  constructor(id: string, violations: Violation[]) {
    this.#id = id;
    this.#violations = violations;
    this.#audit = new CallAudit((promise, what) => this.#broken(promise, what));
  }

  get #end(): TaskSeen | undefined {
    return this.#last !== undefined && FINAL.has(this.#last.status) ? this.#last : undefined;
  }

  read(task: TaskSeen): void {
    const end = this.#end;
    if (end !== undefined) {
      if (!isDeepStrictEqual(task, end)) this.#broken('P1', 'its record changed after its end');
      return;
    }
    if (this.#last?.status === 'cancelling' && !['cancelling', 'cancelled'].includes(task.status))
      this.#broken('P3', `it was being cancelled and became '${task.status}'`);
    if (this.#accepted && (task.status === 'success' || task.status === 'failed'))
      this.#broken('P3', `it ended '${task.status}' after a cancel was accepted`);
    if (task.epoch < (this.#last?.epoch ?? 0)) this.#broken('P10', `its epoch went back to ${task.epoch}`);
    this.#epoch = Math.max(this.#epoch, task.epoch);
    // Only an end is compared as a whole.
    this.#last = FINAL.has(task.status) ? structuredClone(task) : { ...task };
    this.#sameReason(task.stop?.reason, 'the order to stop');
    this.#sameReason(task.outcome?.reason, 'the record');
  }

  receipt({ result, status, reason }: TaskReceipt): void {
    const end = this.#end;
    if (result === 'too-late') {
      if (!FINAL.has(status ?? '')) this.#broken('P3', `too-late, but it is '${status}'`);
      if (end !== undefined && end.status !== status)
        this.#broken('P3', `too-late says '${status}', and it had ended '${end.status}'`);
      return;
    }
    if (result === 'not-found') return;
    if (end !== undefined) this.#broken('P3', `${result} after the end`);
    if (result === 'accepted') {
      if (this.#accepted) this.#broken('P3', 'accepted twice');
      this.#accepted = true;
    }
    this.#sameReason(reason, `an '${result}' receipt`);
  }

  /** Checks that what was read before is still there, except drafts whose content a later entry holds. */
  journal(entries: readonly JournalSeen[]): void {
    const now = new Map(entries.map((entry) => [entry.position, entry]));
    for (const before of this.#journal.values()) {
      const still = now.get(before.position);
      const isKept = still === undefined ? isHeldLater(before, entries) : isDeepStrictEqual(still, before);
      if (!isKept) this.#broken('P5', `entry ${before.position} of its journal was read and is not there any more`);
    }
    let last = { position: 0, epoch: 0 };
    for (const entry of entries) {
      if (entry.position <= last.position)
        this.#broken('P5', `its journal has ${entry.position} after ${last.position}`);
      if (entry.epoch < last.epoch) this.#broken('P10', `epoch ${entry.epoch} wrote after epoch ${last.epoch}`);
      if (!this.#journal.has(entry.position)) this.#take(entry.event as JournalEvent);
      last = entry;
    }
    this.#journal = structuredClone(now);
  }

  write(epoch: number, accepted: boolean): void {
    if (accepted && epoch < this.#epoch)
      this.#broken('P10', `a write of epoch ${epoch} was taken in epoch ${this.#epoch}`);
    if (accepted && this.#end !== undefined) this.#broken('P10', 'a write was taken after the end');
    if (accepted) this.#epoch = Math.max(this.#epoch, epoch);
  }

  effect(effect: Effect): void {
    const isAbandoned = this.#audit.findResult(effect.callId)?.state === 'unknown';
    if (this.#end !== undefined && !isAbandoned) this.#broken('P4', `the tool of ${effect.callId} ran after the end`);
    this.#audit.effect(effect);
  }

  finish(): void {
    if (this.#end === undefined)
      this.#broken(this.#accepted || this.#last?.status === 'cancelling' ? 'P2' : 'P1', 'it never ended');
    this.#audit.finish();
  }

  #take(event: JournalEvent): void {
    if (event.type === 'call-end') this.#audit.recordReported(event.result);
    if (event.type === 'undo-end') this.#audit.toldUndo(event.callId, event.state);
    if (event.type === 'level-changed') this.#sameReason(event.reason, 'its journal');
  }

  #sameReason(reason: CancelReason | undefined, where: string): void {
    if (reason === undefined) return;
    this.#reason ??= reason;
    if (!isDeepStrictEqual(reason, this.#reason)) this.#broken('P7', `${where} gives another reason`);
  }

  #broken(promise: Violation['promise'], what: string): void {
    this.#violations.push({ promise, what: `${this.#id}: ${what}` });
  }
}

/** The journal entries that are checked; others are ignored. */
type JournalEvent =
  | { readonly type: 'call-end'; readonly result: CallResult }
  | { readonly type: 'undo-end'; readonly callId: string; readonly state: string }
  | { readonly type: 'level-changed'; readonly reason: CancelReason }
  | { readonly type: 'call-start' | 'call-intent'; readonly callId: string };

/** Which calls belong to which tasks: effects name only their call. */
export function findCalls(entries: readonly JournalSeen[]): string[] {
  return entries.flatMap(({ event }) => {
    const { type, callId } = event as { type?: string; callId?: string };
    return (type === 'call-start' || type === 'call-intent') && callId !== undefined ? [callId] : [];
  });
}
