import type { CreateReceipt, TaskStore } from '@whoa/tasks';
import type { ClaimRef, Hint } from '@whoa/tasks/store';
import type { Violation } from '../../packages/core/src/testing/history.ts';
import type {
  Batch,
  Heartbeat,
  HeartbeatResult,
  TakeRequest,
  TakeResult,
} from '../../packages/tasks/src/delivery/worker-store.ts';
import type { Commit } from './network.ts';
import type { SimulatedProcess } from './process.ts';
import type { Effect } from './work.ts';

type Taken = Extract<TakeResult, { result: 'taken' }>;

interface CheckOptions {
  readonly store: TaskStore;
  readonly leaseMs: number;
  readonly now: () => number;
  /** Runs later, by the simulated clock. */
  readonly after: (ms: number, happen: () => void) => void;
  readonly getTenant: (id: string) => string;
  readonly violations: Violation[];
}

/** Heartbeats are due every third of a lease; a requested one comes much sooner. */
const AT_ONCE_SHARE = 1 / 6;
/** More than a run creates. */
const MAX_TASKS = 1_000;

/**
 * Checks the protocol between workers and their store for mistakes that another step repairs, so that they break no
 * promise to users: repeated results, delivered orders, notifications, and workers that fence themselves.
 */
export class DeliveryChecks {
  readonly #options: CheckOptions;
  /** The claims that each take returned, by session. */
  readonly #took = new Map<string, readonly ClaimRef[]>();
  /** The latest order that the holder of a claim has confirmed. */
  readonly #confirmed = new Map<string, number>();
  /** Workers whose last take returned fewer tasks than requested and that have not been notified since. */
  readonly #parked = new Set<string>();
  /**
   * When the request was sent that last extended a session, on the worker's clock, and how long the worker had slept by
   * then.
   */
  readonly #kept = new Map<string, { readonly at: number; readonly slept: number }>();
  /** When a take was first sent, by its claim: a repeat returns the first result, and extends nothing. */
  readonly #takesSent = new Map<string, number>();
  readonly #used = new Set<string>();
  readonly #processes = new Map<string, SimulatedProcess>();
  /** The latest session of each process. */
  readonly #sessions = new Map<string, string>();
  /** Tasks for which a process received a hint during a heartbeat, by session, and when. */
  readonly #missed = new Map<string, Map<string, number>>();
  /** The tasks that each process runs. */
  readonly #running = new Set<string>();
  /** When a process requested a task that it got: the result also had its earlier orders. */
  readonly #askedAt = new Map<string, number>();
  readonly #beatsSent = new Map<string, number>();
  /** Heartbeats of a session without a response: the worker sends another after the last of them. */
  readonly #beatsUnderWay = new Map<string, number>();
  readonly #created = new Set<string>();
  /** The claim under which each call started. */
  readonly #calls = new Map<string, ClaimRef>();
  /** When a worker learned that it had lost a session, or a task of it: one take may claim several. */
  readonly #lostAt = new Map<string, number>();
  /** Claims that a process got and has neither ended nor released. */
  readonly #open = new Map<string, { readonly process: SimulatedProcess; readonly claim: ClaimRef }>();
  #hasRung = false;
  #looking: Promise<void>[] = [];

  constructor(options: CheckOptions) {
    this.#options = options;
  }

  /** A process sends a request. */
  sent(process: SimulatedProcess, name: string, args: readonly unknown[]): void {
    this.#processes.set(process.name, process);
    const used = findSession(name, args);
    // A claim is retried even under a session that was given up meanwhile.
    if (used !== undefined && !this.#used.has(used)) this.#sessions.set(process.name, used);
    if (used !== undefined) this.#used.add(used);
    if (name === 'take') this.#recordTake(process, args[0] as TakeRequest);
    if (name === 'heartbeat') {
      this.#beatsSent.set(process.name, (this.#beatsSent.get(process.name) ?? 0) + 1);
      this.#addUnderWay(used!, 1);
      // Its result includes the hints from before it was sent.
      this.#missed.set(used!, new Map());
    }
    if (name !== 'append') return;
    const { id, session } = args[0] as ClaimRef;
    const { leaseMs, now } = this.#options;
    const own = process.world.clock.now();
    const kept = this.#kept.get(session) ?? { at: own, slept: now() - own };
    if (session !== this.#sessions.get(process.name)) {
      this.#broken('P10', `${id}: ${process.name} wrote under a session that it had given up`);
    }
    if (own - kept.at >= leaseMs) {
      this.#broken('P10', `${id}: ${process.name} wrote though its lease was over by its own clock`);
    }
    if (now() - own - kept.slept > leaseMs / 2) {
      this.#broken('P10', `${id}: ${process.name} slept, and wrote before it asked whether it still has the task`);
    }
  }

  /** The store has executed an operation. */
  committed({ name, args, answer, error }: Commit): void {
    if (error === undefined && name === 'take' && (answer as TakeResult).result === 'taken') {
      this.#taken(args[0] as TakeRequest, answer as Taken);
    }
    const session = findSession(name, args);
    if (name !== 'heartbeat' && session !== undefined && given(answer).length > 0) {
      this.#looking.push(this.#countSuspects(session));
    }
    if (error === undefined && name === 'heartbeat') this.#beaten(args[0] as Heartbeat, answer as HeartbeatResult);
    if (error === undefined && name === 'append') this.#appended(args[0] as ClaimRef, args[1] as Batch);
    if (error === undefined && name === 'create') this.#wasCreated(answer as CreateReceipt);
    this.#hasRung = false;
  }

  /** A response has reached the process that sent the request. */
  answered(
    process: SimulatedProcess,
    { name, args, answer, error, sentAt }: Commit & { readonly sentAt: number },
  ): void {
    const session = findSession(name, args);
    if (error === undefined)
      for (const claim of given(answer)) this.#open.set(describeClaim(claim), { process, claim });
    const isAnswered = error === undefined || (error as { code?: string }).code === 'LEASE_LOST';
    const isParked = name === 'park' && (answer as { result?: string } | undefined)?.result !== 'busy';
    const isEnded = (name === 'finish' && error === undefined) || (name === 'release' && isAnswered);
    if (isEnded || (isParked && isAnswered)) {
      this.#open.delete(describeClaim(args[0] as ClaimRef));
    }
    if (name === 'heartbeat') this.#addUnderWay(session!, -1);
    const result = (answer as { result?: string } | undefined)?.result;
    if (session !== undefined && result === 'session-ended') this.#lostAt.set(session, this.#options.now());
    if (name === 'append' && (error as { code?: string } | undefined)?.code === 'LEASE_LOST') {
      const { id, claim } = args[0] as ClaimRef;
      this.#lostAt.set(`${id} ${claim}`, this.#options.now());
    }
    const isKept =
      result === 'alive' ||
      result === 'claimed' ||
      (result === 'taken' && ((answer as Partial<Taken>).tasks?.length ?? 0) > 0);
    if (session === undefined || !isKept) return;
    for (const { id } of given(answer)) this.#askedAt.set(`${process.name} ${id}`, sentAt);
    const own = process.world.clock.now();
    const kept = this.#kept.get(session);
    const at = name === 'take' ? this.#takesSent.get((args[0] as TakeRequest).claim)! : sentAt;
    if (at >= (kept?.at ?? 0)) this.#kept.set(session, { at, slept: this.#options.now() - own });
    // A worker that has given a session up by its own clock requests nothing more under it, whatever the store returns later.
    const isOver = own - (kept?.at ?? own) >= this.#options.leaseMs;
    if (name === 'heartbeat' && !isOver) this.#beatAnswered(process, session, sentAt);
  }

  /** The store sends a hint, which may not arrive. */
  sentHint(hint: Hint): void {
    if (hint.type !== 'ready') return;
    this.#parked.delete(hint.worker);
    this.#hasRung = true;
  }

  /** A worker receives a hint. */
  receivedHint(process: SimulatedProcess, hint: Hint): void {
    const missed = this.#missed.get(this.#sessions.get(process.name) ?? '');
    if (hint.type === 'command') missed?.set(hint.id, process.world.clock.now());
  }

  /** A worker reports that it has started or ended a task, or lost it. */
  reported(
    process: SimulatedProcess,
    { type, id }: { readonly type: 'task-start' | 'task-end' | 'task-left'; readonly id: string },
  ): void {
    if (type === 'task-start') this.#running.add(`${process.name} ${id}`);
    else this.#running.delete(`${process.name} ${id}`);
  }

  #addUnderWay(session: string, count: number): void {
    this.#beatsUnderWay.set(session, (this.#beatsUnderWay.get(session) ?? 0) + count);
  }

  #recordTake(process: SimulatedProcess, { claim }: TakeRequest): void {
    if (!this.#takesSent.has(claim)) this.#takesSent.set(claim, process.world.clock.now());
  }

  #isRunning(process: SimulatedProcess, id: string): boolean {
    return this.#running.has(`${process.name} ${id}`);
  }

  /** A tool did something. */
  effect({ callId, tool, process, phase }: Effect): void {
    const { id, session, claim } = this.#calls.get(callId) ?? { session: '', claim: '' };
    const lostAt = this.#lostAt.get(`${id} ${claim}`) ?? this.#lostAt.get(session) ?? Infinity;
    if (phase === 'end' && lostAt < this.#options.now()) {
      this.#broken('P4', `${id}: ${tool} ran to its end in ${process}, which knew that it had lost the task`);
    }
    const kept = this.#kept.get(session);
    if (phase !== 'begin' || kept === undefined) return;
    const { leaseMs, now } = this.#options;
    const own = this.#processes.get(process)!.world.clock.now();
    if (own - kept.at >= leaseMs) {
      this.#broken('P4', `${id}: ${tool} began in ${process}, whose lease was over by its own clock`);
    }
    if (now() - own - kept.slept > leaseMs / 2) {
      this.#broken('P4', `${id}: ${tool} began in ${process}, which had slept, before it asked for the task`);
    }
  }

  /** Whether every living process has ended or released the tasks that it got. */
  get areClaimsOver(): boolean {
    return [...this.#open.values()].every(({ process }) => process.isDead);
  }

  judgeClaims(): void {
    for (const { process, claim } of this.#open.values()) {
      if (process.isDead) continue;
      this.#broken('P1', `${claim.id}: ${process.name} lives, and has neither ended it nor handed it back`);
    }
  }

  /** Resolves when all pending lookups have been verified. */
  async settled(): Promise<void> {
    while (this.#looking.length > 0) await Promise.all(this.#looking.splice(0));
  }

  #taken({ session, takeNumber, worker, limit }: TakeRequest, { tasks, isRepeat }: Taken): void {
    const key = `${session} ${takeNumber}`;
    if (isRepeat) this.#looking.push(this.#compareRepeat(session, { given: tasks.map(({ claim }) => claim), key }));
    else
      this.#took.set(
        key,
        tasks.map(({ claim }) => claim),
      );
    if (isRepeat) return;
    if (tasks.length < limit) this.#parked.add(worker);
    else this.#parked.delete(worker);
  }

  #appended(by: ClaimRef, { events }: Batch): void {
    for (const event of events) {
      const { type, callId } = event as { type?: string; callId?: string };
      if (type === 'call-intent') this.#calls.set(callId!, by);
    }
  }

  async #compareRepeat(session: string, { given, key }: { given: readonly ClaimRef[]; key: string }): Promise<void> {
    const held = new Set((await this.#options.store.held({ session })).map(({ claim, id }) => `${id} ${claim}`));
    const names = (claims: readonly ClaimRef[]): string[] => claims.map(({ id, claim }) => `${id} ${claim}`).toSorted();
    const expected = names(this.#took.get(key) ?? []).filter((name) => held.has(name));
    if (expected.join() !== names(given).join()) this.#broken('P1', `${key}: a repeated take forgot what it took`);
  }

  /** A session holds at most one task whose workers crashed repeatedly. */
  async #countSuspects(session: string): Promise<void> {
    const { store, getTenant } = this.#options;
    const held = await store.held({ session });
    const tasks = await Promise.all(held.map(({ id }) => store.get({ tenant: getTenant(id), id })));
    const suspects = tasks.filter((task) => task?.status === 'running' && task.attempts > 2);
    if (suspects.length > 1) this.#broken('P1', `${session}: it holds ${suspects.length} suspects`);
  }

  #beaten({ session, confirmed = [] }: Heartbeat, answer: HeartbeatResult): void {
    if (answer.result !== 'alive') return;
    for (const { claim, id, orderNumber } of confirmed) {
      const key = `${id} ${claim}`;
      this.#confirmed.set(key, Math.max(orderNumber, this.#confirmed.get(key) ?? 0));
    }
    if (!answer.hasMore) this.#looking.push(this.#compareOrders(session, new Set(answer.orders.map(({ id }) => id))));
  }

  /** Every heartbeat returns all orders that are not confirmed yet. */
  async #compareOrders(session: string, told: ReadonlySet<string>): Promise<void> {
    const { store, getTenant } = this.#options;
    const held = await store.held({ session });
    for (const { id, claim } of held) {
      const confirmed = this.#confirmed.get(`${id} ${claim}`) ?? 0;
      // Not `get`: it makes what is due happen, which is an order from after the heartbeat.
      const { tasks } = await store.list({ tenant: getTenant(id), limit: MAX_TASKS });
      const task = tasks.find((one) => one.id === id);
      if (task !== undefined && task.orderNumber > confirmed && !told.has(id)) {
        this.#broken('P3', `${id}: order ${task.orderNumber} is not delivered, and only ${confirmed} was confirmed`);
      }
    }
  }

  #wasCreated(receipt: CreateReceipt): void {
    if (receipt.result !== 'created') return;
    const { id, stage } = receipt.task;
    const isNew = !this.#created.has(id);
    this.#created.add(id);
    if (isNew && stage === 'ready' && this.#parked.size > 0 && !this.#hasRung) {
      this.#broken('P2', `${id}: it is ready, workers wait for it, and none was rung`);
    }
  }

  /** A heartbeat's result may miss a hint that arrives while it runs, so the worker must send another right away. */
  #beatAnswered(process: SimulatedProcess, session: string, sentAt: number): void {
    const { store, leaseMs, after } = this.#options;
    if (this.#beatsUnderWay.get(session) !== 0) return;
    const missed = this.#missed.get(session);
    this.#missed.delete(session);
    if (missed === undefined || missed.size === 0 || process.world.clock.now() - sentAt > leaseMs / 2) return;
    const [beats, stops] = [this.#beatsSent.get(process.name), process.stops];
    after(leaseMs * AT_ONCE_SHARE, () => {
      if (this.#beatsSent.get(process.name) !== beats || process.stops !== stops) return;
      if (this.#sessions.get(process.name) !== session) return;
      const held = store.held({ session });
      this.#looking.push(
        held.then((tasks) => {
          const isMissed = (id: string): boolean =>
            (missed.get(id) ?? -Infinity) > (this.#askedAt.get(`${process.name} ${id}`) ?? -Infinity);
          const id = tasks.map((task) => task.id).find((one) => isMissed(one) && this.#isRunning(process, one));
          if (id !== undefined)
            this.#broken('P3', `${id}: ${process.name} was notified of an order and did not ask for it`);
        }),
      );
    });
  }

  #broken(promise: Violation['promise'], what: string): void {
    this.#options.violations.push({ promise, what });
  }
}

/** The claims in the result of a take or a claim. */
function given(answer: unknown): readonly ClaimRef[] {
  const { tasks = [], claim } = (answer ?? {}) as { tasks?: readonly { claim: ClaimRef }[]; claim?: ClaimRef };
  return [...tasks.map((one) => one.claim), ...(claim ? [claim] : [])];
}

const describeClaim = ({ id, claim }: ClaimRef): string => `${id} ${claim}`;

/** The session of a request. */
function findSession(name: string, args: readonly unknown[]): string | undefined {
  if (name === 'take' || name === 'heartbeat') return (args[0] as { session: string }).session;
  return name === 'claim' ? (args[1] as { session: string }).session : undefined;
}
