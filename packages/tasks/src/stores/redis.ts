import type { Json } from '@whoa/core';
import type {
  Beat,
  BeatAnswer,
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  Orders,
  TakeAnswer,
  TakeRequest,
} from '../delivery.ts';
import { JournalFullError, JournalGapError, LeaseLostError, StoreBusyError } from '../errors.ts';
import { createTaskId } from '../id.ts';
import type {
  FinishReceipt,
  Hint,
  ListPage,
  ReleaseReceipt,
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
  End,
  ListRequest,
  ReadRequest,
  Retention,
  ShardedTask,
  StopRequest,
  StoreDriver,
  StoreRules,
} from './driver.ts';
import { Calls } from './redis/calls.ts';
import { type ChannelRef, Channels } from './redis/channels.ts';
import type { Reply } from './redis/connection/connection.ts';
import { Shards } from './redis/connection/shards.ts';
import {
  checkOptions,
  generationsOf,
  limitsOf,
  PREFIX,
  type RedisStoreOptions,
  TIMEOUT_MS,
  tagOf,
} from './redis/options.ts';
import { OverviewCalls } from './redis/overview-calls.ts';
import { pageOf } from './redis/replies/pages.ts';
import { conversationOf, entriesOf } from './redis/replies/read-replies.ts';
import {
  beatAnswerOf,
  cancelReceiptOf,
  claimAnswerOf,
  createReceiptOf,
  finishReceiptOf,
  heldOf,
  loadOf,
  ordersOf,
  recordOf,
  sendReceiptOf,
  sweepAnswerOf,
  takeAnswerOf,
} from './redis/replies/replies.ts';
import { SCRIPTS, type Script } from './redis/scripts.ts';
import { createStoreRules, toRetention } from './store-rules.ts';

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

/** `shiftMs` moves the store's clock ahead of the server's, so that tests need not wait. */
export function openRedisStore(options: RedisStoreOptions, shiftMs: () => number): TaskStore {
  checkOptions(options);
  const rules = createStoreRules(options);
  return createCheckedStore(new RedisDriver(options, rules, shiftMs), { rules, world: options.world });
}

type Values = readonly (string | number)[];

class RedisDriver extends OverviewCalls implements StoreDriver {
  readonly name: string = 'redis';
  readonly domains: number;
  readonly generations: readonly number[];
  readonly #rules: StoreRules;
  readonly #tags: readonly string[];
  readonly #shards: Shards;
  readonly #calls: Calls;
  readonly #channels: Channels;
  readonly #common: (format: number) => Values;

  constructor(options: RedisStoreOptions, rules: StoreRules, shiftMs: () => number) {
    super();
    this.generations = generationsOf(options);
    this.domains = this.generations.at(-1)!;
    this.#shards = new Shards(this.generations);
    this.#rules = rules;
    this.#tags = Array.from({ length: this.domains }, (_, shard) => tagOf(options.prefix ?? PREFIX, shard));
    // Convert to text once: otherwise the library does it for every operation, while the caller waits.
    const limits = limitsOf(rules, this.generations);
    let kept: Values = [];
    const useRetention = (retention: Retention): void => {
      Object.assign(rules, retention);
      kept = [rules.retentionMs, rules.conversationRetentionMs].map((ms) => `${Math.ceil(ms)}`);
    };
    useRetention(rules);
    this.#common = (format) => [`${shiftMs()}`, ...kept, `${format} ${limits}`];
    this.#calls = new Calls(options, {
      given: rules.given,
      settings: (found) => useRetention(toRetention(found)),
      message: (channel, text) => this.#channels.hear(channel, text),
      lost: (connection) => this.#channels.mend(connection),
      slotGone: (connection) => this.#channels.mend(connection),
    });
    this.#channels = new Channels(this.#calls, options.timeoutMs ?? TIMEOUT_MS);
  }

  /** Asks the shards of earlier layouts first, oldest first: data that is in use there stays there. */
  async shardsFor({ tenant, conversation, key }: ShardedTask, nonce: string): Promise<number> {
    const isNamed = conversation !== undefined || key !== undefined;
    for (const shards of isNamed ? this.generations.slice(0, -1) : []) {
      const id = createTaskId({ tenant, conversation, key }, { nonce, shards });
      if ((await this.run(SCRIPTS.isHere, id, [id, tenant, conversation ?? ''])) === 'here') return shards;
    }
    return this.domains;
  }

  async create(request: CreateRequest): Promise<DriverReceipt> {
    const { id, tenant, agent, input, nonce, conversation = '', key = '', worker = '', priority } = request;
    const { notBefore = '', deadline = '', title = '', policy, holdMs, context } = request;
    const about = [id, tenant, agent, input, nonce, this.#rules.maxReady, conversation, key, worker, priority];
    const when = [notBefore, policy, holdMs];
    const isOfBefore = this.generations.length > 1 && createTaskId(request, { nonce, shards: this.domains }) !== id;
    const reply = await this.run(SCRIPTS.create, id, [...about, ...when, isOfBefore ? 1 : 0, deadline, title, context]);
    if ((reply as readonly Reply[])[0] === 'gone') {
      throw new StoreBusyError('The conversation or key was removed during the request; nothing changed, try again');
    }
    return createReceiptOf(reply, request);
  }

  async take(request: Required<TakeRequest>): Promise<TakeAnswer> {
    const { domain, session, worker, leaseMs, claim, number, limit, agents, maxBytes } = request;
    const about = [session, worker, Math.ceil(leaseMs), claim, number, limit, JSON.stringify(agents), maxBytes];
    return takeAnswerOf(await this.#call(SCRIPTS.take, domain, [...about, ...agents]));
  }

  async claim(id: string, request: Required<ClaimRequest>): Promise<ClaimAnswer> {
    const { session, worker, leaseMs, claim, maxBytes } = request;
    return claimAnswerOf(await this.run(SCRIPTS.claim, id, [id, session, worker, Math.ceil(leaseMs), claim, maxBytes]));
  }

  readonly load: StoreDriver['load'] = async (claim) => loadOf((await this.#own(SCRIPTS.load, claim, []))[1]!);

  async beat({ domain, session, confirmed, count }: Required<Beat>): Promise<BeatAnswer> {
    const orders = confirmed.flatMap(({ id, epoch, claim, orderNumber }) => [id, epoch, claim, orderNumber]);
    return beatAnswerOf(await this.#call(SCRIPTS.beat, domain, [session, count, ...orders]));
  }

  readonly held: StoreDriver['held'] = async ({ domain, session }) =>
    heldOf(await this.#call(SCRIPTS.held, domain, [session]));
  readonly sweep: StoreDriver['sweep'] = async ({ domain, limit }) =>
    sweepAnswerOf(await this.#call(SCRIPTS.sweep, domain, [limit]));

  async append(claim: ClaimRef, batch: DriverBatch): Promise<Orders> {
    const { after, events, replaces, done, progress, activity = '' } = batch;
    const { maxJournalBytes } = this.#rules;
    const about = [after, maxJournalBytes, progress ? 1 : 0, activity, done.length, replaces.length];
    const reply = await this.#own(SCRIPTS.append, claim, [...about, ...done, ...replaces, ...events]);
    const [answer, found, told] = reply as [string, Reply, readonly string[] | null];
    if (answer === 'gap') throw new JournalGapError(claim.id, Number(found), after);
    if (answer === 'full') throw new JournalFullError(claim.id, Number(found), maxJournalBytes);
    if (told !== null) this.#tellOwn('journal', claim, told);
    return ordersOf(found);
  }

  readonly release: StoreDriver['release'] = async (claim) =>
    ({ answer: (await this.#own(SCRIPTS.release, claim, []))[0] }) as ReleaseReceipt;

  async finish(claim: ClaimRef, { outcome, said, anew }: End): Promise<FinishReceipt> {
    const { status: asked, reason, complete, ...rest } = outcome;
    const bytes = said.reduce((sum, message) => sum + Buffer.byteLength(message), 0);
    const about = [asked, optional(reason), optional(complete), JSON.stringify(rest), anew ? 1 : 0, bytes];
    const { receipt, told } = finishReceiptOf(await this.#own(SCRIPTS.finish, claim, [...about, ...said]));
    if (told !== undefined) this.#tellOwn('status', claim, told);
    return receipt;
  }

  async cancel(target: TaskRef | ConversationRef, stop: StopRequest): Promise<StoreCancelReceipt> {
    const { level, abortMs, killMs, undo, reason } = stop;
    const isDated = reason.at === undefined ? 0 : 1;
    const asked = [level, abortMs, killMs, undo ? 1 : 0, JSON.stringify(reason), isDated];
    const reply =
      'id' in target
        ? this.run(SCRIPTS.cancel, target.id, [target.id, target.tenant, ...asked])
        : this.talk(SCRIPTS.cancelConversation, target, asked);
    return cancelReceiptOf(await reply);
  }

  async send({ tenant, id }: TaskRef, command: TaskCommand, nonce: string): Promise<SendReceipt> {
    return sendReceiptOf(await this.run(SCRIPTS.send, id, [id, tenant, nonce, JSON.stringify(command)]));
  }

  async get({ tenant, id }: TaskRef): Promise<TaskRecord | undefined> {
    const reply = await this.run(SCRIPTS.get, id, [id, tenant]);
    return reply === null ? undefined : recordOf(reply);
  }

  async list({ tenant, status, conversation, backgroundOf = '', limit, after }: ListRequest): Promise<ListPage> {
    const last = [after?.createdAt ?? '', after?.id ?? ''];
    const values = [tenant, status ?? '', conversation ?? '', limit + 1, ...last, backgroundOf];
    const shards = conversation === undefined ? undefined : this.#shards.ofConversation({ tenant, conversation });
    return pageOf(await this.callAll(SCRIPTS.list, values, shards), limit);
  }

  async read({ tenant, id }: TaskRef, { after, limit, watchMs }: ReadRequest): Promise<readonly JournalEntry[]> {
    const script = watchMs === undefined ? SCRIPTS.read : SCRIPTS.readAlong;
    return entriesOf(await this.run(script, id, [id, tenant, after, limit, Math.ceil(watchMs ?? 0)]));
  }

  async conversation(ref: ConversationRef): Promise<ConversationRecord | undefined> {
    return conversationOf(await this.talk(SCRIPTS.conversation, ref, []), ref);
  }

  async watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable> {
    return this.#channels.watch(await this.#channelsFor(filter), filter, listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#channels.close();
    await this.#calls[Symbol.asyncDispose]();
    await this.#channels[Symbol.asyncDispose]();
  }

  /** Returns the fewest channels that cover a filter: a task or a conversation is in one shard. */
  async #channelsFor({ tenant, worker, conversation, id }: WatchFilter): Promise<readonly ChannelRef[]> {
    const all = [...this.#tags.keys()];
    const inAll = (name: string, shards: readonly number[] = all): ChannelRef[] =>
      shards.map((domain) => ({ channel: this.#tags[domain]! + name, tag: this.#tags[domain]!, domain }));
    if (worker !== undefined) return inAll(`inbox:${worker}`);
    const owner = tenant ?? (id === undefined ? undefined : await this.run(SCRIPTS.tenantOf, id, [id]));
    if (owner === undefined) throw new TypeError('watch: expected a tenant, a worker or a task to watch');
    if (id !== undefined) return inAll(`changes:${String(owner)}`, [this.#shards.ofId(id)]);
    const shards =
      conversation === undefined ? all : this.#shards.ofConversation({ tenant: String(owner), conversation });
    return inAll(`changes:${String(owner)}`, shards);
  }

  /** Notifies watchers in this process about its own worker's changes, so that the server need not send them back. */
  #tellOwn(type: 'status' | 'journal', { id }: ClaimRef, [tenant, worker, conversation]: readonly string[]): void {
    const hint = { type, id, tenant: tenant!, worker: worker!, ...(conversation && { conversation }) };
    this.#channels.tell(`${this.#tags[this.#shards.ofId(id)]!}inbox:${worker!}`, hint);
  }

  /** Runs an operation of the claim's holder. */
  async #own(script: Script, { id, epoch, session, claim }: ClaimRef, values: Values): Promise<readonly Reply[]> {
    const reply = (await this.run(script, id, [id, epoch, session, claim, ...values])) as readonly Reply[];
    if (reply[0] === 'lost') throw new LeaseLostError(id, epoch);
    return reply;
  }

  /** Asks the oldest shard that a conversation can be in first. */
  protected async talk(script: Script, ref: ConversationRef, values: Values): Promise<Reply> {
    let reply: Reply = null;
    for (const shard of this.#shards.ofConversation(ref)) {
      reply = await this.#call(script, shard, [ref.tenant, ref.conversation, ...values]);
      if (reply !== null && (reply as readonly Reply[])[0] !== 'unknown') return reply;
    }
    return reply;
  }

  protected run(script: Script, id: string, values: Values): Promise<Reply> {
    return this.#call(script, this.#shards.ofId(id), values);
  }

  protected callAll(script: Script, values: Values, shards: Iterable<number> = this.#tags.keys()): Promise<Reply[]> {
    return Promise.all(Array.from(shards, (shard) => this.#call(script, shard, values)));
  }

  #call(script: Script, shard: number, values: Values): Promise<Reply> {
    return this.#calls.call(script, this.#tags[shard]!, (format) => [...this.#common(format), ...values]);
  }
}

function optional(value: Json | object | undefined): string {
  return value === undefined ? '' : JSON.stringify(value);
}
