import { LeaseLostError, StoreBusyError } from '../errors.ts';
import type { HandBack } from './hand-back.ts';
import { LeaseClock, type Sent } from './lease-clock.ts';
import type { Sweeper } from './sweeper.ts';
import type { WorkerContext } from './worker-context.ts';
import type { ClaimRef, Heartbeat, HeartbeatResult, Orders } from './worker-store.ts';

/** A failed beat is repeated after this share of a lease. */
const RETRY = 1 / 20;
/** How often the worker and the store compare their tasks by id, even if the counts match. */
const COMPARE_MS = 60_000;

/** A task that runs under a session. */
export interface Holder {
  readonly claim: ClaimRef;
  /** The number of the last orders that were carried out, until the store knows it. */
  unconfirmed: number | undefined;
  applyOrders(orders: Orders): void;
  /** The session may be over soon: stop the work before that. */
  fence(): void;
  /** The session is over: stop immediately, writes no longer count. */
  onLeaseLost(error: LeaseLostError): void;
}

export interface SessionOptions {
  readonly handBack: HandBack;
  readonly sweeper: Sweeper;
}

/** One session in the store. The tasks it holds depend on it: one beat keeps them all, and returns missed orders. */
export class Session {
  readonly id: string;
  readonly lease: LeaseClock;
  readonly #context: WorkerContext;
  readonly #options: SessionOptions & { readonly onEnd: () => void };
  readonly #holders = new Map<string, Holder>();
  /** The number of the next take. */
  takeNumber = 1;
  /** A take without a response: it is repeated with the same claim. */
  taking: { readonly claim: string; readonly asked: Sent } | undefined;
  /** Claims without a response. */
  claiming = 0;
  /** How many takes and claims were started. */
  requests = 0;
  /** The store may list tasks for this session that the worker does not know about. */
  isDoubtful = false;
  isOver = false;
  #beating: Promise<void> | undefined;
  #beatAgain = false;
  /** A hint arrived while a take or claim was in progress. */
  #hasMissed = false;
  #recounts = 0;
  #comparedAt: number;

  constructor(id: string, context: WorkerContext, options: SessionOptions & { readonly onEnd: () => void }) {
    this.id = id;
    this.#context = context;
    this.#options = options;
    this.lease = new LeaseClock(context.world.clock, context.leaseMs);
    this.#comparedAt = context.world.clock.now();
  }

  get isIdle(): boolean {
    return this.#holders.size === 0;
  }

  get isRequesting(): boolean {
    return this.taking !== undefined || this.claiming > 0;
  }

  /** Adds a running task until it is dropped. If this is not its session any more, the task is lost immediately. */
  hold(holder: Holder): void {
    const { id, epoch, session } = holder.claim;
    if (session !== this.id) {
      holder.onLeaseLost(new LeaseLostError(id, epoch));
      return;
    }
    this.#holders.set(id, holder);
    if (this.#hasMissed) {
      this.#hasMissed = false;
      this.#context.background(Promise.resolve().then(() => this.heartbeat()));
    }
    if (!this.lease.isSet) this.#schedule();
  }

  /** Removes a task that no longer runs. `isKnown`: the store knows that. */
  drop(holder: Holder, { isKnown }: { readonly isKnown: boolean }): void {
    const { id } = holder.claim;
    if (this.#holders.get(id) !== holder) return;
    this.#holders.delete(id);
    if (!isKnown) this.isDoubtful = true;
    if (this.isIdle) this.stop();
  }

  /**
   * Stops the work immediately if its time is over: after a long pause of the process its timers are late. After a sleep of
   * the machine nothing is written until the store has confirmed that the session is alive.
   */
  check(): Promise<void> | undefined {
    if (this.isIdle) return undefined;
    if (this.lease.isOver) this.end();
    else if (this.lease.isFenced) this.#fence();
    return this.lease.hasSlept ? this.beatOrThrow(() => this.lease.hasSlept) : undefined;
  }

  /** Beats. Throws if the store has not confirmed that the session is alive. */
  async beatOrThrow(isInDoubt: () => boolean): Promise<void> {
    await this.heartbeat();
    if (!this.isIdle && isInDoubt())
      throw new StoreBusyError('The store has not yet confirmed that the session is alive');
  }

  /** Beats now: a hint may have been missed. */
  scheduleHeartbeat(): void {
    // An order that is issued between the store's decision and the arrival of its response is in neither.
    if (this.isRequesting) this.#hasMissed = true;
    if (!this.isIdle) this.#context.background(this.heartbeat());
  }

  /** Renews the session and gets its orders. Beats do not overlap: one requested meanwhile runs afterwards. */
  heartbeat(): Promise<void> {
    if (this.#beating === undefined) this.#beating = this.#beatUntilHeard();
    else this.#beatAgain = true;
    return this.#beating;
  }

  async #beatUntilHeard(): Promise<void> {
    try {
      do {
        this.#beatAgain = false;
        const more = await this.#beatOnce();
        if (more) this.#beatAgain = true;
      } while (!this.isOver && this.#beatAgain);
    } finally {
      // Don't await anything between the last check and this: a beat requested in between would be lost.
      this.#beating = undefined;
    }
  }

  async #beatOnce(): Promise<boolean> {
    const { store, leaseMs, world, onStoreError } = this.#context;
    const { sweeper } = this.#options;
    if (this.isIdle) return false;
    const asked = this.lease.now();
    const confirmed = [...this.#holders.values()].flatMap(toConfirmed);
    let answer: HeartbeatResult;
    try {
      answer = await store.heartbeat({ session: this.id, confirmed, count: this.#holders.size });
    } catch (error) {
      onStoreError(error);
      if (!this.isOver) this.#schedule(leaseMs * RETRY);
      return false;
    }
    if (this.isOver) return false;
    if (answer.result === 'alive') this.lease.keepFrom(asked);
    // The response may have taken longer than the lease, if the process was stopped; the timers are late then, too.
    if (answer.result === 'session-ended' || this.lease.isOver) {
      this.end();
      return false;
    }
    this.#schedule();
    if (answer.shouldSweep) sweeper.sweepSoon();
    for (const { id, orderNumber } of confirmed) {
      const holder = this.#holders.get(id);
      if (holder?.unconfirmed === orderNumber) holder.unconfirmed = undefined;
    }
    for (const { id, epoch, claim, ...orders } of answer.orders) {
      const holder = this.#holders.get(id);
      if (holder?.claim.epoch === epoch && holder.claim.claim === claim) holder.applyOrders(orders);
    }
    this.#recounts = answer.shouldReconcile ? this.#recounts + 1 : 0;
    // Don't wait for it: an order may have arrived meanwhile, and the next beat fetches it.
    if (this.#recounts >= 2 || world.clock.now() - this.#comparedAt >= COMPARE_MS)
      this.#context.background(this.#compare());
    return answer.hasMore;
  }

  /** Compares what the store lists as held with what is. Not during a take: its tasks would be taken for lost. */
  async #compare(): Promise<void> {
    const { handBack } = this.#options;
    if (this.isRequesting) return;
    this.#recounts = 0;
    this.#comparedAt = this.#context.world.clock.now();
    const [known, requests] = [new Map(this.#holders), this.requests];
    const listed = await this.#context.store.held({ session: this.id });
    if (this.isOver) return;
    const listedClaims = new Map(listed.map(({ id, claim }) => [id, claim]));
    for (const [id, holder] of known) {
      const isListed = listedClaims.get(id) === holder.claim.claim;
      if (!isListed && this.#holders.get(id) === holder) holder.onLeaseLost(new LeaseLostError(id, holder.claim.epoch));
    }
    // Requested since then: the task may be on its way to us.
    if (requests !== this.requests) return;
    const unknown = listed.filter(({ id }) => !known.has(id) && !this.#holders.has(id));
    for (const one of unknown) handBack.claim({ ...one, session: this.id });
  }

  #schedule(beatInMs?: number): void {
    this.stop();
    if (this.isIdle) return;
    const onBeat = (): void => this.#context.background(this.heartbeat());
    this.lease.set({ onBeat, onFence: () => this.#fence(), onOver: () => this.end() }, beatInMs);
  }

  #fence(): void {
    for (const holder of this.#holders.values()) holder.fence();
  }

  /** Ends this session permanently. Its tasks are lost. */
  end(): void {
    if (this.isOver) return;
    this.stop();
    this.isOver = true;
    if (this.taking !== undefined || this.isDoubtful) this.handBackUnknown();
    const holders = [...this.#holders.values()];
    this.#holders.clear();
    this.#options.onEnd();
    for (const holder of holders) holder.onLeaseLost(new LeaseLostError(holder.claim.id, holder.claim.epoch));
  }

  /** Hands back what the store may list for this session without the worker's knowledge. */
  handBackUnknown(): void {
    const { handBack } = this.#options;
    handBack.session({ session: this.id }, this.#holders.values());
  }

  /** Clears the timers, when its tasks have been handed back or ended. */
  stop(): void {
    this.lease.clear();
  }
}

function toConfirmed({ claim: { id, epoch, claim }, unconfirmed }: Holder): NonNullable<Heartbeat['confirmed']> {
  return unconfirmed === undefined ? [] : [{ id, epoch, claim, orderNumber: unconfirmed }];
}
