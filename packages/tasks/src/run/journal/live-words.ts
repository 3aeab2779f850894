import type { Json } from '@whoa/core';
import type { Frame } from '../../bus/hint.ts';
import type { ClaimRef } from '../../delivery/worker-store.ts';
import { hashClaim } from '../../ledger/rules/claim-hash.ts';
import { countSaid, type SaidEvent, withEntry } from './entry.ts';
import { measureBytes } from './truncate.ts';

/** Larger events are not sent before the journal has them. */
const MAX_EVENT_BYTES = 4_096;
/** What waits for the next frame. More of it is written first. */
const MAX_WAITING_BYTES = 65_536;
/** While something is not written that was said so long ago, readers see nothing more: a crash loses no more than this. */
const MAX_AGE_MS = 1_000;

/** Numbers what a claim says, and makes frames of what its journal does not have yet. */
export class LiveWords {
  /** Whether somebody reads. */
  #isWatched = false;
  readonly #claim: { readonly epoch: number; readonly claimHash: string };
  #said = 0;
  #kept = 0;
  #position: number;
  /** What was said up to here is written, or never will be. */
  #settled = 0;
  /** Where the next frame begins. It waits until everything before it is settled that must not be in a frame. */
  #from = 0;
  #barrier = 0;
  #events: readonly SaidEvent[] = [];
  #bytes = 0;
  /** When the oldest was said of what is being written, and of what waits. */
  #writingSince: number | undefined;
  #waitingSince: number | undefined;
  #hasNews = false;

  constructor({ epoch, claim }: Pick<ClaimRef, 'epoch' | 'claim'>, position: number) {
    this.#claim = { epoch, claimHash: hashClaim(claim) };
    this.#position = position;
  }

  get said(): number {
    return this.#said;
  }

  /** Readers see what is said from now on. What was said before, the journal tells them. */
  watch(isWatched: boolean): void {
    if (isWatched && !this.#isWatched) this.#skip();
    this.#isWatched = isWatched;
  }

  /** Numbers an event. Returns whether it must be written immediately, because no frame can hold it. */
  add(event: Json, now: number): { readonly said: SaidEvent; readonly isTooLarge: boolean } {
    this.#waitingSince ??= now;
    const said = this.number(event);
    if (!this.#isWatched) {
      this.#skip();
      return { said, isTooLarge: false };
    }
    const bytes = measureBytes(event);
    this.#bytes += bytes;
    this.#events = withEntry(this.#events, said);
    const isTooLarge = bytes > MAX_EVENT_BYTES || this.#bytes > MAX_WAITING_BYTES;
    if (isTooLarge) this.hold();
    return { said, isTooLarge };
  }

  /** Numbers an event that is in no frame. */
  number(event: Json): SaidEvent {
    this.#said += countSaid(event);
    return { event, said: this.#said };
  }

  /** What was said until now is in no frame, and frames wait until it is written. */
  hold(): void {
    this.#skip();
    this.#barrier = this.#said;
  }

  /** What waits is written from now on. */
  startWrite(): void {
    this.#writingSince ??= this.#waitingSince;
    this.#waitingSince = undefined;
  }

  /** The store has acknowledged a write, of everything up to `settled`. Some of it may be left out. */
  endWrite({ settled, kept = 0, position }: { settled: number; kept: number | undefined; position: number }): void {
    this.#writingSince = undefined;
    this.#settled = settled;
    this.#kept = Math.max(this.#kept, kept);
    this.#hasNews ||= position > this.#position;
    this.#position = position;
  }

  /** Returns what readers can see now. */
  next(now: number): Frame | undefined {
    const since = this.#writingSince ?? this.#waitingSince ?? now;
    const isBlocked = this.#settled < this.#barrier || now - since > MAX_AGE_MS;
    const events = isBlocked ? [] : this.#events;
    if (events.length === 0 && !this.#hasNews) return undefined;
    const [from, to] = events.length === 0 ? [this.#kept, this.#kept] : [this.#from, this.#said];
    if (events.length > 0) this.#skip();
    this.#hasNews = false;
    return { ...this.#claim, kept: this.#kept, position: this.#position, from, to, at: now, events };
  }

  #skip(): void {
    this.#events = [];
    this.#bytes = 0;
    this.#from = this.#said;
  }
}
