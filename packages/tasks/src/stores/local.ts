import { type CancelOptions, type CancelReasonInit, systemWorld, type World } from '@whoa/core';
import { StoreClosedError } from '../errors.ts';
import { createTaskId } from '../id.ts';
import { cancelConversationMove, cancelMove, sendMove } from '../moves/cancel.ts';
import { claimMove } from '../moves/claim.ts';
import { createMove } from '../moves/create.ts';
import type { Queries, Tables } from '../moves/tables.ts';
import { watchMove } from '../moves/watch.ts';
import { appendMove, finishMove, releaseMove, renewMove } from '../moves/work.ts';
import {
  ATTEMPTS_MAX,
  type Batch,
  type Claim,
  CONVERSATION_RETENTION_MS,
  type CreateOptions,
  type CreateReceipt,
  type FinishReceipt,
  type Hint,
  JOURNAL_BYTES_MAX,
  LIST_LIMIT,
  type ListFilter,
  type ListPage,
  type Orders,
  READ_LIMIT,
  RETENTION_MS,
  type ReadOptions,
  type ReleaseReceipt,
  type Repeatable,
  type SendReceipt,
  type StoreCancelReceipt,
  type StoreOptions,
  type TaskStore,
  type WatchFilter,
} from '../store.ts';
import {
  type Command,
  type ConversationRecord,
  type ConversationRef,
  type JournalEntry,
  type NewTask,
  sendable,
  type TaskOutcome,
  type TaskRecord,
  type TaskRef,
} from '../task.ts';
import { checkBytes, checkDuration, checkLimit, checkName, checkRef } from './checks.ts';

/** The part of a local store that differs: how a transaction is made, and how others hear of it. */
export interface Engine extends AsyncDisposable {
  readonly name: string;
  now(): number;
  /** All or nothing, and nobody in between. */
  transact<T>(work: (tables: Tables & Queries) => T): Promise<T>;
  /** Only looks. */
  query<T>(work: (tables: Tables & Queries) => T): Promise<T>;
  watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable>;
}

interface LocalOptions extends StoreOptions {
  readonly world?: World;
}

/** Makes a store of an engine: every method is one move in one transaction. */
export function createLocalStore(engine: Engine, options: LocalOptions = {}): TaskStore {
  return new LocalStore(engine, options);
}

class LocalStore implements TaskStore {
  readonly name: string;
  readonly journalBytesMax: number;
  readonly #engine: Engine;
  readonly #world: World;
  readonly #shards: number;
  readonly #attemptsMax: number;
  readonly #retentionMs: number;
  readonly #conversationRetentionMs: number;
  #closed = false;

  constructor(engine: Engine, options: LocalOptions) {
    const { retentionMs = RETENTION_MS, conversationRetentionMs = CONVERSATION_RETENTION_MS } = options;
    checkDuration('retentionMs', retentionMs);
    checkDuration('conversationRetentionMs', conversationRetentionMs);
    this.name = engine.name;
    this.journalBytesMax = checkBytes('journalBytesMax', options.journalBytesMax ?? JOURNAL_BYTES_MAX);
    this.#engine = engine;
    this.#world = options.world ?? systemWorld;
    this.#shards = checkLimit('shards', options.shards ?? 1);
    this.#attemptsMax = checkLimit('attemptsMax', options.attemptsMax ?? ATTEMPTS_MAX);
    this.#retentionMs = retentionMs;
    this.#conversationRetentionMs = conversationRetentionMs;
  }

  async create(
    task: NewTask,
    { policy = 'replace', nonce = this.#world.createId() }: CreateOptions = {},
  ): Promise<CreateReceipt> {
    checkName('tenant', task.tenant);
    checkName('agent', task.agent);
    checkName('nonce', nonce);
    const wanted = { ...task, input: jsonOf(task.input) };
    const id = createTaskId(task, { nonce, shards: this.#shards });
    return this.#transact((tables, now) => {
      tables.forget({ endedAt: now - this.#retentionMs, changedAt: now - this.#conversationRetentionMs });
      return createMove(tables, { id, task: wanted, policy, nonce }, { now, attemptsMax: this.#attemptsMax });
    });
  }

  async claim(id: string, worker: string, leaseMs: number): Promise<Claim> {
    checkName('worker', worker);
    checkDuration('leaseMs', leaseMs);
    return this.#transact((tables, now) =>
      claimMove(tables, { id, worker, leaseMs }, { now, attemptsMax: this.#attemptsMax }),
    );
  }

  async renew(id: string, epoch: number, leaseMs: number): Promise<Orders> {
    checkDuration('leaseMs', leaseMs);
    return this.#transact((tables, now) => renewMove(tables, { id, epoch, leaseMs }, now));
  }

  append(id: string, epoch: number, batch: Batch): Promise<Orders> {
    const clean = { ...batch, events: batch.events.map(jsonOf) };
    const { journalBytesMax } = this;
    return this.#transact((tables, now) => appendMove(tables, { id, epoch, batch: clean, journalBytesMax }, now));
  }

  release(id: string, epoch: number): Promise<ReleaseReceipt> {
    return this.#transact((tables, now) => releaseMove(tables, { id, epoch }, now));
  }

  finish(id: string, epoch: number, outcome: TaskOutcome): Promise<FinishReceipt> {
    const clean = jsonOf(outcome);
    return this.#transact((tables, now) => finishMove(tables, { id, epoch, outcome: clean }, now));
  }

  async cancel(
    target: TaskRef | ConversationRef,
    reason: CancelReasonInit = {},
    options: CancelOptions = {},
  ): Promise<StoreCancelReceipt> {
    checkRef(target);
    const asked = { ...options, reason };
    return this.#transact((tables, now) =>
      'id' in target
        ? cancelMove(tables, { ...asked, task: target }, now)
        : cancelConversationMove(tables, { ...asked, conversation: target }, now),
    );
  }

  async send(
    task: TaskRef,
    command: Command,
    { nonce = this.#world.createId() }: Repeatable = {},
  ): Promise<SendReceipt> {
    checkRef(task);
    checkName('nonce', nonce);
    return this.#transact((tables) => sendMove(tables, { task, command: jsonOf(sendable(command)), nonce }));
  }

  async get(ref: TaskRef): Promise<TaskRecord | undefined> {
    checkRef(ref);
    return this.#query((tables) => this.#visible(tables.task(ref.id), ref));
  }

  async list(filter: ListFilter): Promise<ListPage> {
    checkName('tenant', filter.tenant);
    const limit = checkLimit('limit', filter.limit ?? LIST_LIMIT);
    return this.#query((tables) => {
      const found = tables.list({ ...filter, limit: limit + 1 });
      const tasks = found.slice(0, limit);
      const last = tasks.at(-1);
      const page = { tasks: tasks.filter((task) => !this.#isForgotten(task)) };
      return found.length > limit && last ? { ...page, next: `${last.createdAt}/${last.id}` } : page;
    });
  }

  async read(ref: TaskRef, options: ReadOptions = {}): Promise<readonly JournalEntry[]> {
    checkRef(ref);
    const { after = 0, limit = READ_LIMIT, watchMs } = options;
    checkLimit('limit', limit);
    const entries = (tables: Tables & Queries): readonly JournalEntry[] =>
      this.#visible(tables.task(ref.id), ref) ? tables.entries(ref.id, { after, limit }) : [];
    if (watchMs === undefined) return this.#query(entries);
    checkDuration('watchMs', watchMs);
    return this.#transact((tables, now) => {
      watchMove(tables, { task: ref, watchMs }, now);
      return entries(tables);
    });
  }

  async conversation(ref: ConversationRef): Promise<ConversationRecord | undefined> {
    checkRef(ref);
    return this.#query((tables) => {
      const line = tables.conversation(ref);
      return line && { ...line, history: tables.history(ref) };
    });
  }

  async due({ limit = LIST_LIMIT, shard }: { limit?: number; shard?: number } = {}): Promise<readonly string[]> {
    checkLimit('limit', limit);
    return this.#query((tables) => tables.due({ now: this.#engine.now(), limit, shard }));
  }

  watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable> {
    return this.#closed ? Promise.reject(new StoreClosedError()) : this.#engine.watch(filter, listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#engine[Symbol.asyncDispose]();
  }

  #transact<T>(work: (tables: Tables & Queries, now: number) => T): Promise<T> {
    if (this.#closed) return Promise.reject(new StoreClosedError());
    return this.#engine.transact((tables) => work(this.#remembering(tables), this.#engine.now()));
  }

  #query<T>(work: (tables: Tables & Queries) => T): Promise<T> {
    return this.#closed ? Promise.reject(new StoreClosedError()) : this.#engine.query<T>(work);
  }

  /** A task past its retention is gone, whether or not it has been swept yet. */
  #remembering(tables: Tables & Queries): Tables & Queries {
    return {
      ...tables,
      task: (id) => {
        const task = tables.task(id);
        return task === undefined || this.#isForgotten(task) ? undefined : task;
      },
    };
  }

  #visible(task: TaskRecord | undefined, { tenant }: Pick<TaskRef, 'tenant'>): TaskRecord | undefined {
    return task === undefined || task.tenant !== tenant || this.#isForgotten(task) ? undefined : task;
  }

  #isForgotten(task: TaskRecord): boolean {
    return (task.endedAt ?? Infinity) + this.#retentionMs <= this.#engine.now();
  }
}

/** A copy that holds nothing but JSON: what is kept must survive a restart, and nobody may change it afterwards. */
function jsonOf<T>(value: T): T {
  return JSON.parse(JSON.stringify(value ?? null)) as T;
}
