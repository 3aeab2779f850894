import {
  type CancelOptions,
  type CancelReasonInit,
  createReason,
  scheduleOf,
  systemWorld,
  type World,
} from '@whoa/core';
import { JournalFullError, JournalGapError, LeaseLostError, StoreClosedError } from '../errors.ts';
import { createTaskId } from '../id.ts';
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
import { withNonce } from '../unknown-outcome.ts';
import { checkBytes, checkDuration, checkLimit, checkName, checkRef } from './checks.ts';
import { jsonOf } from './json.ts';
import { Database } from './postgres/database.ts';
import { channelOf, Doorbell } from './postgres/doorbell.ts';
import {
  CONNECT_TIMEOUT_MS,
  CONNECTIONS_MAX,
  POLL_MS,
  type PostgresStoreOptions,
  STATEMENT_TIMEOUT_MS,
} from './postgres/options.ts';
import { getConversation, getTask, listDue, listTasks, readJournal } from './postgres/queries.ts';
import { ordersOf, type ShownOrders, type ShownTask, taskOf, withoutNulls } from './postgres/rows.ts';
import { checkNames, checkText } from './postgres/text.ts';
import { Watchers } from './watchers.ts';

export type { PostgresStoreOptions } from './postgres/options.ts';

/** A store in a PostgreSQL database (13 or newer), for any number of machines. What it acknowledged is on disk. */
export function createPostgresStore(options: PostgresStoreOptions = {}): TaskStore {
  return new PostgresStore(options);
}

class PostgresStore implements TaskStore {
  readonly name = 'postgres';
  readonly journalBytesMax: number;
  readonly #database: Database;
  readonly #bell: Doorbell;
  readonly #watchers = new Watchers();
  /** How each function is called: made once, because whoever cancels waits for it. */
  readonly #calls = new Map<string, string>();
  readonly #world: World;
  readonly #shards: number;
  readonly #attemptsMax: number;
  readonly #retentionMs: number;
  readonly #conversationRetentionMs: number;
  #closed = false;

  constructor(options: PostgresStoreOptions) {
    const { retentionMs = RETENTION_MS, conversationRetentionMs = CONVERSATION_RETENTION_MS } = options;
    const { connectTimeoutMs = CONNECT_TIMEOUT_MS, statementTimeoutMs = STATEMENT_TIMEOUT_MS } = options;
    const durations = { retentionMs, conversationRetentionMs, connectTimeoutMs, statementTimeoutMs };
    for (const [name, ms] of Object.entries(durations)) checkDuration(name, ms);
    this.journalBytesMax = checkBytes('journalBytesMax', options.journalBytesMax ?? JOURNAL_BYTES_MAX);
    this.#world = options.world ?? systemWorld;
    this.#shards = checkLimit('shards', options.shards ?? 1);
    this.#attemptsMax = checkLimit('attemptsMax', options.attemptsMax ?? ATTEMPTS_MAX);
    this.#retentionMs = retentionMs;
    this.#conversationRetentionMs = conversationRetentionMs;
    this.#database = new Database({
      url: options.url,
      schema: options.schema ?? 'whoa',
      connectionsMax: checkLimit('connectionsMax', options.connectionsMax ?? CONNECTIONS_MAX),
      connectTimeoutMs,
      statementTimeoutMs,
    });
    this.#bell = new Doorbell({
      database: this.#database,
      clock: this.#world.clock,
      pollMs: options.pollMs ?? POLL_MS,
      onHint: (hint) => this.#watchers.tell(hint),
    });
  }

  async create(
    task: NewTask,
    { policy = 'replace', nonce = this.#world.createId() }: CreateOptions = {},
  ): Promise<CreateReceipt> {
    const { tenant, agent, conversation = null, key = null, worker = null, holdMs = 0 } = task;
    checkName('tenant', tenant);
    checkName('agent', agent);
    checkName('nonce', nonce);
    checkNames(tenant, task.conversation);
    for (const [name, value] of Object.entries({ agent, key, worker, nonce })) checkText(name, value ?? undefined);
    const id = createTaskId(task, { nonce, shards: this.#shards });
    const kept = [this.#retentionMs, this.#conversationRetentionMs];
    const values = [
      id,
      tenant,
      agent,
      conversation,
      key,
      worker,
      jsonOf(task.input),
      Math.max(0, holdMs),
      policy,
      nonce,
    ];
    type Receipt = { answer: 'created'; task: ShownTask; superseded: string[]; steered: string | null };
    const answer = this.#move<Receipt | { answer: 'rejected' }>('create', 'create_task', [...values, ...kept]);
    const receipt = await withNonce(nonce, answer);
    return receipt.answer === 'rejected' ? receipt : withoutNulls({ ...receipt, task: taskOf(receipt.task) });
  }

  async claim(id: string, worker: string, leaseMs: number): Promise<Claim> {
    checkName('worker', worker);
    checkText('worker', worker);
    checkText('id', id);
    checkDuration('leaseMs', leaseMs);
    const values = [id, worker, leaseMs, this.#attemptsMax, this.#retentionMs];
    type Claimed = { answer: 'claimed'; task: ShownTask; orders: ShownOrders; history: ConversationRecord['history'] };
    const claim = await this.#move<Claimed | Exclude<Claim, { answer: 'claimed' }>>('claim', 'claim', values);
    if (claim.answer !== 'claimed') return claim;
    return { ...claim, task: taskOf(claim.task), orders: ordersOf(claim.orders) };
  }

  async renew(id: string, epoch: number, leaseMs: number): Promise<Orders> {
    checkDuration('leaseMs', leaseMs);
    return ordersOf(await this.#own<ShownOrders>('renew', [id, epoch, leaseMs]));
  }

  async append(id: string, epoch: number, { after, events, replaces = [], done = [] }: Batch): Promise<Orders> {
    const values = [id, epoch, after, events.map(jsonOf), replaces, done, this.journalBytesMax];
    type Refused = { answer: 'gap'; position: number } | { answer: 'full'; bytes: number };
    const orders = await this.#own<ShownOrders | Refused>('append', values);
    if (!('answer' in orders)) return ordersOf(orders);
    if (orders.answer === 'gap') throw new JournalGapError(id, orders.position, after);
    throw new JournalFullError(id, orders.bytes, this.journalBytesMax);
  }

  release(id: string, epoch: number): Promise<ReleaseReceipt> {
    return this.#own<ReleaseReceipt>('release', [id, epoch]);
  }

  async finish(id: string, epoch: number, outcome: TaskOutcome): Promise<FinishReceipt> {
    const { status, reason, complete = null, history, said = [], ...rest } = outcome;
    if (!['success', 'failed', 'cancelled'].includes(status)) {
      throw new TypeError(`outcome.status: '${String(status)}' is none of success, failed, cancelled`);
    }
    const messages = [...(history ?? []), ...said].map(jsonOf);
    const about = [jsonOf(rest), reason === undefined ? null : jsonOf(reason), complete, history !== undefined];
    const values = [id, epoch, status, ...about, messages, this.#retentionMs];
    const receipt = await this.#own<FinishReceipt>('finish', values);
    return withoutNulls(receipt);
  }

  async cancel(
    target: TaskRef | ConversationRef,
    reason: CancelReasonInit = {},
    { how = 'graceful', undo = false }: CancelOptions = {},
  ): Promise<StoreCancelReceipt> {
    checkRef(target);
    const { at: _at, ...given } = createReason(reason, 0);
    const { level, abortAt, killAt } = scheduleOf(how, 0);
    const asked = [jsonOf(given), reason.at ?? null, level, abortAt, killAt, undo];
    checkNames(target.tenant, 'id' in target ? target.id : target.conversation);
    return 'id' in target
      ? this.#move('cancel', 'cancel_task', [target.tenant, target.id, ...asked, this.#retentionMs])
      : this.#move('cancel', 'cancel_conversation', [target.tenant, target.conversation, ...asked]);
  }

  async send(
    task: TaskRef,
    command: Command,
    { nonce = this.#world.createId() }: Repeatable = {},
  ): Promise<SendReceipt> {
    checkRef(task);
    checkNames(task.tenant, task.id);
    checkName('nonce', nonce);
    checkText('nonce', nonce);
    const values = [task.tenant, task.id, jsonOf(sendable(command)), nonce, this.#retentionMs];
    return withNonce(nonce, this.#move<SendReceipt>('send', 'send', values));
  }

  async get(ref: TaskRef): Promise<TaskRecord | undefined> {
    checkRef(ref);
    checkNames(ref.tenant, ref.id);
    return getTask(this.#database, ref, this.#retentionMs);
  }

  async list(filter: ListFilter): Promise<ListPage> {
    checkName('tenant', filter.tenant);
    checkNames(filter.tenant, filter.conversation);
    const limit = checkLimit('limit', filter.limit ?? LIST_LIMIT);
    return listTasks(this.#database, { ...filter, limit }, this.#retentionMs);
  }

  async read(ref: TaskRef, options: ReadOptions = {}): Promise<readonly JournalEntry[]> {
    checkRef(ref);
    checkNames(ref.tenant, ref.id);
    const { after = 0, limit = READ_LIMIT, watchMs } = options;
    checkLimit('limit', limit);
    if (watchMs !== undefined) {
      checkDuration('watchMs', watchMs);
      await this.#move('read', 'read_along', [ref.tenant, ref.id, watchMs]);
    }
    return readJournal(this.#database, { ...ref, after, limit }, this.#retentionMs);
  }

  async conversation(ref: ConversationRef): Promise<ConversationRecord | undefined> {
    checkRef(ref);
    checkNames(ref.tenant, ref.conversation);
    return getConversation(this.#database, ref);
  }

  async due({ limit = LIST_LIMIT, shard }: { limit?: number; shard?: number } = {}): Promise<readonly string[]> {
    checkLimit('limit', limit);
    return listDue(this.#database, { limit, shard });
  }

  async watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable> {
    if (this.#closed) throw new StoreClosedError();
    const channel = channelOf(this.#database.qualifier, filter.worker);
    const watcher = this.#watchers.add(filter, listener);
    let leave = async (): Promise<void> => {
      leave = () => Promise.resolve();
      await watcher[Symbol.asyncDispose]();
      await this.#bell.leave(channel);
    };
    try {
      await this.#bell.listen(channel);
    } catch (error) {
      await watcher[Symbol.asyncDispose]();
      throw error;
    }
    return { [Symbol.asyncDispose]: () => leave() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#watchers.clear();
    await this.#bell[Symbol.asyncDispose]();
    await this.#database[Symbol.asyncDispose]();
  }

  /** One move of a worker, which must still own its task. */
  async #own<T>(operation: string, values: readonly unknown[]): Promise<T> {
    const [id, epoch] = values as [string, number];
    checkText('id', id);
    // An epoch that no claim can have had.
    if (!Number.isInteger(epoch) || Math.abs(epoch) > EPOCH_MAX) throw new LeaseLostError(id, epoch);
    const answer = await this.#move<T | { answer: 'lost' }>(operation, operation, values);
    if (isLost(answer)) throw new LeaseLostError(id, epoch);
    return answer as T;
  }

  /** One move: a function in the database, all or nothing. */
  async #move<T>(operation: string, name: string, values: readonly unknown[]): Promise<T> {
    let sql = this.#calls.get(name);
    if (sql === undefined) {
      sql = `SELECT whoa.${name}(${values.map((_, index) => `$${index + 1}`).join(', ')}) AS answer`;
      this.#calls.set(name, sql);
    }
    const [row] = await this.#database.ask<{ answer: T }>({ operation, changes: true, sql, values });
    return row!.answer;
  }
}

const EPOCH_MAX = 2 ** 31 - 1;

function isLost(answer: unknown): boolean {
  return (answer as { answer?: string } | null)?.answer === 'lost';
}
