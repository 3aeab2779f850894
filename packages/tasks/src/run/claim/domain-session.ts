import type { Clock, World } from '@whoa/core/embed';
import type { Beat, BeatAnswer, ClaimAnswer, ClaimRef, Orders, TakeAnswer } from '../../delivery.ts';
import { LeaseLostError, StoreBusyError } from '../../errors.ts';
import type { TaskStore } from '../../store.ts';
import { LeaseClock } from './lease-clock.ts';

/** A task that is at work under a session. */
export interface Holder {
  readonly claim: ClaimRef;
  obey(orders: Orders): void;
  /** The session may be over soon: stop the work, so that it is over before. */
  fence(): void;
  /** The session is over: stop at once, nothing counts any more. */
  lose(error: LeaseLostError): void;
}

export interface SessionOptions {
  readonly store: TaskStore;
  readonly domain: number;
  readonly worker: string;
  readonly leaseMs: number;
  readonly world: World;
  readonly onStoreError: (error: unknown) => void;
  /** Sessions of others have run out: someone should sweep. */
  readonly onExpired: (domain: number) => void;
  /** Runs work that no caller waits for. */
  readonly background: (work: Promise<unknown>) => void;
}

/** Shares of a lease: when a beat is due, when work is stopped without one, and when the session is over. */
const BEAT = 1 / 3;
const FENCE = 2 / 3;
/** A store that fails is asked again after this share of a lease. */
const RETRY = 1 / 20;
/** The counts of a worker and its store are compared by name this often, whatever they say. */
const RECOUNT_MS = 60_000;

/**
 * The lives of this worker in one domain of a store, one at a time. What it holds there lives and dies with the session: one
 * beat keeps all of it, and brings the orders that were not heard.
 */
export class DomainSession {
  readonly #options: SessionOptions;
  readonly #clock: Clock;
  readonly #holders = new Map<string, Holder>();
  /** Orders that were carried out since the last beat. */
  #confirmed = new Map<string, NonNullable<Beat['confirmed']>[number]>();
  #id: string;
  #number = 1;
  /** The claim of a take that was not answered yet: it is asked again with the same. */
  #asking: { readonly claim: string } | undefined;
  #claiming = 0;
  readonly #lease: LeaseClock;
  #beatTimer: Disposable | undefined;
  #fenceTimer: Disposable | undefined;
  #overTimer: Disposable | undefined;
  #beating: Promise<void> | undefined;
  #beatAgain = false;
  #recounts = 0;
  #comparedAt: number;
  /** The store may believe that this session holds something it does not know of. */
  #isDoubtful = false;
  /** Something was told while a task was on its way. */
  #hasMissed = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#clock = options.world.clock;
    this.#lease = new LeaseClock(this.#clock, options.leaseMs);
    this.#id = this.#newId();
    this.#comparedAt = this.#clock.now();
  }

  /** Asks for tasks. One take at a time; one that was not answered is asked again first. */
  async take(agents: readonly string[], limit: number): Promise<TakeAnswer> {
    const { store, domain, worker, leaseMs } = this.#options;
    this.#renewIfDoubtful();
    this.#asking ??= { claim: this.#newId() };
    const [session, asked] = [this.#id, this.#lease.now()];
    const request = { domain, session, worker, leaseMs, number: this.#number, agents, limit, ...this.#asking };
    const answer = await store.take(request);
    if (session !== this.#id) return { answer: 'gone' };
    this.#asking = undefined;
    if (answer.answer === 'gone') this.#end();
    if (answer.answer !== 'taken') return answer;
    if (answer.tasks.length > 0 || answer.repeat) this.#number++;
    if (answer.tasks.length > 0 && this.#holders.size === 0) this.#lease.keepFrom(asked);
    return answer;
  }

  /** Asks for one task. The same request is repeated while its answer is lost. */
  async claim(id: string, askAgain: <T>(ask: () => Promise<T>) => Promise<T>): Promise<ClaimAnswer> {
    const { store, worker, leaseMs } = this.#options;
    this.#renewIfDoubtful();
    const [session, asked, claim] = [this.#id, this.#lease.now(), this.#newId()];
    this.#claiming++;
    try {
      const answer = await askAgain(() => store.claim(id, { session, worker, leaseMs, claim }));
      if (session !== this.#id) return { answer: 'gone' };
      if (answer.answer === 'gone') this.#end();
      if (answer.answer === 'claimed' && this.#holders.size === 0) this.#lease.keepFrom(asked);
      return answer;
    } catch (error) {
      this.#isDoubtful = true;
      throw error;
    } finally {
      this.#claiming--;
    }
  }

  /** A task is at work: it is kept until it is dropped. One whose session ended on the way here is lost already. */
  hold(holder: Holder): void {
    const { id, epoch, session } = holder.claim;
    if (session !== this.#id) {
      holder.lose(new LeaseLostError(id, epoch));
      return;
    }
    this.#holders.set(id, holder);
    if (this.#hasMissed) {
      this.#hasMissed = false;
      this.#options.background(Promise.resolve().then(() => this.beat()));
    }
    if (this.#beatTimer === undefined) this.#schedule();
  }

  /** A task is at work no more. `isKnown`: the store knows that. */
  drop(holder: Holder, { isKnown }: { readonly isKnown: boolean }): void {
    const { id } = holder.claim;
    if (this.#holders.get(id) !== holder) return;
    this.#holders.delete(id);
    this.#confirmed.delete(id);
    if (!isKnown) this.#isDoubtful = true;
    if (this.#holders.size === 0) this.#stopTimers();
  }

  /** Notes that the orders of a task up to a number have been carried out. */
  confirm(holder: Holder, orderNumber: number): void {
    const { id, epoch, claim } = holder.claim;
    if (orderNumber > 0 && this.#holders.get(id) === holder) this.#confirmed.set(id, { id, epoch, claim, orderNumber });
  }

  /**
   * Stops the work at once if its time is over: after a long pause of the process its timers are late. After a sleep of the
   * machine nothing is written before the store has said that the session is alive.
   */
  check(): Promise<void> | undefined {
    const { leaseMs } = this.#options;
    const { ageMs } = this.#lease;
    if (this.#holders.size === 0) return undefined;
    if (ageMs >= leaseMs) this.#end();
    else if (ageMs >= leaseMs * FENCE) this.#fence();
    return this.#lease.hasSlept ? this.#askAwake() : undefined;
  }

  async #askAwake(): Promise<void> {
    await this.beat();
    if (this.#holders.size > 0 && this.#lease.hasSlept)
      throw new StoreBusyError('The store has not said yet whether the session outlived the sleep');
  }

  /** Something may have been missed: ask now. */
  beatSoon(): void {
    // What is ordered between the store's decision and the arrival of its answer stands in no answer.
    if (this.#asking !== undefined || this.#claiming > 0) this.#hasMissed = true;
    if (this.#holders.size > 0) this.#options.background(this.beat());
  }

  /** Keeps the session, and learns what was ordered. Beats do not overlap: one that is asked for meanwhile follows. */
  beat(): Promise<void> {
    if (this.#beating === undefined) this.#beating = this.#beatUntilHeard();
    else this.#beatAgain = true;
    return this.#beating;
  }

  /** Ends the session without a word to the store: what it held has been handed back or ended. */
  stop(): void {
    this.#stopTimers();
  }

  async #beatUntilHeard(): Promise<void> {
    try {
      do {
        this.#beatAgain = false;
        const more = await this.#beatOnce();
        if (more) this.#beatAgain = true;
      } while (this.#beatAgain);
    } finally {
      // Don't await anything between the last look and this: a beat asked for in between would be lost.
      this.#beating = undefined;
    }
  }

  async #beatOnce(): Promise<boolean> {
    const { store, domain, leaseMs } = this.#options;
    if (this.#holders.size === 0) return false;
    const [session, asked] = [this.#id, this.#lease.now()];
    const confirmed = this.#confirmed;
    this.#confirmed = new Map();
    let answer: BeatAnswer;
    try {
      answer = await store.beat({
        domain,
        session,
        confirmed: [...confirmed.values()],
        count: this.#holders.size,
      });
    } catch (error) {
      for (const [id, one] of confirmed) if (!this.#confirmed.has(id)) this.#confirmed.set(id, one);
      this.#options.onStoreError(error);
      if (session === this.#id) this.#schedule(leaseMs * RETRY);
      return false;
    }
    if (session !== this.#id) return false;
    if (answer.answer === 'gone') {
      this.#end();
      return false;
    }
    this.#lease.keepFrom(asked);
    this.#schedule();
    if (answer.expired) this.#options.onExpired(domain);
    for (const { id, epoch, claim, ...orders } of answer.orders) {
      const holder = this.#holders.get(id);
      if (holder?.claim.epoch === epoch && holder.claim.claim === claim) holder.obey(orders);
    }
    this.#recounts = answer.recount ? this.#recounts + 1 : 0;
    if (this.#recounts >= 2 || this.#clock.now() - this.#comparedAt >= RECOUNT_MS) await this.#compare(session);
    return answer.more;
  }

  /** Compares what the store believes is held with what is. Not while a take is on its way: it would be taken for lost. */
  async #compare(session: string): Promise<void> {
    const { store, domain } = this.#options;
    if (this.#asking !== undefined || this.#claiming > 0) return;
    const known = new Map(this.#holders);
    const held = await store.held({ domain, session });
    if (session !== this.#id) return;
    this.#recounts = 0;
    this.#comparedAt = this.#clock.now();
    const listed = new Map(held.map((one) => [one.id, one]));
    for (const [id, holder] of known) {
      const isListed = listed.get(id)?.claim === holder.claim.claim;
      if (!isListed && this.#holders.get(id) === holder) {
        holder.lose(new LeaseLostError(id, holder.claim.epoch));
      }
    }
    for (const one of held) {
      if (known.has(one.id) || this.#holders.has(one.id)) continue;
      this.#options.background(store.release({ ...one, session }));
    }
  }

  #schedule(beatInMs?: number): void {
    const { leaseMs } = this.#options;
    this.#stopTimers();
    if (this.#holders.size === 0) return;
    const { ageMs } = this.#lease;
    const at = (share: number): number => Math.max(0, leaseMs * share - ageMs);
    this.#beatTimer = this.#clock.setTimer(beatInMs ?? at(BEAT), () => this.#options.background(this.beat()));
    this.#fenceTimer = this.#clock.setTimer(at(FENCE), () => this.#fence());
    // A store that never answers again would keep the last words waiting for ever.
    this.#overTimer = this.#clock.setTimer(at(1), () => this.#end());
  }

  #fence(): void {
    for (const holder of this.#holders.values()) holder.fence();
  }

  /** This life is over; the next begins with the next request. */
  #end(): void {
    const holders = [...this.#holders.values()];
    this.#begin();
    for (const holder of holders) holder.lose(new LeaseLostError(holder.claim.id, holder.claim.epoch));
  }

  #renewIfDoubtful(): void {
    if (this.#isDoubtful && this.#holders.size === 0 && this.#claiming === 0 && this.#asking === undefined)
      this.#begin();
  }

  #begin(): void {
    this.#stopTimers();
    this.#holders.clear();
    this.#confirmed.clear();
    this.#id = this.#newId();
    this.#number = 1;
    this.#asking = undefined;
    this.#recounts = 0;
    this.#isDoubtful = false;
  }

  #stopTimers(): void {
    for (const timer of [this.#beatTimer, this.#fenceTimer, this.#overTimer]) timer?.[Symbol.dispose]();
    this.#beatTimer = undefined;
  }

  /** Never used before, by any worker. */
  #newId(): string {
    return `${this.#options.worker}.${this.#options.world.createId()}`;
  }
}
