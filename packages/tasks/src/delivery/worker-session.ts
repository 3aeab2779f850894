import type { Sent } from './lease-clock.ts';
import { retryLostResponse } from './retry-lost-response.ts';
import { Session, type SessionOptions } from './session.ts';
import type { WorkerContext } from './worker-context.ts';
import type { ClaimResult, Offer, TakenTask, TakeResult } from './worker-store.ts';

/** The sessions of this worker, one at a time, and its requests for tasks under them. */
export class WorkerSession {
  readonly #context: WorkerContext;
  readonly #options: SessionOptions;
  #current: Session;

  constructor(context: WorkerContext, options: SessionOptions) {
    this.#context = context;
    this.#options = options;
    this.#current = this.#begin();
  }

  get current(): Session {
    return this.#current;
  }

  /** Takes tasks. One take at a time; a take without a response is repeated first. */
  async take(agents: readonly string[], limit: number, offers?: readonly Offer[]): Promise<TakeResult> {
    const { store, worker, leaseMs } = this.#context;
    const { lease } = this.#current;
    // Don't take more under a session that stops its work: it would be stopped and handed back, again and again.
    if (!this.#current.isIdle && lease.isFenced) await this.#current.beatOrThrow(() => lease.isFenced);
    const session = this.#renewIfDoubtful();
    const { claim, asked } = (session.taking ??= { claim: this.#newId(), asked: session.lease.now() });
    session.requests++;
    const own = { session: session.id, worker, leaseMs, takeNumber: session.takeNumber };
    const answer = await store.take({ ...own, agents, limit, claim, ...(offers && { offers }) });
    const tasks = answer.result === 'taken' ? answer.tasks : [];
    try {
      await this.#startAll(tasks, session, () => this.#startLease(session, asked));
    } finally {
      session.taking = undefined;
      if (tasks.length > 0 || (answer.result === 'taken' && answer.isRepeat)) session.takeNumber++;
    }
    return this.#endIfGone(answer, tasks, session);
  }

  /** Claims one task. The same request is repeated while its response is lost. */
  async claim(id: string): Promise<ClaimResult> {
    const { store, worker, leaseMs } = this.#context;
    const ask = <T>(request: () => Promise<T>): Promise<T> => retryLostResponse(request, this.#context);
    const [session, claim] = [this.#renewIfDoubtful(), this.#newId()];
    const asked = session.lease.now();
    session.claiming++;
    session.requests++;
    try {
      const answer = await ask(() => store.claim(id, { session: session.id, worker, leaseMs, claim }));
      const tasks = answer.result === 'claimed' ? [answer] : [];
      await this.#startAll(tasks, session, () => ask(() => this.#startLease(session, asked)));
      return this.#endIfGone(answer, tasks, session);
    } catch (error) {
      if (session.isOver) session.handBackUnknown();
      else session.isDoubtful = true;
      throw error;
    } finally {
      session.claiming--;
    }
  }

  /** What cannot be started is handed back: here it would wait until it counts as a crash. */
  async #startAll(tasks: readonly TakenTask[], session: Session, startLease: () => Promise<void>): Promise<void> {
    try {
      if (tasks.length > 0 && !session.isOver) await startLease();
    } catch (error) {
      this.#options.handBack.refuse(tasks);
      throw error;
    }
  }

  /** Another response may have ended the session while the lease started: whoever is told so does not start the tasks. */
  #endIfGone<Answer extends TakeResult | ClaimResult>(answer: Answer, tasks: readonly TakenTask[], session: Session) {
    if (session.isOver) return this.#options.handBack.refuse(tasks);
    if (answer.result === 'session-ended') session.end();
    return answer;
  }

  /**
   * Starts the lease of the first tasks, from when they were first asked for: the store may have given them out then, and
   * a repeated request does not renew them. If that was long ago, renews them before their work starts.
   */
  async #startLease(session: Session, asked: Sent): Promise<void> {
    const { lease } = session;
    if (!session.isIdle) return;
    lease.keepFrom(asked);
    if (!lease.isBeatDue && !session.isDoubtful) return;
    const renewed = lease.now();
    const { result } = await this.#context.store.heartbeat({ session: session.id, count: 0 });
    if (session.isOver) return;
    if (result === 'alive') lease.keepFrom(renewed);
    if (result === 'session-ended' || lease.isOver) session.end();
  }

  #renewIfDoubtful(): Session {
    const session = this.#current;
    if (session.isDoubtful && session.isIdle && !session.isRequesting) session.end();
    return this.#current;
  }

  #begin(): Session {
    const onEnd = (): void => void (this.#current = this.#begin());
    return new Session(this.#newId(), this.#context, { ...this.#options, onEnd });
  }

  /** Creates an id that no worker has used before. */
  #newId(): string {
    return `${this.#context.worker}.${this.#context.world.createId()}`;
  }
}
