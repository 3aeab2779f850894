import type { Queue } from '../../overview.ts';
import type { Queries, ReadyQueue, StageTables, StoredTask } from '../operations/tables.ts';
import { toReadyQueue } from '../operations/views.ts';
import { toExpiry } from '../rules/questions.ts';
import { SETTLE } from '../rules/rules.ts';
import { toAgent, toReadyQueueName } from '../rules/suspects.ts';
import { Groups, Schedule } from './ordered.ts';

type Indexed = StageTables & Pick<Queries, 'waiters' | 'queues' | 'runningByAgent'>;

/** Finds tasks by stage. */
export class TaskIndexes {
  readonly #task: (id: string) => StoredTask | undefined;
  /** By ready queue and priority. */
  readonly #ready = new Groups();
  /** By ready queue: the priorities in use. */
  readonly #priorities = new Map<string, Map<number, number>>();
  readonly #readyAgents = new Map<string, Map<string, number>>();
  /** By agent and tenant: when a ready queue was last served. */
  readonly #readyQueues = new Map<string, Map<string, number>>();
  /** Ready tasks that engines deliver. */
  readonly #offered = new Set<string>();
  readonly #held = new Groups();
  readonly #pendingOrders = new Groups();
  readonly #later: Schedule<string>;
  /** Deadlines of tasks that wait. */
  readonly #deadlines: Schedule<string>;
  /** What expires of tasks that wait for answers. */
  readonly #expiries: Schedule<string>;
  readonly #waiters = new Map<string, { readonly agents: ReadonlySet<string>; readonly at: number }>();
  #tick = 0;

  constructor(task: (id: string) => StoredTask | undefined) {
    this.#task = task;
    this.#later = new Schedule((id, at) => {
      const found = task(id);
      return found?.stage === 'delayed' && found.stageAt === at;
    });
    this.#deadlines = new Schedule((id, at) => {
      const found = task(id);
      return found?.status === 'init' && found.deadline === at;
    });
    this.#expiries = new Schedule((id, at) => toExpiry(task(id) ?? {}) === at);
  }

  change(before: StoredTask | undefined, after: StoredTask | undefined): void {
    const expiry = after && toExpiry(after);
    if (expiry !== undefined && expiry !== toExpiry(before ?? {})) this.#expiries.add(after!.id, expiry);
    if (before !== undefined && after !== undefined && isSamePosition(before, after)) {
      // Don't remove it and add it again: it would move behind newer ones.
      if (after.stage === 'held') this.#indexOrders(after);
      return;
    }
    if (after?.status === 'init' && before?.status !== 'init' && after.deadline !== undefined) {
      this.#deadlines.add(after.id, after.deadline);
    }
    if (before !== undefined) this.#remove(before);
    if (after !== undefined) this.#add(after);
    if (after?.stage === 'delayed' && !(before?.stage === 'delayed' && before.stageAt === after.stageAt)) {
      this.#later.add(after.id, after.stageAt!);
    }
  }

  readonly operations: Indexed = {
    openReadyQueue: ({ agent, tenant }) => {
      const readyQueues = this.#readyQueues.get(agent) ?? new Map<string, number>();
      this.#readyQueues.set(agent, readyQueues);
      if (!readyQueues.has(tenant)) readyQueues.set(tenant, ++this.#tick);
    },
    closeReadyQueue: ({ agent, tenant }) => this.#readyQueues.get(agent)?.delete(tenant),
    hasReservedQueues: () => true,
    firstReadyQueue: (agents) => this.#firstReadyQueue(agents),
    rotateReadyQueue: ({ agent, tenant }) => {
      const readyQueues = this.#readyQueues.get(agent)!;
      readyQueues.delete(tenant);
      readyQueues.set(tenant, ++this.#tick);
    },
    firstReady: (readyQueue) => this.#firstReady(readyQueue),
    countReady: (readyQueue) => this.#readyAgents.get(readyQueue.tenant)?.get(readyQueue.agent) ?? 0,
    readyQueueNames: (tenant) => [...(this.#readyAgents.get(tenant)?.keys() ?? [])].filter((agent) => agent !== SETTLE),
    countHeld: (of) => this.#held.count('tenant' in of ? `tenant ${of.tenant}` : `agent ${of.agent}`),
    readyIn: (names, limit) => {
      const keys = [...this.#priorities].flatMap(([key, priorities]) =>
        names.includes((JSON.parse(key) as string[])[0]!) ? [...priorities.keys()].map((one) => `${key} ${one}`) : [],
      );
      return keys.flatMap((key) => this.#ready.some(key, limit).map((id) => this.#task(id)!)).slice(0, limit);
    },
    lostOffers: ({ readyAt, offeredAt }, limit) =>
      this.#someOffered(limit, (task) =>
        task.offeredAt === undefined ? task.stageAt! <= readyAt : task.offeredAt <= offeredAt,
      ),
    offeredAgain: (of, until, limit) =>
      this.#someOffered(limit, (task) => {
        const isOf = 'tenant' in of ? task.tenant === of.tenant : task.agent === of.agent;
        return isOf && task.offeredAt !== undefined && task.offeredAt <= until;
      }),
    due: (now, limit) => this.#due(now, limit),
    nextDelayedAt: () => this.#later.first()?.at,
    firstOverdue: (now) => {
      const first = this.#deadlines.first();
      return first === undefined || first.at > now ? undefined : this.#task(first.item);
    },
    firstExpired: (now) => {
      const first = this.#expiries.first();
      return first === undefined || first.at > now ? undefined : this.#task(first.item);
    },
    heldBy: (session, limit) => this.#held.some(`session ${session}`, limit).map((id) => this.#task(id)!),
    countHeldBy: (session) => this.#held.count(`session ${session}`),
    withPendingOrders: (session, limit) => this.#pendingOrders.some(session, limit).map((id) => this.#task(id)!),
    park: (worker, agents, at) => void this.#waiters.set(worker, { agents: new Set(agents), at }),
    unpark: (worker) => void this.#waiters.delete(worker),
    takeWaiter: (agent, since) => this.#takeWaiter(agent, since),
    waiters: (since, limit) =>
      [...this.#waiters]
        .filter(([, { at }]) => at >= since)
        .slice(0, limit)
        .map(([worker, { agents }]) => ({ worker, agents: [...agents] })),
    runningByAgent: () => Object.fromEntries(this.#held.counts('agent ')),
    queues: (after, limit) => this.#queues(after === undefined ? '' : toQueueKey(after), limit),
  };

  #queues(after: string, limit: number): Queue[] {
    const queues = new Map<string, Queue>();
    for (const key of this.#priorities.keys()) {
      const [readyQueue, tenant] = JSON.parse(key) as [string, string];
      const first = [...this.#priorities.get(key)!.keys()].map((priority) => this.#ready.first(`${key} ${priority}`));
      const queue = { agent: toAgent(readyQueue), tenant };
      const name = toQueueKey(queue);
      const { ready, oldestReadyAt } = queues.get(name) ?? { ready: 0, oldestReadyAt: Infinity };
      queues.set(name, {
        ...queue,
        ready: ready + this.operations.countReady({ agent: readyQueue, tenant }, Infinity),
        oldestReadyAt: Math.min(oldestReadyAt, ...first.map((id) => this.#found(id)!.stageAt!)),
      });
    }
    const names = [...queues.keys()].filter((name) => name > after).toSorted();
    return names.slice(0, limit).map((name) => queues.get(name)!);
  }

  #someOffered(limit: number, isWanted: (task: StoredTask) => boolean): StoredTask[] {
    return [...this.#offered]
      .map((id) => this.#task(id)!)
      .filter(isWanted)
      .slice(0, limit);
  }

  #indexOrders({ id, session, hasPendingOrders }: StoredTask): void {
    if (hasPendingOrders) this.#pendingOrders.add(session!, id);
    else this.#pendingOrders.delete(session!, id);
  }

  #add(task: StoredTask): void {
    const { id, tenant, agent, stage, session } = task;
    if (stage === 'ready') this.#countReady(task, 1);
    if (stage === 'ready' && task.isOffered === true) this.#offered.add(id);
    if (stage === 'held') {
      for (const group of [`tenant ${tenant}`, `agent ${agent}`, `session ${session}`]) this.#held.add(group, id);
      this.#indexOrders(task);
    }
  }

  #remove(task: StoredTask): void {
    const { id, tenant, agent, stage, session } = task;
    if (stage === 'ready') this.#countReady(task, -1);
    this.#offered.delete(id);
    if (stage === 'held') {
      for (const group of [`tenant ${tenant}`, `agent ${agent}`, `session ${session}`]) this.#held.delete(group, id);
      this.#pendingOrders.delete(session!, id);
    }
  }

  #countReady(task: StoredTask, change: 1 | -1): void {
    const readyQueue = toReadyQueue(task);
    const key = toQueueKey(readyQueue);
    const group = `${key} ${task.priority}`;
    if (change === 1) this.#ready.add(group, task.id);
    else this.#ready.delete(group, task.id);
    const priorities = this.#priorities.get(key) ?? new Map<number, number>();
    this.#priorities.set(key, priorities);
    count(priorities, task.priority, change);
    const agents = this.#readyAgents.get(readyQueue.tenant) ?? new Map<string, number>();
    this.#readyAgents.set(readyQueue.tenant, agents);
    count(agents, readyQueue.agent, change);
    if (priorities.size === 0) this.#priorities.delete(key);
    if (agents.size === 0) this.#readyAgents.delete(readyQueue.tenant);
  }

  #firstReady(readyQueue: ReadyQueue): StoredTask | undefined {
    const key = toQueueKey(readyQueue);
    const priorities = this.#priorities.get(key);
    if (priorities === undefined) return undefined;
    return this.#found(this.#ready.first(`${key} ${Math.max(...priorities.keys())}`));
  }

  #firstReadyQueue(agents: readonly string[]): ReadyQueue | undefined {
    let [readyQueue, first]: [ReadyQueue | undefined, number] = [undefined, Infinity];
    for (const agent of agents) {
      for (const [tenant, tick] of this.#readyQueues.get(agent) ?? []) {
        if (tick < first) [readyQueue, first] = [{ agent, tenant }, tick];
        // The oldest entry of an agent comes first.
        break;
      }
    }
    return readyQueue;
  }

  #due(now: number, limit: number): StoredTask[] {
    const due: StoredTask[] = [];
    for (let first = this.#later.first(); first !== undefined && first.at <= now; first = this.#later.first()) {
      if (due.length >= limit) break;
      due.push(this.#task(first.item)!);
      this.#later.shift();
    }
    return due;
  }

  #takeWaiter(agent: string, since: number): string | undefined {
    for (const [worker, { agents, at }] of this.#waiters) {
      const isGone = at < since;
      if (!isGone && agent !== SETTLE && !agents.has(agent)) continue;
      this.#waiters.delete(worker);
      if (!isGone) return worker;
    }
    return undefined;
  }

  #found(id: string | undefined): StoredTask | undefined {
    return id === undefined ? undefined : this.#task(id);
  }
}

function isSamePosition(before: StoredTask, after: StoredTask): boolean {
  const isSameStage = before.stage === after.stage && before.stageAt === after.stageAt;
  const isSameReadyQueue = after.stage !== 'ready' || toReadyQueueName(before) === toReadyQueueName(after);
  return isSameStage && before.session === after.session && isSameReadyQueue;
}

function count<Key>(counts: Map<Key, number>, key: Key, change: number): void {
  const left = (counts.get(key) ?? 0) + change;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}

function toQueueKey({ agent, tenant }: ReadyQueue): string {
  return JSON.stringify([agent, tenant]);
}
