import type { ChangeNotifier } from '../../bus/notifier.ts';
import type {
  ClaimRef,
  ClaimRequest,
  ClaimResult,
  Heartbeat,
  HeartbeatResult,
  HeldTask,
  OfferResult,
  Orders,
  ParkReceipt,
  SeenByWorker,
  SessionRef,
  SweepResult,
  TakeResult,
  TaskLoad,
  TaskOrders,
  WordSource,
} from '../../delivery/worker-store.ts';
import { JournalFullError, JournalGapError, QuestionRefusedError } from '../../errors.ts';
import type { AnswerReceipt } from '../../question.ts';
import type {
  CreateReceipt,
  FinishResult,
  Hint,
  ReleaseResult,
  SendReceipt,
  StoreCancelReceipt,
  WatchFilter,
} from '../../store.ts';
import type { ConversationRef, TaskCommand, TaskRecord, TaskRef } from '../../task.ts';
import type {
  CreateRequest,
  DriverAnswer,
  DriverBatch,
  DriverReceipt,
  DriverTake,
  FinishRequest,
  StopRequest,
  StoreDriver,
  StoreRules,
} from '../driver.ts';
import { findBackgroundOwner } from '../rules/background.ts';
import { type Batches, createBatches, isShareable, toEnding } from './batches.ts';
import { type Claiming, claimTask, claimTasks } from './claims.ts';
import type { Database } from './connection/database.ts';
import { PostgresFeed } from './feed.ts';
import { checkClaim, DatabaseFunctions, MAX_INT } from './functions.ts';
import { type OfferRow, toOfferedTask } from './hints.ts';
import { Overview } from './overview.ts';
import { Purger } from './purger.ts';
import type { RecordRow, ShownLoad, ShownOrders, ShownTaken } from './rows.ts';
import { present, toAnswerReceipt, toLoad, toOrders, toRecord, toTaken } from './rows.ts';
import { checkNames, checkText } from './text.ts';

export interface PostgresDriverOptions {
  readonly database: Database;
  readonly notifier: ChangeNotifier;
  readonly rules: StoreRules;
}

/** Every method is one function in the database: one round trip, one transaction. */
export class PostgresDriver extends Overview implements StoreDriver {
  readonly name = 'postgres';
  readonly feed: PostgresFeed;
  readonly #options: PostgresDriverOptions;
  readonly #purger: Purger;
  readonly #batches: Batches;
  readonly #retentionMs = (): number => this.#options.rules.retentionMs;
  readonly #claiming: Claiming;
  /** The tenant that was served last, so that the next take starts with the one after it. */
  #lastTenant = '';

  constructor(options: PostgresDriverOptions) {
    const { database, notifier, rules } = options;
    super(new DatabaseFunctions(database, notifier), rules);
    this.#options = options;
    this.feed = new PostgresFeed(this.functions, database, notifier.inbox);
    this.#purger = new Purger(this.functions, rules);
    this.#batches = createBatches(this.functions, rules);
    this.#claiming = { functions: this.functions, rules };
  }

  async create(request: CreateRequest): Promise<DriverReceipt> {
    const receipt = await this.#create(request);
    if (receipt.result === 'created') this.#purger.countCreated();
    return receipt;
  }

  async #create(request: CreateRequest): Promise<DriverReceipt> {
    const { id, tenant, agent, conversation, key, preferredWorker, input, debounceMs, policy, nonce } = request;
    const { priority, notBefore, deadline, title, context, traceparent = null, startedBy, keepsQuestions } = request;
    checkNames({ tenant, conversation });
    checkNames({ tenant, agent });
    checkNames({ tenant, key: findBackgroundOwner(request) });
    for (const [name, value] of Object.entries({ key, preferredWorker, nonce, startedBy }))
      if (value !== undefined) checkText(name, value);
    if (conversation === undefined && deadline === undefined && context === '') {
      const created = await this.#batches.creates.ask(request);
      if (created !== undefined) return created;
    }
    const { rules } = this.#options;
    type Created = { readonly result: 'created' | 'duplicate'; readonly task: RecordRow };
    type Refused = Exclude<CreateReceipt, { task: TaskRecord }>;
    const of = { p_tenant: tenant, of_agent: agent, of_conversation: conversation ?? null, of_key: key ?? null };
    const about = {
      of_priority: priority,
      of_context: context || null,
      title: title ?? null,
      preferred_worker: preferredWorker ?? null,
    };
    const when = { hold_ms: debounceMs, not_before: notBefore ?? null, deadline: deadline ?? null };
    const by = { starter: startedBy ?? null, keeps_questions: keepsQuestions === true };
    const given = { input, given_policy: policy, p_nonce: nonce, traceparent, ...by };
    const kept = { retention_ms: this.#retentionMs, conversation_retention_ms: () => rules.conversationRetentionMs };
    const max_ready = Math.min(rules.maxReady, MAX_INT);
    const values = { task_id: id, ...of, ...about, ...when, ...given, ...kept, max_ready };
    const answer = await this.functions.call<Created | Refused>('create', 'create_task', values);
    if (!('task' in answer)) return answer;
    const task = toRecord(answer.task);
    if (answer.result === 'duplicate') return { result: 'duplicate', task };
    const { superseded = [], steered } = task;
    return { result: 'created', task, superseded, ...(steered !== undefined && { steered }) };
  }

  async take(request: DriverTake): Promise<TakeResult> {
    const { session, takeNumber, worker, agents, leaseMs, limit, claim, maxBytes, offers } = request;
    for (const name of [session, worker, claim, ...agents]) checkText('worker, agents', name);
    for (const { agent, tenant, id } of offers ?? []) checkNames({ agent, tenant, id });
    type Taken = Extract<TakeResult, { result: 'taken' }>;
    type Shown = Omit<Taken, 'tasks' | 'nextAt' | 'offers' | 'lostOffers'> & {
      readonly offers?: readonly OfferResult[] | null;
      readonly lost?: readonly OfferRow[] | null;
      readonly tasks: readonly ShownTaken[] | null;
      readonly nextAt?: number | null;
    };
    const by = { session_id: session, p_worker: worker, of_lease_ms: leaseMs, own_claim: claim };
    const wanted = { number: Math.min(takeNumber, MAX_INT), agents, p_limit: limit, max_bytes: maxBytes };
    const offered = {
      offer_agents: offers?.map((one) => one.agent) ?? null,
      offer_tenants: offers?.map((one) => one.tenant) ?? null,
      offer_ids: offers?.map(({ id = null }) => id) ?? null,
    };
    const rest = { after_tenant: this.#lastTenant, max_attempts: this.#options.rules.maxAttempts };
    const values = { ...by, ...wanted, ...rest, ...offered };
    const answer = await this.functions.call<Shown | Exclude<TakeResult, Taken>>('take', 'take', values);
    if (answer.result !== 'taken') return answer;
    const { now, isRepeat, shouldSweep, nextAt, lost } = answer;
    const tasks = (answer.tasks ?? []).map((task) => toTaken(task, now));
    this.#lastTenant = tasks.at(-1)?.task.tenant ?? this.#lastTenant;
    const next = nextAt != null && { nextReadyAt: nextAt };
    const results = offers && { offers: answer.offers ?? offers.map(() => 'later' as const) };
    const again = offers && !isRepeat && { lostOffers: lost?.map(toOfferedTask) ?? [] };
    return { result: 'taken', tasks, isRepeat, shouldSweep, ...results, ...again, now, ...next };
  }

  async noteOffered(ids: readonly string[]): Promise<void> {
    for (const id of ids) checkText('ids', id);
    await this.functions.call('noteOffered', 'note_offered', { ids });
  }

  claim(id: string, request: Required<ClaimRequest>): Promise<ClaimResult> {
    return claimTask(id, request, this.#claiming);
  }

  claimMany(ids: readonly string[], request: Required<ClaimRequest>): Promise<readonly ClaimResult[]> {
    return claimTasks(ids, request, this.#claiming);
  }

  async load(claim: ClaimRef): Promise<TaskLoad> {
    return toLoad(await this.functions.callAsWorker<ShownLoad>('load', claim, {}));
  }

  async heartbeat({ session, confirmed, count }: Required<Heartbeat>): Promise<HeartbeatResult> {
    checkText('session', session);
    type Alive = Extract<HeartbeatResult, { result: 'alive' }>;
    type Order = Pick<TaskOrders, 'id' | 'epoch' | 'claim'> & { readonly orders: ShownOrders };
    type Shown = Omit<Alive, 'orders'> & { readonly orders: readonly Order[] };
    const column = (name: 'id' | 'epoch' | 'claim' | 'orderNumber'): unknown[] => confirmed.map((one) => one[name]);
    const claims = { ids: column('id'), epochs: column('epoch'), claims: column('claim') };
    const values = { session_id: session, ...claims, numbers: column('orderNumber'), p_held_count: count };
    const answer = await this.functions.call<Shown | Exclude<HeartbeatResult, Alive>>('heartbeat', 'heartbeat', values);
    if (answer.result === 'session-ended') return answer;
    return { ...answer, orders: answer.orders.map(({ orders, ...claim }) => ({ ...claim, ...toOrders(orders) })) };
  }

  held({ session }: SessionRef): Promise<readonly HeldTask[]> {
    checkText('session', session);
    return this.functions.read('held', 'held', { session_id: session });
  }

  async sweep({ limit }: { readonly limit: number }): Promise<SweepResult> {
    const answer = await this.functions.call<SweepResult>('sweep', 'sweep', { p_limit: limit });
    const isMoreOld = await this.#purger.purge(limit);
    return present({ ...answer, hasMore: answer.hasMore || isMoreOld }) as SweepResult;
  }

  async append(claim: ClaimRef, given: DriverBatch): Promise<Orders> {
    checkClaim(claim);
    const { maxJournalBytes } = this.#options.rules;
    const batch = { ...given, after: Math.max(-1, Math.min(given.after, MAX_INT - given.events.length)) };
    const { after, events, said, replaces, done, declined, resetsAttempts, activity = null, asks, closes } = batch;
    const shared = isShareable(batch) ? await this.#batches.appends.ask({ claim, batch }) : undefined;
    if (shared !== undefined) return toOrders(shared);
    const questions = {
      asked_ids: asks.map(({ id }) => id),
      asked: asks.map(({ asked }) => asked),
      expires_ms: asks.map(({ expiresMs = null }) => expiresMs),
      closed_ids: closes.map(({ id }) => id),
      whys: closes.map(({ why }) => why),
    };
    const rest = { done, declined, progress: resetsAttempts, max_bytes: maxJournalBytes, shown: activity };
    const values = { after, events, said, replaces, ...rest, ...questions };
    type Refused =
      | { result: 'gap'; position: number }
      | { result: 'full'; bytes: number }
      | { result: 'refused'; why: QuestionRefusedError['why'] };
    const orders = await this.functions.callAsWorker<ShownOrders | Refused>('append', claim, values);
    if (!('result' in orders)) return toOrders(orders);
    if (orders.result === 'refused') throw new QuestionRefusedError(claim.id, orders.why);
    if (orders.result === 'gap') throw new JournalGapError(claim.id, orders.position, given.after);
    throw new JournalFullError(claim.id, orders.bytes, maxJournalBytes);
  }

  release(claim: ClaimRef, delayMs: number): Promise<ReleaseResult> {
    return this.functions.callAsWorker<ReleaseResult>('release', claim, { delay_ms: delayMs });
  }

  async park(claim: ClaimRef, { position, orderNumber }: SeenByWorker): Promise<ParkReceipt> {
    type Shown = { result: 'parked' | 'unchanged' } | { result: 'busy'; orders: ShownOrders };
    const values = { seen_position: position, seen_order: orderNumber };
    const receipt = await this.functions.callAsWorker<Shown>('park', claim, values);
    return receipt.result === 'busy' ? { result: 'busy', orders: toOrders(receipt.orders) } : receipt;
  }

  async answer(question: Parameters<StoreDriver['answer']>[0], { text, nonce }: DriverAnswer): Promise<AnswerReceipt> {
    const { tenant, id, task } = question;
    checkNames({ tenant, id });
    checkText('nonce', nonce);
    const of = { p_tenant: tenant, task_id: task, question_id: id, retention_ms: this.#retentionMs };
    return toAnswerReceipt(await this.functions.call('answer', 'answer', { ...of, given: text, p_nonce: nonce }), id);
  }

  async finish(claim: ClaimRef, { outcome, newMessages, replacesHistory }: FinishRequest): Promise<FinishResult> {
    checkClaim(claim);
    const ended =
      newMessages.length > 0 || replacesHistory ? undefined : await this.#batches.finishes.ask({ claim, outcome });
    if (ended !== undefined) return { result: 'finished', status: ended };
    const values = {
      ...toEnding(outcome),
      replaces_history: replacesHistory,
      new_messages: newMessages,
      retention_ms: this.#retentionMs,
    };
    return present(await this.functions.callAsWorker<FinishResult>('finish', claim, values)) as FinishResult;
  }

  async cancel(target: TaskRef | ConversationRef, stop: StopRequest): Promise<StoreCancelReceipt> {
    const { at = null, ...reason } = stop.reason;
    const { level, abortMs, killMs, undo } = stop;
    const asked = { given: JSON.stringify(reason), at, level, abort_ms: abortMs, kill_ms: killMs, undo };
    if ('id' in target) {
      const { tenant, id } = target;
      checkNames({ tenant, id });
      const receipt = await this.#batches.cancels.ask({ target, stop });
      if (receipt !== undefined) return receipt;
      const one = { p_tenant: tenant, task_id: id, retention_ms: this.#retentionMs };
      return this.functions.call('cancel', 'cancel_task', { ...one, ...asked });
    }
    const { tenant, conversation } = target;
    checkNames({ tenant, conversation });
    const all = { p_tenant: tenant, of_conversation: conversation };
    return this.functions.call('cancel', 'cancel_conversation', { ...all, ...asked });
  }

  send({ tenant, id }: TaskRef, command: TaskCommand, nonce: string): Promise<SendReceipt> {
    checkNames({ tenant, id });
    checkText('nonce', nonce);
    const what = { command: JSON.stringify(command), command_type: command.type, p_nonce: nonce };
    const asked = { p_tenant: tenant, task_id: id, ...what, retention_ms: this.#retentionMs };
    return this.functions.call('send', 'send', asked);
  }

  async watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable> {
    for (const [name, value] of Object.entries(filter)) if (typeof value === 'string') checkText(name, value);
    return this.#options.notifier.watch(filter, listener);
  }

  show(words: WordSource): void {
    this.#options.notifier.show(words);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { notifier, database } = this.#options;
    await this.#purger[Symbol.asyncDispose]();
    await notifier[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  }
}
