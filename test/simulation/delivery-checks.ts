import type { CreateReceipt, TaskStore } from '@whoa/tasks';
import type { ClaimRef, Hint } from '@whoa/tasks/store';
import type { Violation } from '../../packages/core/src/testing/history.ts';
import type { Batch, Heartbeat, HeartbeatResult, TakeRequest, TakeResult } from '../../packages/tasks/src/delivery.ts';
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
  readonly tenantOf: (id: string) => string;
  readonly violations: Violation[];
}

/** Beats are due every third of a lease: one that was asked for comes much sooner. */
const AT_ONCE_SHARE = 1 / 6;

/**
 * Judges the protocol between workers and their store where a broken step is made good by another, so that no promise to
 * users breaks: answers that are repeated, orders that are told, rings, and workers that fence themselves.
 */
export class DeliveryChecks {
  readonly #options: CheckOptions;
  /** What each take of each session handed out. */
  readonly #took = new Map<string, readonly ClaimRef[]>();
  /** The latest order that the holder of a claim has confirmed. */
  readonly #confirmed = new Map<string, number>();
  /** Workers whose last take came back short and that were not rung since. */
  readonly #parked = new Set<string>();
  /** When the request was sent that a session was last kept by, on the worker's clock, and how long that had slept. */
  readonly #kept = new Map<string, { readonly at: number; readonly slept: number }>();
  /** When a take was sent first, by its claim: a repeat is given what the first was, and keeps nothing for longer. */
  readonly #takesSent = new Map<string, number>();
  readonly #used = new Set<string>();
  readonly #processes = new Map<string, SimulatedProcess>();
  /** The session that a process began last. */
  readonly #sessions = new Map<string, string>();
  /** Tasks of which a process was told something during a beat, by session, and when. */
  readonly #missed = new Map<string, Map<string, number>>();
  /** Which tasks a process has. */
  readonly #startTask = new Set<string>();
  /** When a process asked for a task that it was given: with it came the orders that it was told of before. */
  readonly #askedAt = new Map<string, number>();
  readonly #beatsSent = new Map<string, number>();
  /** How many beats of a session have no answer yet: its worker asks again after the last of them. */
  readonly #beatsUnderWay = new Map<string, number>();
  readonly #created = new Set<string>();
  /** Under which claim a call began. */
  readonly #calls = new Map<string, ClaimRef>();
  /** When a worker was told that a session is lost, or a task of it: one take may claim several. */
  readonly #lostAt = new Map<string, number>();
  /** Claims that a process was given and has neither ended nor handed back. */
  readonly #open = new Map<string, { readonly process: SimulatedProcess; readonly claim: ClaimRef }>();
  #hasRung = false;
  #looking: Promise<void>[] = [];

  constructor(options: CheckOptions) {
    this.#options = options;
  }

  /** A process asks the store. */
  sent(process: SimulatedProcess, name: string, args: readonly unknown[]): void {
    this.#processes.set(process.name, process);
    const used = sessionIn(name, args);
    // A claim is insisted on, also under a session that was given up meanwhile.
    if (used !== undefined && !this.#used.has(used)) this.#sessions.set(process.name, used);
    if (used !== undefined) this.#used.add(used);
    if (name === 'take') this.#recordTake(process, args[0] as TakeRequest);
    if (name === 'heartbeat') {
      this.#beatsSent.set(process.name, (this.#beatsSent.get(process.name) ?? 0) + 1);
      this.#addUnderWay(used!, 1);
      // Its answer holds what was told before it was sent.
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

  /** The store did something. */
  committed({ name, args, answer, error }: Commit): void {
    if (error === undefined && name === 'take' && (answer as TakeResult).result === 'taken') {
      this.#taken(args[0] as TakeRequest, answer as Taken);
    }
    const session = sessionIn(name, args);
    if (name !== 'heartbeat' && session !== undefined && given(answer).length > 0) {
      this.#looking.push(this.#countSuspects(session));
    }
    if (error === undefined && name === 'heartbeat') this.#beaten(args[0] as Heartbeat, answer as HeartbeatResult);
    if (error === undefined && name === 'append') this.#appended(args[0] as ClaimRef, args[1] as Batch);
    if (error === undefined && name === 'create') this.#wasCreated(answer as CreateReceipt);
    this.#hasRung = false;
  }

  /** An answer has reached the process that asked for it. */
  answered(
    process: SimulatedProcess,
    { name, args, answer, error, sentAt }: Commit & { readonly sentAt: number },
  ): void {
    const session = sessionIn(name, args);
    if (error === undefined) for (const claim of given(answer)) this.#open.set(nameOf(claim), { process, claim });
    const isAnswered = error === undefined || (error as { code?: string }).code === 'LEASE_LOST';
    const isParked = name === 'park' && (answer as { result?: string } | undefined)?.result !== 'busy';
    const isEnded = (name === 'finish' && error === undefined) || (name === 'release' && isAnswered);
    if (isEnded || (isParked && isAnswered)) {
      this.#open.delete(nameOf(args[0] as ClaimRef));
    }
    if (name === 'heartbeat') this.#addUnderWay(session!, -1);
    const said = (answer as { result?: string } | undefined)?.result;
    if (session !== undefined && said === 'gone') this.#lostAt.set(session, this.#options.now());
    if (name === 'append' && (error as { code?: string } | undefined)?.code === 'LEASE_LOST') {
      const { id, claim } = args[0] as ClaimRef;
      this.#lostAt.set(`${id} ${claim}`, this.#options.now());
    }
    const isKept =
      said === 'alive' ||
      said === 'claimed' ||
      (said === 'taken' && ((answer as Partial<Taken>).tasks?.length ?? 0) > 0);
    if (session === undefined || !isKept) return;
    for (const { id } of given(answer)) this.#askedAt.set(`${process.name} ${id}`, sentAt);
    const own = process.world.clock.now();
    const kept = this.#kept.get(session);
    const at = name === 'take' ? this.#takesSent.get((args[0] as TakeRequest).claim)! : sentAt;
    if (at >= (kept?.at ?? 0)) this.#kept.set(session, { at, slept: this.#options.now() - own });
    // Who has given a session up by its own clock asks for nothing more under it, whatever the store says of it later.
    const isOver = own - (kept?.at ?? own) >= this.#options.leaseMs;
    if (name === 'heartbeat' && !isOver) this.#beatAnswered(process, session, sentAt);
  }

  /** The store tells a worker something; whether it arrives is another matter. */
  told(hint: Hint): void {
    if (hint.type !== 'work') return;
    this.#parked.delete(hint.worker);
    this.#hasRung = true;
  }

  /** A worker hears something. */
  heard(process: SimulatedProcess, hint: Hint): void {
    const missed = this.#missed.get(this.#sessions.get(process.name) ?? '');
    if (hint.type === 'command') missed?.set(hint.id, process.world.clock.now());
  }

  /** A worker says that it has begun or ended a task, or lost it. */
  reported(
    process: SimulatedProcess,
    { type, id }: { readonly type: 'task-start' | 'task-end'; readonly id: string },
  ): void {
    if (type === 'task-start') this.#startTask.add(`${process.name} ${id}`);
    else this.#startTask.delete(`${process.name} ${id}`);
  }

  #addUnderWay(session: string, count: number): void {
    this.#beatsUnderWay.set(session, (this.#beatsUnderWay.get(session) ?? 0) + count);
  }

  #recordTake(process: SimulatedProcess, { claim }: TakeRequest): void {
    if (!this.#takesSent.has(claim)) this.#takesSent.set(claim, process.world.clock.now());
  }

  #isAtWork(process: SimulatedProcess, id: string): boolean {
    return this.#startTask.has(`${process.name} ${id}`);
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

  /** Whether every process that lives has ended or handed back what it was given. */
  get areClaimsOver(): boolean {
    return [...this.#open.values()].every(({ process }) => process.isDead);
  }

  judgeClaims(): void {
    for (const { process, claim } of this.#open.values()) {
      if (process.isDead) continue;
      this.#broken('P1', `${claim.id}: ${process.name} lives, and has neither ended it nor handed it back`);
    }
  }

  /** Resolves when everything that was looked up has been judged. */
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
    const held = new Set(
      (await this.#options.store.held({ domain: 0, session })).map(({ claim, id }) => `${id} ${claim}`),
    );
    const names = (claims: readonly ClaimRef[]): string[] => claims.map(({ id, claim }) => `${id} ${claim}`).toSorted();
    const expected = names(this.#took.get(key) ?? []).filter((name) => held.has(name));
    if (expected.join() !== names(given).join()) this.#broken('P1', `${key}: a repeated take forgot what it took`);
  }

  /** Of tasks whose workers crashed repeatedly, a session holds one at most. */
  async #countSuspects(session: string): Promise<void> {
    const { store, tenantOf } = this.#options;
    const held = await store.held({ domain: 0, session });
    const tasks = await Promise.all(held.map(({ id }) => store.get({ tenant: tenantOf(id), id })));
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

  /** Whatever was ordered and is not confirmed is told, every time. */
  async #compareOrders(session: string, told: ReadonlySet<string>): Promise<void> {
    const { store, tenantOf } = this.#options;
    const held = await store.held({ domain: 0, session });
    for (const { id, claim } of held) {
      const confirmed = this.#confirmed.get(`${id} ${claim}`) ?? 0;
      const task = await store.get({ tenant: tenantOf(id), id });
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

  /** What a worker is told while it beats, the answer may not hold: it must ask again at once. */
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
      const held = store.held({ domain: 0, session });
      this.#looking.push(
        held.then((tasks) => {
          const isMissed = (id: string): boolean =>
            (missed.get(id) ?? -Infinity) > (this.#askedAt.get(`${process.name} ${id}`) ?? -Infinity);
          const id = tasks.map((task) => task.id).find((one) => isMissed(one) && this.#isAtWork(process, one));
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

/** The claims in the answer to a take or a claim. */
function given(answer: unknown): readonly ClaimRef[] {
  const { tasks = [], claim } = (answer ?? {}) as { tasks?: readonly { claim: ClaimRef }[]; claim?: ClaimRef };
  return [...tasks.map((one) => one.claim), ...(claim ? [claim] : [])];
}

const nameOf = ({ id, claim }: ClaimRef): string => `${id} ${claim}`;

/** The session under which something is asked for. */
function sessionIn(name: string, args: readonly unknown[]): string | undefined {
  if (name === 'take' || name === 'heartbeat') return (args[0] as { session: string }).session;
  return name === 'claim' ? (args[1] as { session: string }).session : undefined;
}
