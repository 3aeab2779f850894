import { isDeepStrictEqual } from 'node:util';
import type { AppContext, CancelReasonInit } from '@whoa/core';
import { type CancelOptions, createReason, systemWorld, type World } from '@whoa/core/embed';
import { contextRule, createStopSchedule, readCancelOptions, toContextKey } from '@whoa/core/internal';
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
import { StoreClosedError } from '../../errors.ts';
import { createTaskId, refOfKey } from '../../id.ts';
import { toTitle } from '../../rules/new-task.ts';
import { DEFAULTS, LIMITS, SIZES } from '../../rules/rules.ts';
import type {
  Batch,
  CreateOptions,
  CreateReceipt,
  FinishReceipt,
  Hint,
  ListFilter,
  ListPage,
  ReadOptions,
  ReleaseReceipt,
  Repeatable,
  SendReceipt,
  StoreCancelReceipt,
  TaskStore,
  WatchFilter,
} from '../../store.ts';
import {
  type ConversationRecord,
  type ConversationRef,
  type JournalEntry,
  type KeyRef,
  type NewTask,
  sendable,
  type TaskCommand,
  type TaskOutcome,
  type TaskRecord,
  type TaskRef,
} from '../../task.ts';
import { withNonce } from '../../unknown-outcome.ts';
import type { StoreDriver, StoreRules } from '../driver.ts';
import {
  boundOutcome,
  checkRequest,
  checkTask,
  jsonOf,
  keepActivity,
  parsed,
  positionOf,
} from './checked-arguments.ts';
import { CheckedOverview } from './checked-overview.ts';
import { checkClaim, checkCount, checkDuration, checkLimit, checkName, checkRef, checkSize } from './checks.ts';

/**
 * Wraps a driver in the store that callers use: it checks arguments, fills in defaults, and bounds what is passed in.
 *
 * @returns The store.
 */
export function createCheckedStore(
  driver: StoreDriver,
  { rules, world = systemWorld }: { readonly rules: StoreRules; readonly world?: World | undefined },
): TaskStore {
  return new CheckedStore(driver, rules, world);
}

class CheckedStore extends CheckedOverview implements TaskStore {
  readonly name: string;
  readonly domains: number;
  readonly maxJournalBytes: number;
  readonly #driver: StoreDriver;
  readonly #world: World;
  #closed = false;

  constructor(driver: StoreDriver, { maxJournalBytes }: StoreRules, world: World) {
    super();
    this.name = driver.name;
    this.domains = driver.domains;
    this.maxJournalBytes = maxJournalBytes;
    this.#driver = driver;
    this.#world = world;
  }

  async create(
    task: NewTask,
    { policy = 'replace', nonce = this.#world.createId() }: CreateOptions = {},
  ): Promise<CreateReceipt> {
    const driver = this.open();
    checkTask(task);
    checkName('nonce', nonce);
    const { holdMs = 0, priority = 0 } = task;
    const input = checkSize('input', jsonOf(task.input), SIZES.inputBytes);
    const hasGrown = (driver.generations?.length ?? 1) > 1;
    const shards = hasGrown ? await driver.shardsFor!(task, nonce) : this.domains;
    const id = createTaskId(task, { nonce, shards });
    const title = toTitle(task.input);
    const { context: given } = task;
    const context = toContextKey(given === undefined ? given : (contextRule(given, 'context') as AppContext));
    const times = { holdMs: Math.ceil(holdMs), priority, policy, nonce };
    const request = { ...task, id, input, context, title, ...times };
    const receipt = await withNonce(nonce, driver.create(request));
    if (receipt.answer !== 'duplicate') return receipt;
    // What was gathered with it comes before its own. One whose messages were taken over has none.
    const own = receipt.task.inputs.at(-1);
    return { ...receipt, isSameInput: own === undefined || isDeepStrictEqual(own, JSON.parse(input)) };
  }

  async take(request: TakeRequest): Promise<TakeAnswer> {
    const driver = this.open();
    this.#checkSession(request);
    checkRequest(request);
    checkCount('number', request.number);
    checkLimit('limit', request.limit);
    for (const agent of request.agents) checkName('agents', agent);
    return driver.take({ ...request, maxBytes: request.maxBytes ?? DEFAULTS.maxBytes });
  }

  async claim(id: string, request: ClaimRequest): Promise<ClaimAnswer> {
    const driver = this.open();
    checkName('id', id);
    checkRequest(request);
    return driver.claim(id, { ...request, maxBytes: request.maxBytes ?? DEFAULTS.maxBytes });
  }

  async load(claim: ClaimRef): Promise<TaskLoad> {
    return this.open().load(checkClaim(claim));
  }

  async beat(beat: Beat): Promise<BeatAnswer> {
    this.#checkSession(beat);
    return this.open().beat({ ...beat, confirmed: beat.confirmed ?? [] });
  }

  async held(session: SessionRef): Promise<readonly HeldTask[]> {
    this.#checkSession(session);
    return this.open().held(session);
  }

  async sweep({ domain = 0, limit = LIMITS.maxMoved }: { domain?: number; limit?: number } = {}): Promise<SweepAnswer> {
    this.#checkDomain(domain);
    return this.open().sweep({ domain, limit: Math.min(checkLimit('limit', limit), LIMITS.maxMoved) });
  }

  async append(claim: ClaimRef, batch: Batch): Promise<Orders> {
    const { after, events, done = [], progress = false } = batch;
    // Deduplicate: Redis would subtract the size of an entry twice.
    const replaces = [...new Set(batch.replaces)];
    const activity = batch.activity && keepActivity(batch.activity, claim);
    const texts = events.map(jsonOf);
    return this.open().append(checkClaim(claim), { after, events: texts, replaces, done, progress, activity });
  }

  async release(claim: ClaimRef): Promise<ReleaseReceipt> {
    return this.open().release(checkClaim(claim));
  }

  async finish(claim: ClaimRef, { history, said = [], ...outcome }: TaskOutcome): Promise<FinishReceipt> {
    const messages = [...(history ?? []), ...said].map(jsonOf);
    const end = { outcome: boundOutcome(outcome), said: messages, anew: history !== undefined };
    return this.open().finish(checkClaim(claim), end);
  }

  async cancel(
    target: TaskRef | ConversationRef,
    reason: CancelReasonInit = {},
    options: CancelOptions = {},
  ): Promise<StoreCancelReceipt> {
    checkRef(target);
    const { mode, undo } = readCancelOptions(options, 'graceful');
    const { level, abortAt, killAt } = createStopSchedule(mode, 0);
    const { at, ...undated } = parsed(createReason(reason, 0));
    const dated = reason.at === undefined ? undated : { ...undated, at };
    const stop = { level, abortMs: Math.ceil(abortAt), killMs: Math.ceil(killAt), undo, reason: dated };
    return this.open().cancel(target, stop);
  }

  async send(
    task: TaskRef,
    command: TaskCommand,
    { nonce = this.#world.createId() }: Repeatable = {},
  ): Promise<SendReceipt> {
    checkRef(task);
    checkName('nonce', nonce);
    const kept = sendable(command);
    checkSize('command', jsonOf(kept), SIZES.inputBytes);
    return withNonce(nonce, this.open().send(task, parsed(kept), nonce));
  }

  async get(task: TaskRef): Promise<TaskRecord | undefined> {
    checkRef(task);
    return this.open().get(task);
  }

  async find(ref: KeyRef): Promise<TaskRecord | undefined> {
    for (const shards of this.#driver.generations ?? [this.domains]) {
      const task = await this.get(refOfKey(ref, shards));
      if (task !== undefined) return task;
    }
    return undefined;
  }

  async list({ cursor, ...filter }: ListFilter): Promise<ListPage> {
    checkName('tenant', filter.tenant);
    const limit = checkLimit('limit', filter.limit ?? DEFAULTS.listLimit);
    return this.open().list({ ...filter, limit, ...(cursor !== undefined && { after: positionOf(cursor) }) });
  }

  async read(
    task: TaskRef,
    { after = 0, limit = DEFAULTS.readLimit, watchMs }: ReadOptions = {},
  ): Promise<readonly JournalEntry[]> {
    checkRef(task);
    checkLimit('limit', limit);
    if (watchMs !== undefined) checkDuration('watchMs', watchMs);
    return this.open().read(task, { after: Math.max(0, after), limit, ...(watchMs !== undefined && { watchMs }) });
  }

  async conversation(ref: ConversationRef): Promise<ConversationRecord | undefined> {
    checkRef(ref);
    return this.open().conversation(ref);
  }

  async watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable> {
    return this.open().watch(filter, listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#driver[Symbol.asyncDispose]();
  }

  protected open(): StoreDriver {
    if (this.#closed) throw new StoreClosedError();
    return this.#driver;
  }

  #checkSession({ domain, session }: SessionRef): void {
    this.#checkDomain(domain);
    checkName('session', session);
  }

  #checkDomain(domain: number): void {
    if (Number.isInteger(domain) && domain >= 0 && domain < this.domains) return;
    throw new RangeError(`domain: expected a whole number from 0 to ${this.domains - 1}, got ${domain}`);
  }
}
