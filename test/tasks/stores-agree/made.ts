import type { TaskRef, TaskStore, TaskSummary } from '@whoa/tasks';
import type { ClaimRef } from '@whoa/tasks/store';
import { SETTLE } from '../../../packages/tasks/src/ledger/rules/rules.ts';
import { toAgent, toReadyQueueName } from '../../../packages/tasks/src/ledger/rules/suspects.ts';

export const TENANTS: readonly string[] = ['acme', 'other'];
export const WORKERS: readonly string[] = ['w1', 'w2', 'w3'];

/** An agent that no task is for: a take for it gets only tasks to settle. */
const NO_AGENT = 'z';
const ALL = 100;

/** A request, the same for every store, and what the history learns from its result. */
export interface Request {
  readonly call: (store: TaskStore) => Promise<unknown>;
  readonly learn?: (result: never) => void;
  /** If it returned nothing, a repeat could return something later, so it is not repeated. */
  readonly isNew?: boolean;
  /** Which worker waits for more tasks after this, or no longer does. */
  readonly park?: (result: never) => { worker: string; agents: readonly string[]; isShort: boolean } | undefined;
}

/** Everything that a history has created so far. */
export class Made {
  now = 0;
  /** Then a task that became ready later can have an earlier time. */
  hasGoneBack = false;
  step = 0;
  readonly ids: string[] = [];
  readonly keys: string[] = [];
  readonly claims: ClaimRef[] = [];
  readonly questions: string[] = [];
  readonly requests: Request[] = [];
  /** Heads of all tasks, as the first store shows them. */
  tasks: readonly TaskSummary[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #sessionNumbers = new Map<string, number>();
  readonly #mode: Mode;

  constructor(mode: Mode) {
    this.#mode = mode;
  }

  get sessions(): string[] {
    return WORKERS.map((worker) => this.session(worker));
  }

  id(i: number): string {
    return this.ids.at(-1 - (i % Math.max(1, this.ids.length))) ?? 't-nothing';
  }

  /** Usually one that holds its task, sometimes an earlier one. */
  claim(i: number): ClaimRef {
    const held = this.claims.filter(({ id, epoch }) =>
      this.tasks.some((task) => task.id === id && task.epoch === epoch && task.stage === 'held'),
    );
    const claims = i < 4 && held.length > 0 ? held : this.claims;
    const none = { id: this.id(i), epoch: 1, session: 'none', claim: 'none' };
    return claims.at(-1 - (i % Math.max(1, claims.length))) ?? none;
  }

  question(i: number): string {
    return this.questions.at(-1 - (i % Math.max(1, this.questions.length))) ?? `${this.id(i)}.none`;
  }

  /** Most often with the task's own tenant. */
  ref(i: number, tenant: string): TaskRef {
    const id = this.id(i);
    const own = this.tasks.find((task) => task.id === id)?.tenant;
    return { tenant: i < 4 ? (own ?? tenant) : tenant, id };
  }

  /** A worker's session. A new one follows when it has ended. */
  session(worker: string): string {
    return `${worker}-s${this.#sessionNumbers.get(worker) ?? 1}`;
  }

  takeNumber(worker: string): number {
    return this.#numbers.get(this.session(worker)) ?? 1;
  }

  mostOftenTaking(): string {
    return WORKERS.toSorted((a, b) => this.takeNumber(b) - this.takeNumber(a))[0]!;
  }

  learnCreated(receipt: { readonly result?: string; readonly task?: TaskSummary }): void {
    const { task } = receipt;
    if (task === undefined || this.ids.includes(task.id)) return;
    this.ids.push(task.id);
    if (task.key !== undefined) this.keys.push(task.key);
  }

  learnTaken({ worker, session, number = 0 }: Taker, result: Taken): void {
    if (result.result === 'session-ended' && session === this.session(worker)) {
      this.#sessionNumbers.set(worker, (this.#sessionNumbers.get(worker) ?? 1) + 1);
    }
    if (result.claim !== undefined) this.claims.push(result.claim);
    const { tasks = [], isRepeat = false } = result;
    if (isRepeat || tasks.length > 0) this.#numbers.set(session, Math.max(this.#numbers.get(session) ?? 1, number + 1));
    if (!isRepeat) this.claims.push(...tasks.map(({ claim }) => claim));
  }

  /**
   * The store decides which tenant or agent comes first, and which of two tasks that became ready together. So a take
   * asks for a few tasks where the order is unambiguous, and for all of them otherwise.
   */
  takeable(agents: readonly string[], limit: number): { agents: readonly string[]; limit: number; isSorted: boolean } {
    const ready = this.tasks
      .filter(({ stage }) => stage === 'ready')
      .map((task) => ({ ...task, readyQueue: toReadyQueueName(task) }));
    const wanted = ready.filter(({ readyQueue }) => readyQueue === SETTLE || agents.includes(toAgent(readyQueue)));
    const isDue = this.tasks.some(({ stage, stageAt = 0 }) => stage === 'delayed' && stageAt <= this.now);
    const readyQueues = new Set(wanted.map(({ readyQueue, tenant }) => `${readyQueue} ${tenant}`));
    const ranks = new Set(wanted.map(({ priority, stageAt }) => `${priority} ${this.hasGoneBack ? '' : stageAt}`));
    const isClear = !isDue && readyQueues.size <= 1 && ranks.size === wanted.length;
    if (isClear || this.#mode === 'ready-queues') return { agents, limit, isSorted: false };
    return { agents: this.#mode === 'capped' ? [NO_AGENT] : agents, limit: ALL, isSorted: true };
  }
}

interface Taker {
  readonly worker: string;
  readonly session: string;
  readonly number?: number;
}

export interface Taken {
  readonly result?: string;
  readonly tasks?: readonly { readonly claim: ClaimRef }[];
  readonly isRepeat?: boolean;
  readonly claim?: ClaimRef;
}

/**
 * `open`: no limits on running tasks. `capped`: limits, and one ready queue. `ready-queues`: limits and several ready
 * queues, for stores that serve them in the same order.
 */
export type Mode = 'open' | 'capped' | 'ready-queues';
