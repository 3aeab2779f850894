import type {
  Beat,
  BeatAnswer,
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  HeldTask,
  Orders,
  SessionRef,
  SweepAnswer,
  TakeAnswer,
  TakeRequest,
  TaskLoad,
} from '../../delivery.ts';
import { JournalFullError, JournalGapError } from '../../errors.ts';
import { backgroundOf } from '../../rules/background.ts';
import type {
  CreateReceipt,
  FinishReceipt,
  Hint,
  ReleaseReceipt,
  SendReceipt,
  StoreCancelReceipt,
  WatchFilter,
} from '../../store.ts';
import type { ConversationRef, TaskCommand, TaskRecord, TaskRef } from '../../task.ts';
import type {
  CreateRequest,
  DriverBatch,
  DriverReceipt,
  End,
  StopRequest,
  StoreDriver,
  StoreRules,
} from '../driver.ts';
import type { Watchers } from '../watchers.ts';
import { type Batches, createBatches, isShareable } from './batches.ts';
import type { Database } from './connection/database.ts';
import { Forgetting } from './forgetting.ts';
import { checkClaim, DatabaseFunctions, MAX_INT } from './functions.ts';
import type { ChangeNotifier } from './notify/notifier.ts';
import { Overview } from './overview.ts';
import {
  loadOf,
  ordersOf,
  ordersOfHead,
  present,
  recordOf,
  type ShownHead,
  type ShownLoad,
  type ShownOrders,
  type ShownRecord,
  type ShownTaken,
  takenOf,
} from './rows.ts';
import { checkNames, checkText } from './text.ts';

export interface PostgresDriverOptions {
  readonly database: Database;
  readonly notifier: ChangeNotifier;
  readonly watchers: Watchers;
  readonly rules: StoreRules;
}

/** Every method is one function in the database: one round trip, one transaction. */
export class PostgresDriver extends Overview implements StoreDriver {
  readonly name = 'postgres';
  readonly domains = 1;
  readonly #options: PostgresDriverOptions;
  readonly #forgetting: Forgetting;
  readonly #batches: Batches;
  readonly #retentionMs = (): number => this.#options.rules.retentionMs;
  /** The tenant that was served last, so that the next take starts with the one after it. */
  #lastTenant = '';

  constructor(options: PostgresDriverOptions) {
    const { database, notifier, rules } = options;
    super(new DatabaseFunctions(database, notifier), rules);
    this.#options = options;
    this.#forgetting = new Forgetting(this.functions, rules);
    this.#batches = createBatches(this.functions, rules, notifier.channel);
  }

  async create(request: CreateRequest): Promise<DriverReceipt> {
    const receipt = await this.#create(request);
    if (receipt.answer === 'created') this.#forgetting.countCreated();
    return receipt;
  }

  async #create(request: CreateRequest): Promise<DriverReceipt> {
    const { id, tenant, agent, conversation, key, worker, input, holdMs, policy, nonce, priority, notBefore } = request;
    const { deadline, title, context } = request;
    checkNames({ tenant, conversation });
    checkNames({ tenant, agent });
    checkNames({ tenant, key: backgroundOf(request) });
    for (const [name, value] of Object.entries({ key, worker, nonce })) if (value !== undefined) checkText(name, value);
    if (conversation === undefined && deadline === undefined && context === '') {
      const created = await this.#batches.creates.ask(request);
      if (created !== undefined) return created;
    }
    const { rules } = this.#options;
    const what = [id, tenant, agent, conversation ?? null, key ?? null, worker ?? null, input, holdMs, policy, nonce];
    const when = [priority, notBefore ?? null];
    const kept = [this.#retentionMs, () => rules.conversationRetentionMs];
    const bounds = [...kept, Math.min(rules.maxReady, MAX_INT), deadline ?? null, title ?? null, context || null];
    type Created = { readonly answer: 'created' | 'duplicate'; readonly task: ShownRecord };
    type Refused = Exclude<CreateReceipt, { task: TaskRecord }>;
    const values = [...what, ...when, ...bounds];
    const answer = await this.functions.call<Created | Refused>('create', 'create_task', values);
    if (!('task' in answer)) return answer;
    const task = recordOf(answer.task);
    if (answer.answer === 'duplicate') return { answer: 'duplicate', task };
    const { superseded = [], steered } = task;
    return { answer: 'created', task, superseded, ...(steered !== undefined && { steered }) };
  }

  async take(request: Required<TakeRequest>): Promise<TakeAnswer> {
    const { session, number, worker, agents, leaseMs, limit, claim, maxBytes } = request;
    const about = [session, Math.min(number, MAX_INT), worker, agents, leaseMs, limit, claim, maxBytes];
    const values = [...about, this.#lastTenant, this.#options.rules.maxAttempts];
    for (const name of [session, worker, claim, ...agents]) checkText('worker, agents', name);
    type Taken = Extract<TakeAnswer, { answer: 'taken' }>;
    type Shown = Omit<Taken, 'tasks' | 'nextAt'> & {
      readonly tasks: readonly ShownTaken[] | null;
      readonly nextAt?: number | null;
    };
    const answer = await this.functions.call<Shown | Exclude<TakeAnswer, Taken>>('take', 'take', values);
    if (answer.answer !== 'taken') return answer;
    const { now, repeat, expired, nextAt } = answer;
    const tasks = (answer.tasks ?? []).map((task) => takenOf(task, now));
    this.#lastTenant = tasks.at(-1)?.task.tenant ?? this.#lastTenant;
    return { answer: 'taken', tasks, repeat, expired, now, ...(nextAt != null && { nextAt }) };
  }

  async claim(id: string, request: Required<ClaimRequest>): Promise<ClaimAnswer> {
    const { session, worker, leaseMs, claim, maxBytes } = request;
    for (const [name, value] of Object.entries({ id, session, worker, claim })) checkText(name, value);
    const values = [id, session, worker, leaseMs, claim, maxBytes, this.#retentionMs, this.#options.rules.maxAttempts];
    type Claimed = { readonly answer: 'claimed'; readonly now: number; readonly tasks: readonly [ShownTaken] };
    type Other = Exclude<ClaimAnswer, { answer: 'claimed' }>;
    const answer = await this.functions.call<Claimed | Other>('claim', 'claim', values);
    return answer.answer === 'claimed' ? { answer: 'claimed', ...takenOf(answer.tasks[0], answer.now) } : answer;
  }

  async load(claim: ClaimRef): Promise<TaskLoad> {
    return loadOf(await this.functions.callAsWorker<ShownLoad>('load', claim, []));
  }

  async beat({ session, confirmed, count }: Required<Beat>): Promise<BeatAnswer> {
    checkText('session', session);
    const columns = (['id', 'epoch', 'claim', 'orderNumber'] as const).map((name) => confirmed.map((one) => one[name]));
    type Alive = Extract<BeatAnswer, { answer: 'alive' }>;
    type Shown = Omit<Alive, 'orders'> & { readonly orders: readonly ShownHead[] };
    const values = [session, ...columns, count];
    const answer = await this.functions.call<Shown | Exclude<BeatAnswer, Alive>>('beat', 'beat', values);
    if (answer.answer === 'gone') return answer;
    const { now } = answer;
    const orders = answer.orders.map((head) => {
      const { id, epoch, claim } = head.row;
      return { id, epoch, claim, ...ordersOfHead(head, now) };
    });
    return { ...answer, orders };
  }

  held({ session }: SessionRef): Promise<readonly HeldTask[]> {
    checkText('session', session);
    return this.functions.read('held', 'held', [session]);
  }

  async sweep({ limit }: { readonly limit: number }): Promise<SweepAnswer> {
    const answer = await this.functions.call<SweepAnswer>('sweep', 'sweep', [limit]);
    const isMoreOld = await this.#forgetting.forget(limit);
    return present({ ...answer, more: answer.more || isMoreOld }) as SweepAnswer;
  }

  async append(claim: ClaimRef, given: DriverBatch): Promise<Orders> {
    checkClaim(claim);
    const { maxJournalBytes } = this.#options.rules;
    const batch = { ...given, after: Math.max(-1, Math.min(given.after, MAX_INT - given.events.length)) };
    const { after, events, replaces, done, progress, activity = null } = batch;
    const shared = isShareable(batch) ? await this.#batches.appends.ask({ claim, batch }) : undefined;
    if (shared !== undefined) return ordersOf(shared);
    const values = [after, events, replaces, done, progress, maxJournalBytes, activity];
    type Refused = { answer: 'gap'; position: number } | { answer: 'full'; bytes: number };
    const orders = await this.functions.callAsWorker<ShownOrders | Refused>('append', claim, values);
    if (!('answer' in orders)) return ordersOf(orders);
    if (orders.answer === 'gap') throw new JournalGapError(claim.id, orders.position, given.after);
    throw new JournalFullError(claim.id, orders.bytes, maxJournalBytes);
  }

  release(claim: ClaimRef): Promise<ReleaseReceipt> {
    return this.functions.callAsWorker<ReleaseReceipt>('release', claim, []);
  }

  async finish(claim: ClaimRef, { outcome, said, anew }: End): Promise<FinishReceipt> {
    checkClaim(claim);
    const ended = said.length > 0 || anew ? undefined : await this.#batches.finishes.ask({ claim, outcome });
    if (ended !== undefined) return { answer: 'finished', status: ended };
    const { status, reason, complete = null, ...rest } = outcome;
    const about = [JSON.stringify(rest), reason === undefined ? null : JSON.stringify(reason), complete];
    const values = [status, ...about, anew, said, this.#retentionMs];
    return present(await this.functions.callAsWorker<FinishReceipt>('finish', claim, values)) as FinishReceipt;
  }

  async cancel(target: TaskRef | ConversationRef, stop: StopRequest): Promise<StoreCancelReceipt> {
    const { at = null, ...reason } = stop.reason;
    const asked = [JSON.stringify(reason), at, stop.level, stop.abortMs, stop.killMs, stop.undo];
    if ('id' in target) {
      const { tenant, id } = target;
      checkNames({ tenant, id });
      const receipt = await this.#batches.cancels.ask({ target, stop });
      if (receipt !== undefined) return receipt;
      return this.functions.call('cancel', 'cancel_task', [tenant, id, ...asked, this.#retentionMs]);
    }
    const { tenant, conversation } = target;
    checkNames({ tenant, conversation });
    return this.functions.call('cancel', 'cancel_conversation', [tenant, conversation, ...asked]);
  }

  send({ tenant, id }: TaskRef, command: TaskCommand, nonce: string): Promise<SendReceipt> {
    checkNames({ tenant, id });
    checkText('nonce', nonce);
    const values = [tenant, id, JSON.stringify(command), nonce, this.#retentionMs];
    return this.functions.call('send', 'send', values);
  }

  async watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable> {
    for (const [name, value] of Object.entries(filter)) if (typeof value === 'string') checkText(name, value);
    const watcher = this.#options.watchers.add(filter, listener);
    try {
      const leave = await this.#options.notifier.watch(filter);
      let isOver = false;
      return {
        async [Symbol.asyncDispose]() {
          if (isOver) return;
          isOver = true;
          await watcher[Symbol.asyncDispose]();
          await leave();
        },
      };
    } catch (error) {
      await watcher[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { watchers, notifier, database } = this.#options;
    watchers.clear();
    await this.#forgetting[Symbol.asyncDispose]();
    await notifier[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  }
}
