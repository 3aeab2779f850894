import type { TaskRef, TaskStore, TaskSummary } from '@whoa/tasks';
import type { ClaimRef } from '@whoa/tasks/store';
import { SETTLE } from '../../../packages/tasks/src/rules/rules.ts';
import { toAgent, toLaneName } from '../../../packages/tasks/src/rules/suspects.ts';

export const TENANTS: readonly string[] = ['acme', 'other'];
export const WORKERS: readonly string[] = ['w1', 'w2', 'w3'];

/** An agent that no task is for: a take for it gets only tasks to settle. */
const NO_AGENT = 'z';
const ALL = 100;

/** A request, which is the same for every store, and what the history learns from its result. */
export interface Request {
  readonly call: (store: TaskStore) => Promise<unknown>;
  readonly learn?: (result: never) => void;
  /** If it got nothing, the same request can get something later. It is not repeated then: another may be fit. */
  readonly isNew?: boolean;
  /** Which worker waits for more tasks after this, or no longer does. */
  readonly park?: (result: never) => { worker: string; agents: readonly string[]; isShort: boolean } | undefined;
}

/** What a history has made so far. */
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
  readonly #lives = new Map<string, number>();
  readonly #mode: Mode;

  constructor(mode: Mode) {
    this.#mode = mode;
  }

  get sessions(): string[] {
    return WORKERS.map((worker) => this.session(worker));
  }

  id(i: number): string {
    return this.ids.at(-1 - (i % Math.max(1, this.ids.length))) ?? 't0-nothing';
  }

  /** Most often one that holds its task, sometimes an earlier one. */
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

  /** The session of a worker. One that is over is followed by another. */
  session(worker: string): string {
    return `${worker}-s${this.#lives.get(worker) ?? 1}`;
  }

  takeNumber(worker: string): number {
    return this.#numbers.get(this.session(worker)) ?? 1;
  }

  learnCreated(receipt: { readonly result?: string; readonly task?: TaskSummary }): void {
    const { task } = receipt;
    if (task === undefined || this.ids.includes(task.id)) return;
    this.ids.push(task.id);
    if (task.key !== undefined) this.keys.push(task.key);
  }

  learnTaken({ worker, session, number = 0 }: Taker, result: Taken): void {
    if (result.result === 'session-ended' && session === this.session(worker)) {
      this.#lives.set(worker, (this.#lives.get(worker) ?? 1) + 1);
    }
    if (result.claim !== undefined) this.claims.push(result.claim);
    const { tasks = [], isRepeat = false } = result;
    if (isRepeat || tasks.length > 0) this.#numbers.set(session, Math.max(this.#numbers.get(session) ?? 1, number + 1));
    if (!isRepeat) this.claims.push(...tasks.map(({ claim }) => claim));
  }

  /**
   * Which tenant or agent comes first is up to the store, and so is which of two tasks that became ready together. So a
   * take asks for a few where neither is in question, and for everything otherwise.
   */
  takeable(agents: readonly string[], limit: number): { agents: readonly string[]; limit: number; isSorted: boolean } {
    const ready = this.tasks
      .filter(({ stage }) => stage === 'ready')
      .map((task) => ({ ...task, lane: toLaneName(task) }));
    const wanted = ready.filter(({ lane }) => lane === SETTLE || agents.includes(toAgent(lane)));
    const isDue = this.tasks.some(({ stage, stageAt = 0 }) => stage === 'delayed' && stageAt <= this.now);
    const lanes = new Set(wanted.map(({ lane, tenant }) => `${lane} ${tenant}`));
    const ranks = new Set(wanted.map(({ priority, stageAt }) => `${priority} ${this.hasGoneBack ? '' : stageAt}`));
    const isClear = !isDue && lanes.size <= 1 && ranks.size === wanted.length;
    if (isClear || this.#mode === 'lanes') return { agents, limit, isSorted: false };
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
 * `open`: no limits on what runs. `capped`: such limits, and one lane. `lanes`: limits and several lanes, for stores that
 * serve lanes in the same order.
 */
export type Mode = 'open' | 'capped' | 'lanes';
