import type {
  ClaimRequest,
  ClaimResult,
  Offer,
  OfferResult,
  TakenTask,
  TakeResult,
} from '../../delivery/worker-store.ts';
import type { OfferedTask } from '../../store.ts';
import type { DriverTake } from '../driver.ts';
import { LIMITS, OFFERED, OFFERED_SUSPECTS, SETTLE, SUSPECTS, UNDO } from '../rules/rules.ts';
import { isFinalStatus } from '../rules/status.ts';
import { isExempt, isSuspect, toAgent, toReadyQueueName } from '../rules/suspects.ts';
import { applyTransition } from '../rules/transitions.ts';
import { recordContact } from './contact.ts';
import { admitDebounced } from './create.ts';
import { ordersFor, toLoad } from './orders.ts';
import { failLost, holdsAsSuspect } from './session.ts';
import { makeReady, offerAgain, toOfferedTask } from './stage.ts';
import { newStoreState, type OperationContext, type ReadyQueue, type Session, type StoredTask } from './tables.ts';
import { toHint, toSummary } from './views.ts';

/** Takes ready tasks for a session, fairly across tenants. */
export function applyTake(request: DriverTake, context: OperationContext): TakeResult {
  const { tables, now } = context;
  const { session: id, takeNumber: number, worker, agents, limit, offers } = request;
  const session = tables.session(id);
  if (session?.isOver || (session === undefined && number > 1)) return { result: 'session-ended' };
  const takeNumber = session?.takeNumber ?? 0;
  if (number < takeNumber) return { result: 'stale' };
  if (number > takeNumber + 1) return { result: 'session-ended' };
  const expired = recordContact(request.leaseMs, context, { maySweep: true });
  if (number === takeNumber) {
    const tasks = takenBefore(session!, request, context);
    const later = offers && { offers: offers.map(() => 'later' as const) };
    return { result: 'taken', tasks, isRepeat: true, shouldSweep: expired, ...later, now };
  }
  promoteDue(context);
  const { taken: claimed, results } = takeReady(request, context);
  if (claimed.length > 0) recordHeld(request, claimed, { ...context, number });
  if (claimed.length < limit) tables.park(worker, agents, now);
  else tables.unpark(worker);
  const nextReadyAt = tables.nextDelayedAt();
  const tasks = withLoads(claimed, request.maxBytes, context);
  const next = nextReadyAt !== undefined && { nextReadyAt };
  const offered = offers && { offers: results, lostOffers: findLostOffers(context) };
  return { result: 'taken', tasks, isRepeat: false, shouldSweep: expired, ...offered, now, ...next };
}

function takenBefore(session: Session, { maxBytes }: DriverTake, context: OperationContext): readonly TakenTask[] {
  const tasks = session.lastTaken.flatMap((id) => context.tables.task(id) ?? []);
  // Exclude tasks that the session has since claimed by id: they already run.
  const held = tasks.filter((task) => task.stage === 'held' && task.claim === session.lastTakeClaim);
  return withLoads(held, maxBytes, context);
}

/** Moves tasks whose time has come. */
function promoteDue(context: OperationContext): void {
  for (const { id } of context.tables.due(context.now, LIMITS.maxPromoted)) {
    const task = context.tables.task(id);
    // Read it again: a message that was due before it may have ended it.
    if (task?.stage !== 'delayed') continue;
    if (task.policy === undefined) makeReady(task, context);
    else admitDebounced(task, context);
  }
}

/** Tells one worker at a time which tasks must be offered again. */
function findLostOffers({ tables, now }: OperationContext): readonly OfferedTask[] {
  const state = tables.storeState() ?? newStoreState(now);
  const { offersToldAt = -Infinity } = state;
  if (now - offersToldAt < LIMITS.offerIntervalMs && offersToldAt <= now) return [];
  tables.saveStoreState({ ...state, offersToldAt: now });
  const until = { readyAt: now - LIMITS.lostOfferMs, offeredAt: now - LIMITS.repeatedOfferMs };
  return tables.lostOffers(until, LIMITS.maxOffers).map(toOfferedTask);
}

export function applyOffered(ids: readonly string[], { tables, now }: OperationContext): void {
  for (const id of ids) {
    const task = tables.task(id);
    if (task?.stage === 'ready' && task.isOffered === true) tables.saveTask({ ...task, offeredAt: now });
  }
}

function takeReady(
  request: DriverTake,
  context: OperationContext,
): { readonly taken: StoredTask[]; readonly results: readonly OfferResult[] } {
  const { tables, rules } = context;
  const taken: StoredTask[] = [];
  let results: readonly OfferResult[] | undefined;
  const hasReserved = tables.hasReservedQueues();
  let mayTakeSuspect = hasReserved && currentSuspect(tables.session(request.session), tables) === undefined;
  const { maxRunningPerAgent = Infinity, maxRunningPerTenant = Infinity } = rules;
  const isOpen = (agent: string): boolean =>
    !isDeliveryPaused({ agent }, tables) &&
    (maxRunningPerAgent === Infinity || tables.countHeld({ agent }, maxRunningPerAgent) < maxRunningPerAgent);
  const isFull = ({ tenant }: ReadyQueue): boolean =>
    tables.isPaused({ tenant }) || tables.countHeld({ tenant }, maxRunningPerTenant) >= maxRunningPerTenant;
  const takeOffer = ({ agent, tenant, id }: Offer): OfferResult => {
    if (taken.length >= request.limit) return 'later';
    if (!isOpen(agent) || isFull({ agent, tenant })) return 'refused';
    const names = [OFFERED_SUSPECTS + agent, OFFERED + agent];
    const find = (name: string | undefined): StoredTask | undefined =>
      name === undefined ? undefined : tables.firstReady({ agent: name, tenant });
    const [suspect, other] = names.map(find);
    const named = id === undefined ? undefined : tables.task(id);
    const isThere = named?.stage === 'ready' && named.isOffered === true && named.tenant === tenant;
    const task = id === undefined ? (mayTakeSuspect && suspect) || other : isThere ? named : undefined;
    if (task === undefined || (isSuspect(task) && !mayTakeSuspect)) {
      // It waits until a session without a suspect takes it.
      const waiting = task ?? (id === undefined ? suspect : undefined);
      if (waiting !== undefined) offerAgain(waiting, tables, { isSoon: false });
      return 'refused';
    }
    const held = holdOrFail(task, request, context);
    for (const name of names) if (find(name) === undefined) tables.closeReadyQueue({ agent: name, tenant });
    if (held === undefined) return 'taken';
    taken.push(held);
    mayTakeSuspect &&= !isSuspect(task);
    return 'taken';
  };
  const hasMore = ({ agent, tenant, id }: Offer): boolean =>
    id === undefined &&
    [OFFERED_SUSPECTS, OFFERED].some((start) => tables.firstReady({ agent: start + agent, tenant }) !== undefined);
  // What is being stopped comes first, no matter how many tenants wait.
  let exempt: readonly string[] = [SETTLE, ...(hasReserved ? request.agents.map((agent) => UNDO + agent) : [])];
  let agents = request.agents.filter(isOpen);
  while (taken.length < request.limit) {
    const suspects = mayTakeSuspect ? agents.map((agent) => SUSPECTS + agent) : [];
    const stopping = exempt.length > 0 ? tables.firstReadyQueue(exempt) : undefined;
    if (stopping === undefined) exempt = [];
    if (stopping === undefined && results === undefined) {
      const found = (request.offers ?? []).map((offer) => ({ offer, result: takeOffer(offer) }));
      results = found.map(({ offer, result }) => (result === 'taken' && hasMore(offer) ? 'more' : result));
      agents = agents.filter(isOpen);
      continue;
    }
    const readyQueue = stopping ?? tables.firstReadyQueue([...agents, ...suspects]);
    if (readyQueue === undefined) break;
    const isLimited = stopping === undefined;
    const task = isLimited && isFull(readyQueue) ? undefined : tables.firstReady(readyQueue);
    if (task === undefined) {
      tables.closeReadyQueue(readyQueue);
      continue;
    }
    const held = holdOrFail(task, request, context);
    updateReadyQueue(readyQueue, tables);
    if (held === undefined) continue;
    taken.push(held);
    if (isSuspect(task)) mayTakeSuspect = false;
    const agent = toAgent(readyQueue.agent);
    if (isLimited && !isOpen(agent)) agents = agents.filter((one) => one !== agent);
  }
  return { taken, results: results ?? (request.offers ?? []).map(() => 'later' as const) };
}

/** Returns the suspect that a session holds. */
function currentSuspect(session: Session | undefined, tables: OperationContext['tables']): string | undefined {
  if (session?.suspect === undefined) return undefined;
  return holdsAsSuspect(session, tables.task(session.suspect)) ? session.suspect : undefined;
}

function updateReadyQueue(readyQueue: ReadyQueue, tables: OperationContext['tables']): void {
  if (tables.firstReady(readyQueue) === undefined) tables.closeReadyQueue(readyQueue);
  else tables.rotateReadyQueue(readyQueue);
}

type Holder = Pick<ClaimRequest, 'session' | 'claim' | 'worker'>;

/** Gives a task to a session. A suspect that has crashed too many sessions fails instead. */
function holdOrFail(task: StoredTask, holder: Holder, context: OperationContext): StoredTask | undefined {
  if (!isSuspect(task) || (task.charges ?? 0) < context.rules.maxAttempts) return hold(task, holder, context);
  failLost(task, context);
  return undefined;
}

/** Gives a task to a session. Its earlier orders are included, and sent until they are confirmed. */
function hold(task: StoredTask, { session, claim, worker }: Holder, { tables, now }: OperationContext): StoredTask {
  const held = applyTransition(task, 'hold', { now, session, claim, worker });
  tables.saveTask(held);
  tables.notify(toHint('status', held));
  return held;
}

/**
 * Records that a session holds tasks. Taking more does not renew it: only beats show that its worker knows its tasks.
 */
function recordHeld(
  { session: id, worker, leaseMs, claim }: ClaimRequest,
  held: readonly StoredTask[],
  { tables, now, number }: OperationContext & { readonly number?: number },
): void {
  const before = tables.session(id);
  const heldBefore = tables.countHeldBy(id) - held.length;
  const expiresAt = heldBefore > 0 ? before!.expiresAt! : now + leaseMs;
  const fresh = { id, worker, leaseMs, isOver: false, takeNumber: 0, lastTaken: [] };
  const taken = number !== undefined && {
    takeNumber: number,
    lastTaken: held.map((task) => task.id),
    lastTakeClaim: claim,
  };
  const suspect = held.find(({ status, attempts }) => isSuspect({ status, attempts: attempts - 1 }));
  tables.saveSession({
    ...(before ?? fresh),
    ...taken,
    ...(suspect !== undefined && { suspect: suspect.id }),
    expiresAt,
    lastHeldAt: now,
  });
}

/** Claims one task by its id. */
export function applyClaim(id: string, request: Required<ClaimRequest>, context: OperationContext): ClaimResult {
  const { tables, now } = context;
  const session = tables.session(request.session);
  if (session?.isOver) return { result: 'session-ended' };
  // A claim says nothing about other sessions, so it must not use up the request to sweep them.
  recordContact(request.leaseMs, context, { maySweep: false });
  const found = tables.task(id);
  if (found === undefined) return { result: 'not-found' };
  if (isFinalStatus(found.status)) return { result: 'too-late', status: found.status };
  if (found.stage === 'held') {
    const isRepeated = found.session === request.session && found.claim === request.claim;
    if (isRepeated) return { result: 'claimed', ...withLoads([found], request.maxBytes, context)[0]! };
    return { result: 'held', until: tables.session(found.session!)?.expiresAt ?? now };
  }
  if (found.stage === 'delayed' && found.policy !== undefined && found.stageAt! <= now) {
    admitDebounced(found, context);
    return applyClaim(id, request, context);
  }
  if (found.stage === 'queued' || found.stage === 'parked' || isPaused(found, tables)) return { result: 'waiting' };
  const until = waitsUntil(found);
  if (until !== undefined && until > now) return { result: 'waiting', until };
  if (isSuspect(found) && currentSuspect(session, tables) !== undefined) {
    return { result: 'waiting', until: now + LIMITS.suspectWaitMs };
  }
  const held = holdOrFail(found, request, context);
  if (held === undefined) return { result: 'too-late', status: 'failed' };
  recordHeld(request, [held], context);
  return { result: 'claimed', ...withLoads([held], request.maxBytes, context)[0]! };
}

/** Claims several tasks by their ids. The limit of inputs and histories is for all together. */
export function applyClaimMany(
  ids: readonly string[],
  request: Required<ClaimRequest>,
  context: OperationContext,
): readonly ClaimResult[] {
  let { maxBytes } = request;
  // Those that may change other tasks come last: a suspect may fail, and a message that is due may replace others.
  const isLast = (id: string): boolean => {
    const task = context.tables.task(id);
    return task !== undefined && (task.policy !== undefined || isSuspect(task));
  };
  const answers = new Map<string, ClaimResult>();
  for (const id of new Set([...ids.filter((one) => !isLast(one)), ...ids])) {
    const answer = applyClaim(id, { ...request, maxBytes }, context);
    if ('load' in answer) maxBytes -= Buffer.byteLength(JSON.stringify(answer.load));
    answers.set(id, answer);
  }
  return ids.map((id) => answers.get(id)!);
}

/** A pause never delays a cancel. */
function isPaused(task: StoredTask, tables: OperationContext['tables']): boolean {
  const { agent, tenant } = task;
  if (isExempt(toReadyQueueName(task))) return false;
  return isDeliveryPaused({ agent }, tables) || tables.isPaused({ tenant });
}

function isDeliveryPaused(agent: { readonly agent: string }, tables: OperationContext['tables']): boolean {
  return tables.isPaused({ all: true }) || tables.isPaused(agent);
}

/** A task in `delayed` that only waits for its preferred worker can be claimed; the others have to wait. */
function waitsUntil({ stage, stageAt, policy, notBefore, worker, crashes }: StoredTask): number | undefined {
  if (stage !== 'delayed') return undefined;
  if (policy !== undefined || worker === undefined || crashes > 0) return stageAt;
  return notBefore;
}

function withLoads(tasks: readonly StoredTask[], maxBytes: number, context: OperationContext): TakenTask[] {
  let left = maxBytes;
  return tasks.map((task) => {
    const { id, epoch, session, claim } = task;
    const load = toLoad(task, context.tables);
    const bytes = Buffer.byteLength(JSON.stringify(load));
    const fits = bytes <= left;
    if (fits) left -= bytes;
    return {
      claim: { id, epoch, session: session!, claim: claim! },
      task: toSummary(task),
      orders: ordersFor(task, context),
      ...(fits && { load }),
    };
  });
}
