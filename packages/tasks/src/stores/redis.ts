import {
  type CancelOptions,
  type CancelReasonInit,
  createReason,
  scheduleOf,
  systemWorld,
  type World,
} from '@whoa/core';
import { JournalFullError, JournalGapError, LeaseLostError, StoreClosedError } from '../errors.ts';
import { createTaskId, shardOf, shardOfLine } from '../id.ts';
import type { FinalStatus, TaskStatus } from '../status.ts';
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
import { Calls, type Reply } from './redis/calls.ts';
import { Inboxes } from './redis/inboxes.ts';
import { indexOf, newestFirst, pairsOf } from './redis/lists.ts';
import { checkPrefix, PREFIX, type RedisStoreOptions, tagOf } from './redis/options.ts';
import {
  cancelReceiptOf,
  claimOf,
  conversationOf,
  createReceiptOf,
  entriesOf,
  ordersOf,
  recordOf,
} from './redis/replies.ts';
import { SCRIPTS, type Script } from './redis/scripts.ts';
import { createSeal } from './redis/seal.ts';

export type { RedisStoreOptions } from './redis/options.ts';

/** A store in Redis or Valkey, for as many machines as there are. Connects on first use. */
export function createRedisStore(options: RedisStoreOptions): TaskStore {
  return openRedisStore(options, () => 0);
}

/** `shiftMs` moves the store's clock ahead of the server's, so that tests need not wait. */
export function openRedisStore(options: RedisStoreOptions, shiftMs: () => number): TaskStore {
  return new RedisStore(options, shiftMs);
}

type Values = readonly (string | number)[];

class RedisStore implements TaskStore {
  readonly name: string = 'redis';
  readonly journalBytesMax: number;
  readonly #prefix: string;
  readonly #shards: number;
  readonly #world: World;
  readonly #calls: Calls;
  readonly #sealOf = createSeal();
  readonly #inboxes: Inboxes;
  readonly #common: () => Values;
  #closed = false;

  constructor(options: RedisStoreOptions, shiftMs: () => number) {
    const { retentionMs = RETENTION_MS, conversationRetentionMs = CONVERSATION_RETENTION_MS } = options;
    const { prefix = PREFIX, attemptsMax = ATTEMPTS_MAX, cluster = false, replicas } = options;
    checkDuration('retentionMs', retentionMs);
    checkDuration('conversationRetentionMs', conversationRetentionMs);
    checkLimit('attemptsMax', attemptsMax);
    checkPrefix(prefix);
    if (options.timeoutMs !== undefined) checkDuration('timeoutMs', options.timeoutMs);
    if (cluster && replicas !== undefined) throw new TypeError('replicas: cannot be waited for on a Cluster');
    this.journalBytesMax = checkBytes('journalBytesMax', options.journalBytesMax ?? JOURNAL_BYTES_MAX);
    this.#prefix = prefix;
    this.#shards = checkLimit('shards', options.shards ?? 1);
    this.#world = options.world ?? systemWorld;
    // Made into text once: the library would do it for every operation, while somebody waits.
    const rules = [retentionMs, conversationRetentionMs, attemptsMax].map((value) => `${Math.ceil(value)}`);
    this.#common = () => [`${shiftMs()}`, ...rules];
    this.#calls = new Calls(options);
    const tags = Array.from({ length: this.#shards }, (_, shard) => this.#tag(shard));
    this.#inboxes = new Inboxes({
      store: options,
      calls: this.#calls,
      sealOf: this.#sealOf,
      tags,
      common: this.#common,
    });
  }

  async create(
    task: NewTask,
    { policy = 'replace', nonce = this.#world.createId() }: CreateOptions = {},
  ): Promise<CreateReceipt> {
    const { tenant, agent, conversation, key, worker, holdMs = 0 } = task;
    for (const [name, value] of Object.entries({ tenant, agent, conversation, key, worker, nonce })) {
      if (value !== undefined || name === 'tenant' || name === 'agent') checkName(name, value!);
    }
    const id = createTaskId(task, { nonce, shards: this.#shards });
    const about = [id, tenant, agent, conversation ?? '', key ?? '', worker ?? ''];
    const values = [...about, jsonOf(task.input), policy, Math.ceil(holdMs), nonce];
    return createReceiptOf(await withNonce(nonce, this.#move(SCRIPTS.create, id, values)));
  }

  async claim(id: string, worker: string, leaseMs: number): Promise<Claim> {
    checkName('worker', worker);
    checkDuration('leaseMs', leaseMs);
    return claimOf(await this.#move(SCRIPTS.claim, id, [id, worker, Math.ceil(leaseMs), this.#sealOf(id)]));
  }

  async renew(id: string, epoch: number, leaseMs: number): Promise<Orders> {
    checkDuration('leaseMs', leaseMs);
    return ordersOf(await this.#own(SCRIPTS.renew, { id, epoch }, [Math.ceil(leaseMs)]));
  }

  async append(id: string, epoch: number, { after, events, replaces = [], done = [] }: Batch): Promise<Orders> {
    const counts = [after, this.journalBytesMax, done.length, replaces.length];
    const values = [...counts, ...done, ...replaces, ...events.map(jsonOf)];
    const reply = (await this.#own(SCRIPTS.append, { id, epoch }, values)) as string[];
    if (reply[0] === 'gap') throw new JournalGapError(id, Number(reply[1]), after);
    if (reply[0] === 'full') throw new JournalFullError(id, Number(reply[1]), this.journalBytesMax);
    return ordersOf(reply);
  }

  async release(id: string, epoch: number): Promise<ReleaseReceipt> {
    const [answer] = (await this.#own(SCRIPTS.release, { id, epoch }, [])) as [ReleaseReceipt['answer']];
    return { answer };
  }

  async finish(id: string, epoch: number, outcome: TaskOutcome): Promise<FinishReceipt> {
    const { status: asked, reason, complete, history, said = [], ...rest } = outcome;
    const messages = [...(history ?? []), ...said].map(jsonOf);
    const about = [asked, optional(reason), optional(complete), jsonOf(rest), history === undefined ? '0' : '1'];
    const values = [...about, ...messages];
    const reply = await this.#own(SCRIPTS.finish, { id, epoch }, values);
    const [answer, status, successor] = reply as [FinishReceipt['answer'], FinalStatus, string | null | undefined];
    return { answer, status, ...(successor != null && { successor }) };
  }

  async cancel(
    target: TaskRef | ConversationRef,
    reason: CancelReasonInit = {},
    { how = 'graceful', undo = false }: CancelOptions = {},
  ): Promise<StoreCancelReceipt> {
    checkRef(target);
    const { level, abortAt, killAt } = scheduleOf(how, 0);
    const { at, ...undated } = createReason(reason, 0);
    const dated = reason.at === undefined ? [jsonOf(undated), 0] : [jsonOf({ ...undated, at }), 1];
    const asked = [level, Math.ceil(abortAt), Math.ceil(killAt), undo ? 1 : 0, ...dated];
    const reply =
      'id' in target
        ? this.#move(SCRIPTS.cancel, target.id, [target.id, target.tenant, ...asked])
        : this.#call(SCRIPTS.cancelLine, this.#shardOfLine(target), [target.tenant, target.conversation, ...asked]);
    return cancelReceiptOf(await reply);
  }

  async send(
    { tenant, id }: TaskRef,
    command: Command,
    { nonce = this.#world.createId() }: Repeatable = {},
  ): Promise<SendReceipt> {
    checkRef({ tenant, id });
    checkName('nonce', nonce);
    const values = [id, tenant, nonce, jsonOf(sendable(command))];
    const reply = await withNonce(nonce, this.#move(SCRIPTS.send, id, values));
    const [answer, value] = reply as [SendReceipt['answer'], string];
    if (answer === 'accepted') return { answer, number: Number(value) };
    return answer === 'too-late' ? { answer, status: value as TaskStatus } : { answer };
  }

  async get({ tenant, id }: TaskRef): Promise<TaskRecord | undefined> {
    checkRef({ tenant, id });
    const reply = await this.#move(SCRIPTS.get, id, [id, tenant]);
    return reply === null ? undefined : recordOf(reply);
  }

  async list({ tenant, status, conversation, cursor = '', ...rest }: ListFilter): Promise<ListPage> {
    checkName('tenant', tenant);
    const limit = checkLimit('limit', rest.limit ?? LIST_LIMIT);
    const index = indexOf({ tenant, status, conversation });
    const [at, last] = [cursor.slice(0, cursor.indexOf('/')), cursor.slice(cursor.indexOf('/') + 1)];
    const shards = conversation === undefined ? this.#all() : [this.#shardOfLine({ tenant, conversation })];
    const replies = await Promise.all(
      shards.map((shard) => this.#call(SCRIPTS.list, shard, [tenant, status ?? '', index, limit + 1, at, last])),
    );
    const found = (replies as Reply[][]).flat().map(recordOf).toSorted(newestFirst);
    const tasks = found.slice(0, limit);
    const oldest = tasks.at(-1);
    return found.length > limit && oldest ? { tasks, next: `${oldest.createdAt}/${oldest.id}` } : { tasks };
  }

  async read({ tenant, id }: TaskRef, options: ReadOptions = {}): Promise<readonly JournalEntry[]> {
    checkRef({ tenant, id });
    const { after = 0, limit = READ_LIMIT, watchMs } = options;
    checkLimit('limit', limit);
    if (watchMs !== undefined) checkDuration('watchMs', watchMs);
    const script = watchMs === undefined ? SCRIPTS.read : SCRIPTS.readAlong;
    return entriesOf(await this.#move(script, id, [id, tenant, Math.max(0, after), limit, watchMs ?? 0]));
  }

  async conversation(ref: ConversationRef): Promise<ConversationRecord | undefined> {
    checkRef(ref);
    const reply = await this.#call(SCRIPTS.conversation, this.#shardOfLine(ref), [ref.tenant, ref.conversation]);
    return conversationOf(reply, ref);
  }

  async due({ limit = LIST_LIMIT, shard }: { limit?: number; shard?: number } = {}): Promise<readonly string[]> {
    checkLimit('limit', limit);
    const shards = shard === undefined ? this.#all() : [shard];
    const replies = await Promise.all(shards.map((one) => this.#call(SCRIPTS.due, one, [limit])));
    const due = (replies as string[][]).flatMap((flat) => pairsOf(flat));
    return due
      .toSorted(([, a], [, b]) => a - b)
      .slice(0, limit)
      .map(([id]) => id);
  }

  async watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable> {
    if (this.#closed) throw new StoreClosedError();
    return this.#inboxes.watch(filter, listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#inboxes[Symbol.asyncDispose]();
    await this.#calls[Symbol.asyncDispose]();
  }

  /** A move of whoever holds the claim. */
  async #own(script: Script, { id, epoch }: { id: string; epoch: number }, values: Values): Promise<Reply> {
    const reply = await this.#move(script, id, [id, epoch, ...values]);
    if ((reply as string[])[0] === 'lost') throw new LeaseLostError(id, epoch);
    return reply;
  }

  #move(script: Script, id: string, values: Values): Promise<Reply> {
    return this.#call(script, shardOfAny(id), values);
  }

  async #call(script: Script, shard: number, values: Values): Promise<Reply> {
    if (this.#closed) throw new StoreClosedError();
    return this.#calls.call(script, this.#tag(shard), [...this.#common(), ...values]);
  }

  #tag(shard: number): string {
    return tagOf(this.#prefix, shard);
  }

  #shardOfLine({ tenant, conversation }: ConversationRef): number {
    return shardOfLine({ tenant, conversation }, this.#shards);
  }

  #all(): number[] {
    return Array.from({ length: this.#shards }, (_, shard) => shard);
  }
}

/** What is no id is in no shard; any will say that there is no such task. */
function shardOfAny(id: string): number {
  try {
    return shardOf(id);
  } catch {
    return 0;
  }
}

function optional(value: unknown): string {
  return value === undefined ? '' : JSON.stringify(value);
}
