import { applyAnswer, expireQuestions } from '../operations/answer.ts';
import { applyCancel, applyCancelConversation, applySend, endOverdue, markWatched } from '../operations/cancel.ts';
import { applyCreate } from '../operations/create.ts';
import { applyPause, applyRemove, applyShare } from '../operations/operate.ts';
import { loadOf } from '../operations/orders.ts';
import { applyBeat, applyHeld, applySweep } from '../operations/session.ts';
import {
  headOf,
  type OperationContext,
  type Queries,
  recordOf,
  type StoredTask,
  type Tables,
  toQuestion,
} from '../operations/tables.ts';
import { applyClaim, applyTake } from '../operations/take.ts';
import { applyAppend, applyFinish, applyPark, applyRelease, getClaimedTask } from '../operations/work.ts';
import { MAX_SHOWN_TASKS, type WorkersSnapshot } from '../overview.ts';
import { DEFAULTS, LIMITS } from '../rules/rules.ts';
import { byStatus } from '../status.ts';
import type { Hint, ListPage, WatchFilter } from '../store.ts';
import type { ConversationRecord, ConversationRef, TaskRef } from '../task.ts';
import type { ListRequest, StoreDriver, StoreRules } from './driver.ts';

/** The part of a local store that differs: how it makes a transaction and notifies watchers. */
export interface Engine extends AsyncDisposable {
  readonly name: string;
  /** For use inside `transact` and `query`. */
  readonly tables: Tables & Queries;
  now(): number;
  /** Runs work as one transaction. */
  transact<T>(work: () => T): Promise<T>;
  /** Runs reads. */
  query<T>(work: () => T): Promise<T>;
  watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable>;
}

/** Creates a driver from an engine: every method is one operation in one transaction. */
export function createLocalDriver(engine: Engine, rules: StoreRules): StoreDriver {
  const isForgotten = (task: StoredTask): boolean => (task.endedAt ?? Infinity) + rules.retentionMs <= engine.now();

  /** Hides tasks past their retention, whether or not they have been removed yet. */
  const tables: Tables & Queries = {
    ...engine.tables,
    task: (id) => {
      const task = engine.tables.task(id);
      return task === undefined || isForgotten(task) ? undefined : task;
    },
  };
  const transact = <T>(work: (moment: OperationContext) => T): Promise<T> =>
    engine.transact(() => work({ tables, now: engine.now(), rules }));
  const visible = (ref: TaskRef): StoredTask | undefined => {
    const task = tables.task(ref.id);
    return task?.tenant === ref.tenant ? task : undefined;
  };

  return {
    name: engine.name,
    domains: 1,
    create: (request) =>
      transact((moment) => {
        forget(tables, moment, LIMITS.maxPurged);
        return applyCreate(request, moment);
      }),
    take: (request) => transact((moment) => applyTake(request, moment)),
    claim: (id, request) => transact((moment) => applyClaim(id, request, moment)),
    load: (claim) => engine.query(() => loadOf(getClaimedTask(tables, claim), tables)),
    heartbeat: (beat) => transact((moment) => applyBeat(beat, moment)),
    held: (session) => engine.query(() => applyHeld(session, { tables })),
    sweep: ({ limit }) =>
      transact((moment) => {
        const isMoreOld = forget(tables, moment, limit);
        const isMoreOverdue = endOverdue(limit, moment);
        const isMoreExpired = expireQuestions(limit, moment);
        const answer = applySweep(limit, moment);
        return { ...answer, hasMore: answer.hasMore || isMoreOld || isMoreOverdue || isMoreExpired };
      }),
    append: (claim, batch) => transact((moment) => applyAppend(claim, batch, moment)),
    release: (claim) => transact((moment) => applyRelease(claim, moment)),
    park: (claim, seen) => transact((moment) => applyPark(claim, seen, moment)),
    finish: (claim, end) => transact((moment) => applyFinish(claim, end, moment)),
    cancel: (target, stop) =>
      transact((moment) =>
        'id' in target ? applyCancel(target, stop, moment) : applyCancelConversation(target, stop, moment),
      ),
    send: (task, command, nonce) => transact((moment) => applySend(task, command, { ...moment, nonce })),
    answer: (question, given) => transact((moment) => applyAnswer(question, given, moment)),
    get: (ref) =>
      engine.query(() => {
        const task = visible(ref);
        return task && recordOf(task, tables);
      }),
    list: (request) => engine.query(() => pageOf(request, tables, isForgotten)),
    read(ref, { after, limit, watchTtlMs }) {
      const entries = () => (visible(ref) ? tables.entries(ref.id, { after, limit }) : []);
      if (watchTtlMs === undefined) return engine.query(entries);
      return transact((moment) => {
        markWatched(ref, watchTtlMs, moment);
        return entries();
      });
    },
    conversation: (ref) => engine.query(() => shownConversation(ref, tables)),
    ...operatorMethods(engine, { tables, transact, rules }),
    watch: (filter, listener) => engine.watch(filter, listener),
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

/** Removes records past their retention. Returns whether there may be more. */
function forget(tables: Queries, { now, rules }: Pick<OperationContext, 'now' | 'rules'>, limit: number): boolean {
  const [endedAt, changedAt] = [now - rules.retentionMs, now - rules.conversationRetentionMs];
  return tables.forget({ endedAt, changedAt, lastHeldAt: now - LIMITS.sessionRetentionMs }, limit);
}

type OperatorMethod =
  | 'counts'
  | 'tenants'
  | 'workers'
  | 'queues'
  | 'share'
  | 'conversations'
  | 'questions'
  | 'pause'
  | 'remove';

interface OperatorParts {
  readonly tables: Tables & Queries;
  readonly transact: <T>(work: (moment: OperationContext) => T) => Promise<T>;
  readonly rules: StoreRules;
}

/** What operators ask of a store. */
function operatorMethods(
  engine: Engine,
  { tables, transact, rules }: OperatorParts,
): Pick<StoreDriver, OperatorMethod> {
  return {
    counts: ({ tenant, limit }) =>
      engine.query(() => {
        const endedAt = engine.now() - rules.retentionMs;
        return byStatus((status) => tables.countStatus({ tenant, status, endedAt }, limit));
      }),
    tenants: ({ after, limit }) => engine.query(() => tables.tenants(after, limit)),
    workers: ({ limit }) => engine.query(() => seenWorkers(limit, { tables, now: engine.now() })),
    queues: ({ after, limit }) =>
      engine.query(() => {
        const [isFirst, now] = [after === undefined, engine.now()];
        const queues = tables.queues(after, limit);
        const running = isFirst ? tables.runningByAgent() : {};
        const paused = isFirst ? tables.paused(limit) : [];
        const listed = new Set([...queues.map(({ agent }) => agent), ...Object.keys(running)]);
        const waiting: Record<string, number> = {};
        for (const { agents } of tables.waiters(now - LIMITS.idleWorkerTtlMs, DEFAULTS.maxPage)) {
          for (const agent of agents) if (listed.has(agent)) waiting[agent] = (waiting[agent] ?? 0) + 1;
        }
        return { queues, running, waiting, paused, now };
      }),
    share: (request) => transact((moment) => applyShare(request, moment)),
    conversations: (request) => engine.query(() => tables.conversations(request)),
    questions: (request) => engine.query(() => tables.openQuestions(request).map(toQuestion)),
    pause: (target, isPaused) => transact((moment) => applyPause(target, isPaused, moment)),
    remove: (target) => transact((moment) => applyRemove(target, moment)),
  };
}

function seenWorkers(
  limit: number,
  { tables, now }: Pick<OperationContext, 'now'> & { tables: Tables & Queries },
): WorkersSnapshot {
  const sessions = tables.sessions(limit).flatMap(({ id, worker, expiresAt }) => {
    const tasks = tables.heldBy(id, MAX_SHOWN_TASKS).map((task) => task.id);
    return tasks.length === 0 ? [] : [{ worker, holds: tables.countHeldBy(id), tasks, expiresAt: expiresAt! }];
  });
  return { sessions, waiters: tables.waiters(now - LIMITS.idleWorkerTtlMs, limit), now };
}

function pageOf(request: ListRequest, tables: Queries, isForgotten: (task: StoredTask) => boolean): ListPage {
  const { limit } = request;
  const found = tables.list({ ...request, limit: limit + 1 });
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  const tasks = shown.filter((task) => !isForgotten(task)).map(headOf);
  return found.length > limit && last ? { tasks, next: `${last.createdAt}/${last.id}` } : { tasks };
}

function shownConversation(ref: ConversationRef, tables: Tables): ConversationRecord | undefined {
  const found = tables.conversation(ref);
  if (found === undefined) return undefined;
  const { historyBytes: _historyBytes, ...conversation } = found;
  return { ...conversation, history: tables.history(ref) };
}
