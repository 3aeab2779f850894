import type { Clock } from '@whoa/core/embed';
import type { Beat, BeatAnswer, ClaimAnswer, TakeAnswer, TakenTask } from '../../delivery.ts';
import { LeaseLostError, StoreBusyError } from '../../errors.ts';
import type { Holder } from './holder.ts';
import { LeaseClock, type Sent } from './lease-clock.ts';
import { RECOUNT_MS, RETRY, type SessionOptions } from './session-options.ts';

/**
 * The sessions of this worker in one domain of a store, one at a time. The tasks it holds there depend on the session:
 * one beat keeps them all, and returns the orders that were missed.
 */
export class DomainSession {
  readonly #options: SessionOptions;
  readonly #clock: Clock;
  readonly #holders = new Map<string, Holder>();
  /** Orders that were carried out since the last beat. */
  #confirmed = new Map<string, NonNullable<Beat['confirmed']>[number]>();
  #id: string;
  #number = 1;
  /** A take without a response: it is repeated with the same claim. */
  #asking: { readonly claim: string; readonly asked: Sent } | undefined;
  #claiming = 0;
  /** How many takes and claims were started. */
  #requests = 0;
  readonly #lease: LeaseClock;
  #beating: Promise<void> | undefined;
  #beatAgain = false;
  #recounts = 0;
  #comparedAt: number;
  /** The store may list tasks for this session that the worker does not know about. */
  #isDoubtful = false;
  /** A hint arrived while a take or claim was in progress. */
  #hasMissed = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#clock = options.world.clock;
    this.#lease = new LeaseClock(this.#clock, options.leaseMs);
    this.#id = this.#newId();
    this.#comparedAt = this.#clock.now();
  }

  /** Takes tasks. One take at a time; a take without a response is repeated first. */
  async take(agents: readonly string[], limit: number): Promise<TakeAnswer> {
    const { store, domain, worker, leaseMs } = this.#options;
    // Don't take more under a session that stops its work: it would be stopped and handed back, again and again.
    if (this.#holders.size > 0 && this.#lease.isFenced) await this.#beatOrThrow(() => this.#lease.isFenced);
    this.#renewIfDoubtful();
    this.#requests++;
    const { claim, asked } = (this.#asking ??= { claim: this.#newId(), asked: this.#lease.now() });
    const session = this.#id;
    const answer = await store.take({ domain, session, worker, leaseMs, number: this.#number, agents, limit, claim });
    const tasks = answer.answer === 'taken' ? answer.tasks : [];
    // What cannot be started is handed back: here it would wait until it counts as a crash.
    let isStarted = false;
    try {
      if (tasks.length > 0 && session === this.#id) await this.#startLease(asked);
      isStarted = session === this.#id;
    } finally {
      if (!isStarted) this.#options.handBack.refuse(tasks);
      if (session === this.#id) this.#asking = undefined;
      if (session === this.#id && (tasks.length > 0 || (answer.answer === 'taken' && answer.repeat))) this.#number++;
    }
    if (session !== this.#id) return { answer: 'gone' };
    if (answer.answer === 'gone') this.#end();
    return answer;
  }

  /** Claims one task. The same request is repeated while its response is lost. */
  async claim(id: string, askAgain: <T>(ask: () => Promise<T>) => Promise<T>): Promise<ClaimAnswer> {
    const { store, worker, leaseMs, handBack } = this.#options;
    const given: TakenTask[] = [];
    this.#renewIfDoubtful();
    const [session, asked, claim] = [this.#id, this.#lease.now(), this.#newId()];
    this.#claiming++;
    this.#requests++;
    try {
      const answer = await askAgain(() => store.claim(id, { session, worker, leaseMs, claim }));
      if (answer.answer === 'claimed') given.push(answer);
      if (given.length > 0 && session === this.#id) await askAgain(() => this.#startLease(asked));
      if (session !== this.#id) return handBack.refuse(given);
      if (answer.answer === 'gone') this.#end();
      return answer;
    } catch (error) {
      handBack.refuse(given);
      if (session === this.#id) this.#isDoubtful = true;
      else this.#handBackAll(session);
      throw error;
    } finally {
      this.#claiming--;
    }
  }

  /**
   * Starts the lease of the first tasks, from when they were first asked for: the store may have given them out then, and
   * a repeated request does not renew them. If that was long ago, renews them before their work starts.
   */
  async #startLease(asked: Sent): Promise<void> {
    const { store, domain } = this.#options;
    if (this.#holders.size > 0) return;
    this.#lease.keepFrom(asked);
    if (!this.#lease.isBeatDue && !this.#isDoubtful) return;
    const [session, renewed] = [this.#id, this.#lease.now()];
    const { answer } = await store.beat({ domain, session, count: 0 });
    if (session !== this.#id) return;
    if (answer === 'alive') this.#lease.keepFrom(renewed);
    if (answer === 'gone' || this.#lease.isOver) this.#end();
  }

  /** Adds a running task until it is dropped. If its session ended in the meantime, the task is lost at once. */
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
    if (!this.#lease.isSet) this.#schedule();
  }

  /** Removes a task that no longer runs. `isKnown`: the store knows that. */
  drop(holder: Holder, { isKnown }: { readonly isKnown: boolean }): void {
    const { id } = holder.claim;
    if (this.#holders.get(id) !== holder) return;
    this.#holders.delete(id);
    this.#confirmed.delete(id);
    if (!isKnown) this.#isDoubtful = true;
    if (this.#holders.size === 0) this.stop();
  }

  /** Notes that the orders of a task up to a number have been carried out. */
  confirm(holder: Holder, orderNumber: number): void {
    const { id, epoch, claim } = holder.claim;
    if (orderNumber > 0 && this.#holders.get(id) === holder) this.#confirmed.set(id, { id, epoch, claim, orderNumber });
  }

  /**
   * Stops the work at once if its time is over: after a long pause of the process its timers are late. After a sleep of
   * the machine nothing is written until the store has confirmed that the session is alive.
   */
  check(): Promise<void> | undefined {
    if (this.#holders.size === 0) return undefined;
    if (this.#lease.isOver) this.#end();
    else if (this.#lease.isFenced) this.#fence();
    return this.#lease.hasSlept ? this.#beatOrThrow(() => this.#lease.hasSlept) : undefined;
  }

  /** Beats. Throws if the store has not confirmed that the session is alive. */
  async #beatOrThrow(isInDoubt: () => boolean): Promise<void> {
    await this.beat();
    if (this.#holders.size > 0 && isInDoubt())
      throw new StoreBusyError('The store has not yet confirmed that the session is alive');
  }

  /** Beats now: a hint may have been missed. */
  beatSoon(): void {
    // An order that is issued between the store's decision and the arrival of its response is in neither.
    if (this.#asking !== undefined || this.#claiming > 0) this.#hasMissed = true;
    if (this.#holders.size > 0) this.#options.background(this.beat());
  }

  /** Renews the session and gets its orders. Beats do not overlap: one requested meanwhile runs afterwards. */
  beat(): Promise<void> {
    if (this.#beating === undefined) this.#beating = this.#beatUntilHeard();
    else this.#beatAgain = true;
    return this.#beating;
  }

  async #beatUntilHeard(): Promise<void> {
    const session = this.#id;
    try {
      do {
        this.#beatAgain = false;
        const more = await this.#beatOnce();
        if (more) this.#beatAgain = true;
      } while (session === this.#id && this.#beatAgain);
    } finally {
      // Don't await anything between the last check and this: a beat requested in between would be lost.
      if (session === this.#id) this.#beating = undefined;
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
      answer = await store.beat({ domain, session, confirmed: [...confirmed.values()], count: this.#holders.size });
    } catch (error) {
      this.#options.onStoreError(error);
      if (session !== this.#id) return false;
      for (const [id, one] of confirmed) if (!this.#confirmed.has(id)) this.#confirmed.set(id, one);
      this.#schedule(leaseMs * RETRY);
      return false;
    }
    if (session !== this.#id) return false;
    if (answer.answer === 'alive') this.#lease.keepFrom(asked);
    // The response may have taken longer than the lease, if the process was stopped; the timers are late then, too.
    if (answer.answer === 'gone' || this.#lease.isOver) {
      this.#end();
      return false;
    }
    this.#schedule();
    if (answer.expired) this.#options.onExpired(domain);
    for (const { id, epoch, claim, ...orders } of answer.orders) {
      const holder = this.#holders.get(id);
      if (holder?.claim.epoch === epoch && holder.claim.claim === claim) holder.obey(orders);
    }
    this.#recounts = answer.recount ? this.#recounts + 1 : 0;
    // Don't wait for it: an order may have arrived meanwhile, and the next beat fetches it.
    if (this.#recounts >= 2 || this.#clock.now() - this.#comparedAt >= RECOUNT_MS)
      this.#options.background(this.#compare(session));
    return answer.more;
  }

  /** Compares what the store lists as held with what is. Not during a take: its tasks would be taken for lost. */
  async #compare(session: string): Promise<void> {
    const { store, domain } = this.#options;
    if (this.#asking !== undefined || this.#claiming > 0) return;
    this.#recounts = 0;
    this.#comparedAt = this.#clock.now();
    const known = new Map(this.#holders);
    const requests = this.#requests;
    const held = await store.held({ domain, session });
    if (session !== this.#id) return;
    const listed = new Map(held.map((one) => [one.id, one]));
    for (const [id, holder] of known) {
      const isListed = listed.get(id)?.claim === holder.claim.claim;
      if (!isListed && this.#holders.get(id) === holder) {
        holder.lose(new LeaseLostError(id, holder.claim.epoch));
      }
    }
    // Requested since then: the task may be on its way to us.
    if (requests !== this.#requests) return;
    for (const one of held) {
      if (known.has(one.id) || this.#holders.has(one.id)) continue;
      this.#options.handBack.claim({ ...one, session });
    }
  }

  #schedule(beatInMs?: number): void {
    this.stop();
    if (this.#holders.size === 0) return;
    const onBeat = (): void => this.#options.background(this.beat());
    this.#lease.set({ onBeat, onFence: () => this.#fence(), onOver: () => this.#end() }, beatInMs);
  }

  #fence(): void {
    for (const holder of this.#holders.values()) holder.fence();
  }

  /** Ends this session. The next request starts a new one. */
  #end(): void {
    const holders = [...this.#holders.values()];
    this.#begin();
    for (const holder of holders) holder.lose(new LeaseLostError(holder.claim.id, holder.claim.epoch));
  }

  #renewIfDoubtful(): void {
    if (this.#isDoubtful && this.#holders.size === 0 && this.#claiming === 0 && this.#asking === undefined)
      this.#begin();
  }

  #handBackAll(session: string): void {
    this.#options.handBack.session({ domain: this.#options.domain, session }, this.#holders.values());
  }

  #begin(): void {
    this.stop();
    if (this.#asking !== undefined || this.#isDoubtful) this.#handBackAll(this.#id);
    this.#holders.clear();
    this.#confirmed.clear();
    this.#id = this.#newId();
    this.#number = 1;
    this.#asking = undefined;
    // A beat of the last session may be without a response for long: the next session does not wait for it.
    this.#beating = undefined;
    this.#recounts = 0;
    this.#isDoubtful = false;
  }

  /** Ends the session without telling the store, when its tasks have been handed back or ended. */
  stop(): void {
    this.#lease.clear();
  }

  /** Creates an id that no worker has used before. */
  #newId(): string {
    return `${this.#options.worker}.${this.#options.world.createId()}`;
  }
}
