import type { WordSource } from '../delivery/worker-store.ts';
import { MAX_SHOWN_TASKS, type OperatorStore, type WorkersSnapshot } from '../overview.ts';
import type { Hint, ListPage, WatchFilter } from '../store.ts';
import type { ConversationRecord, ConversationRef, TaskRef } from '../task.ts';
import type { ListRequest, StoreDriver, StoreRules } from './driver.ts';
import { createLocalFeed } from './local-feed.ts';
import { applyAnswer } from './operations/answer.ts';
import { applyCancel, applyCancelConversation, applyDue, applyDueTasks, applySend } from './operations/cancel.ts';
import { applyCreate } from './operations/create.ts';
import { applyEngine, applyPause, applyRemove, applyShare } from './operations/operate.ts';
import { toLoad } from './operations/orders.ts';
import { applyBeat, applyHeld, applySweep } from './operations/session.ts';
import type { OperationContext, Queries, StoredTask, Tables } from './operations/tables.ts';
import { applyClaim, applyClaimMany, applyOffered, applyTake } from './operations/take.ts';
import { toQuestion, toRecord, toSummary } from './operations/views.ts';
import { applyAppend, applyFinish, applyPark, applyRelease, getClaimedTask } from './operations/work.ts';
import { isDue } from './rules/questions.ts';
import { DEFAULTS, LIMITS } from './rules/rules.ts';
import { byStatus } from './rules/status.ts';

/** The part of a local store that differs: how it makes a transaction and notifies watchers. */
export interface Engine extends AsyncDisposable {
  readonly name: string;
  /** Where this process hears of changes. */
  readonly inbox: string;
  /** For use inside `transact` and `query`. */
  readonly tables: Tables & Queries;
  now(): number;
  /** Runs work as one transaction. */
  transact<T>(work: () => T): Promise<T>;
  /** Runs reads. */
  query<T>(work: () => T): Promise<T>;
  watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable>;
  show(words: WordSource): void;
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
  const transact = <T>(work: (context: OperationContext) => T): Promise<T> =>
    engine.transact(() => work({ tables, now: engine.now(), rules }));
  const visible = (ref: TaskRef): StoredTask | undefined => {
    const task = tables.task(ref.id);
    return task?.tenant === ref.tenant ? task : undefined;
  };

  return {
    name: engine.name,
    create: (request) =>
      transact((context) => {
        purge(tables, context, LIMITS.maxPurged);
        return applyCreate(request, context);
      }),
    take: (request) => transact((context) => applyTake(request, context)),
    noteOffered: (ids) => transact((context) => applyOffered(ids, context)),
    claim: (id, request) => transact((context) => applyClaim(id, request, context)),
    claimMany: (ids, request) => transact((context) => applyClaimMany(ids, request, context)),
    load: (claim) => engine.query(() => toLoad(getClaimedTask(tables, claim), tables)),
    heartbeat: (beat) => transact((context) => applyBeat(beat, context)),
    held: (session) => engine.query(() => applyHeld(session, { tables })),
    sweep: ({ limit }) =>
      transact((context) => {
        const isMoreOld = purge(tables, context, limit);
        const isMoreOverdue = applyDueTasks((now) => tables.firstOverdue(now), limit, context);
        const isMoreExpired = applyDueTasks((now) => tables.firstExpired(now), limit, context);
        const answer = applySweep(limit, context);
        return { ...answer, hasMore: answer.hasMore || isMoreOld || isMoreOverdue || isMoreExpired };
      }),
    append: (claim, batch) => transact((context) => applyAppend(claim, batch, context)),
    show: (words) => engine.show(words),
    release: (claim, delayMs) => transact((context) => applyRelease(claim, delayMs, context)),
    park: (claim, seen) => transact((context) => applyPark(claim, seen, context)),
    finish: (claim, end) => transact((context) => applyFinish(claim, end, context)),
    cancel: (target, stop) =>
      transact((context) =>
        'id' in target ? applyCancel(target, stop, context) : applyCancelConversation(target, stop, context),
      ),
    send: (task, command, nonce) => transact((context) => applySend(task, command, { ...context, nonce })),
    answer: (question, given) => transact((context) => applyAnswer(question, given, context)),
    async get(ref) {
      const show = (task: StoredTask | undefined) => task && toRecord(task, tables);
      const { isLate, shown } = await engine.query(() => {
        const task = visible(ref);
        const isLate = task !== undefined && isDue(task, engine.now());
        return isLate ? { isLate } : { isLate, shown: show(task) };
      });
      // Only what is due is a change.
      return isLate ? transact((context) => show(visible(ref) && applyDue(visible(ref)!, context))) : shown;
    },
    list: (request) => engine.query(() => toPage(request, tables, isForgotten)),
    read: (ref, { after, limit }) => engine.query(() => (visible(ref) ? tables.entries(ref.id, { after, limit }) : [])),
    conversation: (ref) => engine.query(() => shownConversation(ref, tables)),
    ...operatorMethods(engine, { tables, transact, rules }),
    feed: createLocalFeed(engine, transact),
    watch: (filter, listener) => engine.watch(filter, listener),
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

/** Removes records past their retention. Returns whether there may be more. */
function purge(tables: Queries, { now, rules }: Pick<OperationContext, 'now' | 'rules'>, limit: number): boolean {
  const [endedAt, changedAt] = [now - rules.retentionMs, now - rules.conversationRetentionMs];
  return tables.purge({ endedAt, changedAt, lastHeldAt: now - LIMITS.sessionRetentionMs }, limit);
}

type OperatorMethod = (keyof OperatorStore & keyof StoreDriver) | 'share';

interface OperatorParts {
  readonly tables: Tables & Queries;
  readonly transact: <T>(work: (context: OperationContext) => T) => Promise<T>;
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
        const engines = isFirst ? tables.engines() : {};
        const listed = new Set([...queues.map(({ agent }) => agent), ...Object.keys(running)]);
        const waiting: Record<string, number> = {};
        for (const { agents } of tables.waiters(now - LIMITS.idleWorkerTtlMs, DEFAULTS.maxPage)) {
          for (const agent of agents) if (listed.has(agent)) waiting[agent] = (waiting[agent] ?? 0) + 1;
        }
        return { queues, running, waiting, paused, engines, now };
      }),
    share: (request) => transact((context) => applyShare(request, context)),
    conversations: (request) => engine.query(() => tables.conversations(request)),
    figures: ({ limit }) => engine.query(() => ({ ...tables.questionFigures(limit), now: engine.now() })),
    questions: (request) => engine.query(() => tables.openQuestions({ ...request, now: engine.now() }).map(toQuestion)),
    pause: (target, isPaused) => transact((context) => applyPause(target, isPaused, { ...context, tables })),
    setEngine: (request) => transact((context) => applyEngine(request, context)),
    remove: (target) => transact((context) => applyRemove(target, context)),
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

function toPage(request: ListRequest, tables: Queries, isForgotten: (task: StoredTask) => boolean): ListPage {
  const { limit } = request;
  const found = tables.list({ ...request, limit: limit + 1 });
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  const tasks = shown.filter((task) => !isForgotten(task)).map(toSummary);
  return found.length > limit && last ? { tasks, next: `${last.createdAt}/${last.id}` } : { tasks };
}

function shownConversation(ref: ConversationRef, tables: Tables): ConversationRecord | undefined {
  const found = tables.conversation(ref);
  if (found === undefined) return undefined;
  const { historyBytes: _historyBytes, ...conversation } = found;
  return { ...conversation, history: tables.history(ref) };
}
