import type { Json } from '@whoa/core';
import type {
  ClaimRef,
  ClaimRequest,
  ClaimResult,
  Heartbeat,
  HeartbeatResult,
  Orders,
  TakeRequest,
  TakeResult,
} from '../delivery.ts';
import { JournalFullError, JournalGapError, LeaseLostError, QuestionRefusedError, StoreBusyError } from '../errors.ts';
import { createTaskId } from '../id.ts';
import type {
  FinishResult,
  Hint,
  ListPage,
  ReleaseResult,
  SendReceipt,
  StoreCancelReceipt,
  TaskStore,
  WatchFilter,
} from '../store.ts';
import type { ConversationRecord, ConversationRef, JournalEntry, TaskCommand, TaskRecord, TaskRef } from '../task.ts';
import { createCheckedStore } from './checked/checked-store.ts';
import type {
  CreateRequest,
  DriverBatch,
  DriverReceipt,
  FinishRequest,
  ListRequest,
  ReadRequest,
  ShardedTask,
  StopRequest,
  StoreDriver,
  StoreRules,
} from './driver.ts';
import { type ChannelRef, Channels } from './redis/channels.ts';
import type { Reply } from './redis/connection/connection.ts';
import type { Library } from './redis/library.ts';
import type { Arguments, OperationName } from './redis/operations.ts';
import { checkOptions, type RedisStoreOptions, TIMEOUT_MS } from './redis/options.ts';
import { createOverview } from './redis/overview-calls.ts';
import { toPage } from './redis/replies/pages.ts';
import { toAnswerReceipt } from './redis/replies/question-replies.ts';
import { toConversation, toEntries } from './redis/replies/read-replies.ts';
import {
  toCancelReceipt,
  toClaimResult,
  toCreateReceipt,
  toFinishResult,
  toHeartbeatResult,
  toHeldTasks,
  toLoad,
  toOrders,
  toParkReceipt,
  toRecord,
  toSendReceipt,
  toSweepResult,
  toTakeResult,
} from './redis/replies/replies.ts';
import { Shards } from './redis/shards.ts';
import { createStoreRules } from './store-rules.ts';

/**
 * Creates a store in Redis or Valkey, for any number of machines. It connects on first use.
 *
 * @returns The store.
 * @throws TypeError or RangeError when an option is invalid; {@link StoreSetupError}, from its methods, when `ioredis`
 * is not installed or the server cannot be used.
 */
export function createRedisStore(options: RedisStoreOptions): TaskStore {
  return openRedisStore(options, () => 0);
}

/** For tests: `shiftMs` moves the store's clock ahead of the server's, and `library` has other rules. */
export function openRedisStore(options: RedisStoreOptions, shiftMs: () => number, library?: Library): TaskStore {
  checkOptions(options);
  const rules = createStoreRules(options);
  const shards = new Shards(options, { rules, shiftMs, library });
  const channels = new Channels(shards, options.timeoutMs ?? TIMEOUT_MS);
  const driver: StoreDriver = Object.assign(new RedisDriver(rules, shards, channels), createOverview(shards));
  return createCheckedStore(driver, { rules, world: options.world });
}

class RedisDriver {
  readonly name: string = 'redis';
  readonly domains: number;
  readonly generations: readonly number[];
  readonly #rules: StoreRules;
  readonly #shards: Shards;
  readonly #channels: Channels;

  constructor(rules: StoreRules, shards: Shards, channels: Channels) {
    this.generations = shards.generations;
    this.domains = shards.tags.length;
    this.#rules = rules;
    this.#shards = shards;
    this.#channels = channels;
  }

  /** Asks the shards of earlier layouts first, oldest first: data that is in use there stays there. */
  async shardsFor({ tenant, conversation, key }: ShardedTask, nonce: string): Promise<number> {
    const isNamed = conversation !== undefined || key !== undefined;
    for (const shards of isNamed ? this.generations.slice(0, -1) : []) {
      const id = createTaskId({ tenant, conversation, key }, { nonce, shards });
      if ((await this.#shards.run('exists', id, { id, tenant, conversation: conversation ?? '' })) === 'here')
        return shards;
    }
    return this.domains;
  }

  async create(request: CreateRequest): Promise<DriverReceipt> {
    const { id, nonce, conversation = '', key = '', preferredWorker = '', notBefore = '', deadline = '' } = request;
    const { title = '', traceparent = '', startedBy = '', keepsQuestions } = request;
    const isOfBefore = this.generations.length > 1 && createTaskId(request, { nonce, shards: this.domains }) !== id;
    const optional = { conversation, key, worker: preferredWorker, notBefore, deadline, title, traceparent, startedBy };
    const flags = { isOfBefore: isOfBefore ? 1 : 0, keepsQuestions: keepsQuestions === true ? 1 : '' };
    const { maxReady } = this.#rules;
    const reply = await this.#shards.run('create', id, { ...request, ...optional, ...flags, maxReady });
    if ((reply as readonly Reply[])[0] === 'gone') {
      throw new StoreBusyError('The conversation or key was removed during the request; nothing changed, try again');
    }
    return toCreateReceipt(reply, request);
  }

  async take(request: Required<TakeRequest>): Promise<TakeResult> {
    const { domain, session, worker, leaseMs, claim, takeNumber, limit, agents, maxBytes } = request;
    const about = { sessionId: session, worker, leaseMs: Math.ceil(leaseMs), claim, takeNumber, limit, maxBytes };
    const values = { ...about, agentsText: JSON.stringify(agents), list: agents };
    return toTakeResult(await this.#shards.runOn(domain, 'take', values));
  }

  async claim(id: string, request: Required<ClaimRequest>): Promise<ClaimResult> {
    const { session, worker, leaseMs, claim, maxBytes } = request;
    const about = { id, sessionId: session, worker, leaseMs: Math.ceil(leaseMs), claim, maxBytes };
    return toClaimResult(await this.#shards.run('claim', id, about));
  }

  readonly load: StoreDriver['load'] = async (claim) => toLoad((await this.#own('load', claim, claim))[1]!);

  async heartbeat({ domain, session, confirmed, count }: Required<Heartbeat>): Promise<HeartbeatResult> {
    const list = confirmed.flatMap(({ id, epoch, claim, orderNumber }) => [id, epoch, claim, orderNumber]);
    return toHeartbeatResult(await this.#shards.runOn(domain, 'heartbeat', { sessionId: session, count, list }));
  }

  readonly held: StoreDriver['held'] = async ({ domain, session }) =>
    toHeldTasks(await this.#shards.runOn(domain, 'held', { session }));
  readonly sweep: StoreDriver['sweep'] = async ({ domain, limit }) =>
    toSweepResult(await this.#shards.runOn(domain, 'sweep', { limit }));

  async append(claim: ClaimRef, batch: DriverBatch): Promise<Orders> {
    const { after, events, replaces, done, resetsAttempts, activity = '', asks, closes } = batch;
    const { maxJournalBytes } = this.#rules;
    const about = { ...claim, after, maxBytes: maxJournalBytes, progress: resetsAttempts ? 1 : 0, activity };
    const questions = [
      ...asks.flatMap(({ id, expiresMs = '', asked }) => [id, expiresMs, asked]),
      ...closes.flatMap(({ id, why }) => [id, why, '']),
    ];
    const counts = { doneCount: done.length, replacesCount: replaces.length, questionsCount: questions.length };
    const lists = { ...counts, list: [...done, ...replaces, ...questions, ...events] };
    const reply = await this.#own('append', claim, { ...about, ...lists });
    const [answer, found, told] = reply as [string, Reply, readonly string[] | null];
    if (answer === 'gap') throw new JournalGapError(claim.id, Number(found), after);
    if (answer === 'full') throw new JournalFullError(claim.id, Number(found), maxJournalBytes);
    if (answer === 'refused') throw new QuestionRefusedError(claim.id, found as QuestionRefusedError['why']);
    if (told !== null) this.#notifyOwn(asks.length > 0 ? 'status' : 'journal', claim, told);
    return toOrders(found);
  }

  readonly release: StoreDriver['release'] = async (claim, delayMs) =>
    ({ result: (await this.#own('release', claim, { ...claim, delayMs }))[0] }) as ReleaseResult;

  readonly park: StoreDriver['park'] = async (claim, seen) =>
    toParkReceipt(await this.#own('park', claim, { ...claim, ...seen }));

  async finish(claim: ClaimRef, { outcome, newMessages, replacesHistory }: FinishRequest): Promise<FinishResult> {
    const { status: asked, reason, isComplete, ...rest } = outcome;
    const bytes = newMessages.reduce((sum, message) => sum + Buffer.byteLength(message), 0);
    const pieces = { asked, reason: optional(reason), complete: optional(isComplete), rest: JSON.stringify(rest) };
    const values = { ...claim, ...pieces, replacesHistory: replacesHistory ? 1 : 0, bytes, list: newMessages };
    const { receipt, notified } = toFinishResult(await this.#own('finish', claim, values));
    if (notified !== undefined) this.#notifyOwn('status', claim, notified);
    return receipt;
  }

  async cancel(target: TaskRef | ConversationRef, stop: StopRequest): Promise<StoreCancelReceipt> {
    const { level, abortMs, killMs, undo, reason } = stop;
    const isDated = reason.at === undefined ? 0 : 1;
    const asked = { level, abortMs, killMs, undo: undo ? 1 : 0, reason: JSON.stringify(reason), isDated };
    const reply =
      'id' in target
        ? this.#shards.run('cancel', target.id, { ...target, ...asked })
        : this.#shards.talk('cancelConversation', target, { ...target, ...asked });
    return toCancelReceipt(await reply);
  }

  async send({ tenant, id }: TaskRef, command: TaskCommand, nonce: string): Promise<SendReceipt> {
    const what = { command: JSON.stringify(command), kind: command.type };
    return toSendReceipt(await this.#shards.run('send', id, { id, tenant, nonce, ...what }));
  }

  readonly answer: StoreDriver['answer'] = async ({ tenant, id, task }, { text, nonce }) => {
    const values = { id: task, tenant, question: id, nonce: JSON.stringify(nonce), text };
    return toAnswerReceipt(await this.#shards.run('answer', task, values), id);
  };

  async get({ tenant, id }: TaskRef): Promise<TaskRecord | undefined> {
    const reply = await this.#shards.run('get', id, { id, tenant });
    return reply === null ? undefined : toRecord(reply);
  }

  async list({ tenant, status, conversation, backgroundOf = '', limit, after }: ListRequest): Promise<ListPage> {
    const from = { at: after?.createdAt ?? '', last: after?.id ?? '', limit: limit + 1 };
    const of = { tenant, status: status ?? '', conversation: conversation ?? '', background: backgroundOf };
    const shards = conversation === undefined ? undefined : this.#shards.ofConversation({ tenant, conversation });
    return toPage(await this.#shards.runOnAll('list', { ...of, ...from }, shards), limit);
  }

  async read({ tenant, id }: TaskRef, { after, limit, watchTtlMs }: ReadRequest): Promise<readonly JournalEntry[]> {
    const part = { id, tenant, after, limit };
    if (watchTtlMs === undefined) return toEntries(await this.#shards.run('read', id, part));
    return toEntries(await this.#shards.run('readAlong', id, { ...part, watchTtlMs: Math.ceil(watchTtlMs) }));
  }

  async conversation(ref: ConversationRef): Promise<ConversationRecord | undefined> {
    return toConversation(await this.#shards.talk('conversation', ref, ref), ref);
  }

  async watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable> {
    return this.#channels.watch(await this.#channelsFor(filter), filter, listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#channels.close();
    await this.#shards[Symbol.asyncDispose]();
    await this.#channels[Symbol.asyncDispose]();
  }

  /** Returns the fewest channels that cover a filter: a task or a conversation is in one shard. */
  async #channelsFor({ tenant, worker, conversation, id }: WatchFilter): Promise<readonly ChannelRef[]> {
    const all = [...this.#shards.tags.keys()];
    const inAll = (name: string, shards: readonly number[] = all): ChannelRef[] =>
      shards.map((domain) => ({ channel: this.#shards.tags[domain]! + name, domain }));
    if (worker !== undefined) return inAll(`inbox:${worker}`);
    const owner = tenant ?? (id === undefined ? undefined : await this.#shards.run('readTenant', id, { id }));
    if (owner === undefined) throw new TypeError('watch: expected a tenant, a worker or a task to watch');
    if (id !== undefined) return inAll(`changes:${String(owner)}`, [this.#shards.ofId(id)]);
    const shards =
      conversation === undefined ? all : this.#shards.ofConversation({ tenant: String(owner), conversation });
    return inAll(`changes:${String(owner)}`, shards);
  }

  /** Notifies watchers in this process about its own worker's changes, so that the server need not send them back. */
  #notifyOwn(type: 'status' | 'journal', { id }: ClaimRef, [tenant, worker, conversation]: readonly string[]): void {
    const hint = { type, id, tenant: tenant!, worker: worker!, ...(conversation && { conversation }) };
    this.#channels.notify(`${this.#shards.tags[this.#shards.ofId(id)]!}inbox:${worker!}`, hint);
  }

  /** Runs an operation of the claim's holder. */
  async #own<N extends OperationName>(name: N, claim: ClaimRef, values: Arguments<N>): Promise<readonly Reply[]> {
    const reply = (await this.#shards.run(name, claim.id, values)) as readonly Reply[];
    if (reply[0] === 'lost') throw new LeaseLostError(claim.id, claim.epoch);
    return reply;
  }
}

function optional(value: Json | object | undefined): string {
  return value === undefined ? '' : JSON.stringify(value);
}
