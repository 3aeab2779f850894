import type { Json } from '@whoa/core';
import type { TaskStatus } from './ledger/rules/status.ts';
import type { Question } from './question.ts';
import type { ConversationRef, TaskRef } from './task.ts';

/** What operators ask of a store. Lists without a tenant cross tenants: don't show them to users. */
export interface OperatorStore {
  /** Counts a tenant's tasks by status, up to a limit. */
  counts(filter: { readonly tenant: string }): Promise<TaskCounts>;
  /** Lists the tenants that have tasks. */
  tenants(page?: PageRequest): Promise<TenantPage>;
  /** Lists the workers that hold or wait for tasks. */
  workers(options?: { readonly limit?: number }): Promise<WorkerPage>;
  /** Lists the queues that are not empty, and what is paused. */
  queues(page?: PageRequest): Promise<QueuePage>;
  /**
   * Returns what one of the store's clients found out for all, less than `maxAgeMs` ago; `undefined` while the first of them
   * does. If that is too long ago, this client calls `find`: at most one does in that time. For figures, not for decisions.
   */
  findOnce<T extends Json>(maxAgeMs: number, find: () => Promise<T | undefined>): Promise<T | undefined>;
  /** Lists the names of a tenant's conversations. */
  conversations(page: PageRequest & { readonly tenant: string }): Promise<ConversationPage>;
  /** Counts what waits for people, of all tenants. */
  figures(): Promise<StoreFigures>;
  /** Lists a tenant's open questions, oldest first. At most 200 at a time. */
  questions(page: PageRequest & { readonly tenant: string }): Promise<QuestionPage>;

  /**
   * Stops or resumes the delivery of an agent's, a tenant's or all tasks. Tasks that run continue, new ones are accepted and
   * wait, and cancels work as always.
   */
  pause(target: PauseTarget, isPaused: boolean): Promise<void>;
  /**
   * Lets an engine deliver an agent's tasks, or no longer (`undefined`), and moves those that wait. An engine is named by its
   * queue; only one can deliver an agent. With `lostBefore` what was offered to it until then is offered again.
   */
  setEngine(agent: string, engine: string | undefined, options?: EngineOptions): Promise<EngineReceipt>;
  /** Removes an ended task with its journal, or an idle conversation with its history, before its retention ends. */
  remove(target: TaskRef | ConversationRef): Promise<RemoveReceipt>;
}

/** How an agent is given to an engine. */
interface EngineOptions {
  /** The engine lost what it was offered until this time of the store. */
  readonly lostBefore?: number | undefined;
}

/** `refused`: another engine delivers this agent. */
export type EngineReceipt =
  | { readonly result: 'set'; readonly now: number }
  | { readonly result: 'refused'; readonly engine: string };

/** `live`: nothing was removed, because it has not ended yet. `unknown`: there is no such task or conversation. */
export type RemoveReceipt = { readonly result: 'removed' | 'live' | 'not-found' };

/** What waits for people. Counts stop at 20,000 open questions. */
export interface StoreFigures {
  readonly openQuestions: number;
  readonly oldestQuestionAt?: number;
  /** Tasks that have asked, while a worker holds them. */
  readonly asking: number;
  /** Tasks that wait for an answer without a worker. */
  readonly parked: number;
  readonly now: number;
}

/** How many tasks of a tenant have each status. */
export interface TaskCounts {
  readonly tenant: string;
  /** Counts stop at `limit`: a count equal to it means that many or more. Ended tasks count until their retention is over. */
  readonly statuses: Readonly<Record<TaskStatus, number>>;
  readonly limit: number;
}

/** Which page of a list. */
export interface PageRequest {
  /** The maximum number of results: at most 1,000 names, 100 of anything else. Defaults to 100. */
  readonly limit?: number | undefined;
  /** `next` of the previous page. */
  readonly cursor?: string | undefined;
}

/** Names of tenants that have tasks, in byte order. */
export interface TenantPage {
  readonly tenants: readonly string[];
  readonly next?: string;
}

/** Names of a tenant's conversations that are kept, in byte order. */
interface ConversationPage {
  readonly conversations: readonly string[];
  readonly next?: string;
}

/** Open questions of a tenant, oldest first. */
export interface QuestionPage {
  readonly questions: readonly Question[];
  readonly next?: string;
}

/** The deliveries that can be paused: one agent's tasks, one tenant's, or all, including those of tenants that come later. */
export type PauseTarget = { readonly agent: string } | { readonly tenant: string } | { readonly all: true };

/** The tasks of one tenant that are ready for one agent. Under `*`, those that any worker can settle. */
export interface Queue {
  readonly agent: string;
  readonly tenant: string;
  /** How many tasks are ready: for many, at least this many. */
  readonly ready: number;
  /** Since when the oldest of them has been ready. */
  readonly oldestReadyAt: number;
}

/** A page of queues that are not empty. Their order is up to the store. */
export interface QueuePage {
  readonly queues: readonly Queue[];
  /** How many tasks each agent has running: for many, at least this many. Only on the first page. */
  readonly running: Readonly<Record<string, number>>;
  /** How many workers wait for tasks of the agents that are listed here. */
  readonly waiting: Readonly<Record<string, number>>;
  /** At most one page of them. Only on the first page. */
  readonly paused: readonly PauseTarget[];
  /** Which engine delivers the tasks of an agent. Only on the first page. */
  readonly engines: Readonly<Record<string, string>>;
  /** The store's clock. */
  readonly now: number;
  readonly next?: string;
}

/** A worker as the store last saw it. */
interface WorkerRecord {
  readonly worker: string;
  /** How many tasks it holds: for many, at least this many. */
  readonly holds: number;
  /** Ids of the tasks it holds, at most 100, and fewer in a long list of workers. */
  readonly tasks: readonly string[];
  /** When the first of its leases expires unless renewed. Left out if it holds nothing. */
  readonly expiresAt?: number;
  /** Agents whose tasks it waits for; empty while it is at its concurrency limit. */
  readonly waitsFor: readonly string[];
}

/** The workers of a store. */
export interface WorkerPage {
  readonly workers: readonly WorkerRecord[];
  /** There are more workers than `limit`. */
  readonly hasMore: boolean;
  /** The store's clock. */
  readonly now: number;
}

/** A worker that waits, as a driver finds it. */
export interface WaiterSnapshot {
  readonly worker: string;
  readonly agents: readonly string[];
}

/** What a driver knows about workers; at most `limit` of each. */
export interface WorkersSnapshot {
  readonly sessions: readonly Required<Omit<WorkerRecord, 'waitsFor'>>[];
  readonly waiters: readonly WaiterSnapshot[];
  readonly now: number;
}

/** How many task ids are shown per worker. */
export const MAX_SHOWN_TASKS = 100;

/** Returns one record per worker, in name order. A worker has one session while it holds tasks. */
export function toWorkerPage({ sessions, waiters, now }: WorkersSnapshot, limit: number): WorkerPage {
  const found = new Map<string, WorkerRecord>();
  const change = (worker: string, add: (record: WorkerRecord) => WorkerRecord): void => {
    found.set(worker, add(found.get(worker) ?? { worker, holds: 0, tasks: [], waitsFor: [] }));
  };
  for (const { worker, holds, tasks, expiresAt } of sessions) {
    change(worker, (known) => ({
      ...known,
      holds: known.holds + holds,
      tasks: [...known.tasks, ...tasks].slice(0, MAX_SHOWN_TASKS),
      expiresAt: Math.min(known.expiresAt ?? Infinity, expiresAt),
    }));
  }
  for (const { worker, agents } of waiters) {
    change(worker, (known) => ({ ...known, waitsFor: [...new Set([...known.waitsFor, ...agents])].toSorted() }));
  }
  const workers = [...found.values()].toSorted((a, b) => (a.worker < b.worker ? -1 : 1));
  const hasMore = workers.length > limit || sessions.length > limit || waiters.length > limit;
  return { workers: workers.slice(0, limit), hasMore, now };
}
