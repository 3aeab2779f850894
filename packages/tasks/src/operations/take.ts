import type { ClaimRequest, ClaimResult, TakenTask, TakeRequest, TakeResult } from '../delivery.ts';
import { LIMITS, SETTLE, SUSPECTS, UNDO } from '../rules/rules.ts';
import { isExempt, isSuspect, toAgent, toLaneName } from '../rules/suspects.ts';
import { applyTransition } from '../rules/transitions.ts';
import { isFinalStatus } from '../status.ts';
import { visit } from './contact.ts';
import { admitDebounced } from './create.ts';
import { loadOf, ordersFor } from './orders.ts';
import { failLost, holdsAsSuspect } from './session.ts';
import { makeReady } from './stage.ts';
import { headOf, hintOf, type OperationContext, type ReadyQueue, type Session, type StoredTask } from './tables.ts';

/** Takes ready tasks for a session, fairly across tenants. */
export function applyTake(request: Required<TakeRequest>, moment: OperationContext): TakeResult {
  const { tables, now } = moment;
  const { session: id, takeNumber: number, worker, agents, limit } = request;
  const session = tables.session(id);
  if (session?.isOver || (session === undefined && number > 1)) return { result: 'session-ended' };
  const takeNumber = session?.takeNumber ?? 0;
  if (number < takeNumber) return { result: 'stale' };
  if (number > takeNumber + 1) return { result: 'session-ended' };
  const expired = visit(request.leaseMs, moment, { tells: true });
  if (number === takeNumber) {
    return {
      result: 'taken',
      tasks: takenBefore(session!, request, moment),
      isRepeat: true,
      shouldSweep: expired,
      now,
    };
  }
  promoteDue(moment);
  const claimed = takeReady(request, moment);
  if (claimed.length > 0) {
    recordHeld(request, claimed, { ...moment, number });
  }
  if (claimed.length < limit) tables.park(worker, agents, now);
  else tables.unpark(worker);
  const nextAt = tables.nextLater();
  const tasks = withLoads(claimed, request.maxBytes, moment);
  return {
    result: 'taken',
    tasks,
    isRepeat: false,
    shouldSweep: expired,
    now,
    ...(nextAt !== undefined && { nextReadyAt: nextAt }),
  };
}

function takenBefore(
  session: Session,
  { maxBytes }: Required<TakeRequest>,
  moment: OperationContext,
): readonly TakenTask[] {
  const tasks = session.took.flatMap((id) => moment.tables.task(id) ?? []);
  // Exclude tasks that the session has since claimed by id: they already run.
  const held = tasks.filter((task) => task.stage === 'held' && task.claim === session.lastTakeClaim);
  return withLoads(held, maxBytes, moment);
}

/** Moves tasks whose time has come. */
function promoteDue(moment: OperationContext): void {
  for (const { id } of moment.tables.due(moment.now, LIMITS.maxPromoted)) {
    const task = moment.tables.task(id);
    // Read it again: a message that was due before it may have ended it.
    if (task?.stage !== 'delayed') continue;
    if (task.policy === undefined) makeReady(task, moment);
    else admitDebounced(task, moment);
  }
}

function takeReady(request: Required<TakeRequest>, moment: OperationContext): StoredTask[] {
  const { tables, rules } = moment;
  const taken: StoredTask[] = [];
  const hasReserved = tables.hasReservedLanes();
  let mayTakeSuspect = hasReserved && currentSuspect(tables.session(request.session), tables) === undefined;
  const { maxRunningPerAgent = Infinity, maxRunningPerTenant = Infinity } = rules;
  const isOpen = (agent: string): boolean =>
    !tables.isPaused({ agent }) &&
    (maxRunningPerAgent === Infinity || tables.countHeldOf({ agent }, maxRunningPerAgent) < maxRunningPerAgent);
  const isFull = ({ tenant }: ReadyQueue): boolean =>
    tables.isPaused({ tenant }) || tables.countHeldOf({ tenant }, maxRunningPerTenant) >= maxRunningPerTenant;
  // What is being stopped comes first, however many tenants wait.
  let exempt: readonly string[] = [SETTLE, ...(hasReserved ? request.agents.map((agent) => UNDO + agent) : [])];
  let agents = request.agents.filter(isOpen);
  while (taken.length < request.limit) {
    const suspects = mayTakeSuspect ? agents.map((agent) => SUSPECTS + agent) : [];
    const stopping = exempt.length > 0 ? tables.firstReadyQueue(exempt) : undefined;
    if (stopping === undefined) exempt = [];
    const lane = stopping ?? tables.firstReadyQueue([...agents, ...suspects]);
    if (lane === undefined) break;
    const isLimited = stopping === undefined;
    const task = isLimited && isFull(lane) ? undefined : tables.firstReady(lane);
    if (task === undefined) {
      tables.closeReadyQueue(lane);
      continue;
    }
    const held = holdOrFail(task, request, moment);
    keepLane(lane, tables);
    if (held === undefined) continue;
    taken.push(held);
    if (isSuspect(task)) mayTakeSuspect = false;
    const agent = toAgent(lane.agent);
    if (isLimited && !isOpen(agent)) agents = agents.filter((one) => one !== agent);
  }
  return taken;
}

/** Returns the suspect that a session holds. */
function currentSuspect(session: Session | undefined, tables: OperationContext['tables']): string | undefined {
  if (session?.suspect === undefined) return undefined;
  return holdsAsSuspect(session, tables.task(session.suspect)) ? session.suspect : undefined;
}

function keepLane(lane: ReadyQueue, tables: OperationContext['tables']): void {
  if (tables.firstReady(lane) === undefined) tables.closeReadyQueue(lane);
  else tables.rotateReadyQueue(lane);
}

type Holder = Pick<ClaimRequest, 'session' | 'claim' | 'worker'>;

/** Gives a task to a session. A suspect that has crashed too many sessions fails instead. */
function holdOrFail(task: StoredTask, holder: Holder, moment: OperationContext): StoredTask | undefined {
  if (!isSuspect(task) || (task.charges ?? 0) < moment.rules.maxAttempts) return hold(task, holder, moment);
  failLost(task, moment);
  return undefined;
}

/** Gives a task to a session. Its earlier orders are included, and sent until they are confirmed. */
function hold(task: StoredTask, { session, claim, worker }: Holder, { tables, now }: OperationContext): StoredTask {
  const held = applyTransition(task, 'hold', { now, session, claim, worker });
  tables.saveTask(held);
  tables.tell(hintOf('status', held));
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
  const fresh = { id, worker, leaseMs, isOver: false, takeNumber: 0, took: [] };
  const took = number !== undefined && { takeNumber: number, took: held.map((task) => task.id), lastTakeClaim: claim };
  const suspect = held.find(({ status, attempts }) => isSuspect({ status, attempts: attempts - 1 }));
  tables.saveSession({
    ...(before ?? fresh),
    ...took,
    ...(suspect !== undefined && { suspect: suspect.id }),
    expiresAt,
    lastHeldAt: now,
  });
}

/** Claims one task by its id. */
export function applyClaim(id: string, request: Required<ClaimRequest>, moment: OperationContext): ClaimResult {
  const { tables, now } = moment;
  const session = tables.session(request.session);
  if (session?.isOver) return { result: 'session-ended' };
  // A claim says nothing about other sessions, so it must not use up the request to sweep them.
  visit(request.leaseMs, moment, { tells: false });
  const found = tables.task(id);
  if (found === undefined) return { result: 'not-found' };
  if (isFinalStatus(found.status)) return { result: 'too-late', status: found.status };
  if (found.stage === 'held') {
    const isRepeated = found.session === request.session && found.claim === request.claim;
    if (isRepeated) return { result: 'claimed', ...withLoads([found], request.maxBytes, moment)[0]! };
    return { result: 'held', until: tables.session(found.session!)?.expiresAt ?? now };
  }
  if (found.stage === 'delayed' && found.policy !== undefined && found.stageAt! <= now) {
    admitDebounced(found, moment);
    return applyClaim(id, request, moment);
  }
  if (found.stage === 'queued' || found.stage === 'parked' || isPaused(found, tables)) return { result: 'waiting' };
  const until = waitsUntil(found);
  if (until !== undefined && until > now) return { result: 'waiting', until };
  if (isSuspect(found) && currentSuspect(session, tables) !== undefined) {
    return { result: 'waiting', until: now + LIMITS.suspectWaitMs };
  }
  const held = holdOrFail(found, request, moment);
  if (held === undefined) return { result: 'too-late', status: 'failed' };
  recordHeld(request, [held], moment);
  return { result: 'claimed', ...withLoads([held], request.maxBytes, moment)[0]! };
}

/** A pause never delays a cancel. */
function isPaused(task: StoredTask, tables: OperationContext['tables']): boolean {
  const { agent, tenant } = task;
  return !isExempt(toLaneName(task)) && (tables.isPaused({ agent }) || tables.isPaused({ tenant }));
}

/** A task in `later` that only waits for its preferred worker can be claimed; the others have to wait. */
function waitsUntil({ stage, stageAt, policy, notBefore, worker, crashes }: StoredTask): number | undefined {
  if (stage !== 'delayed') return undefined;
  if (policy !== undefined || worker === undefined || crashes > 0) return stageAt;
  return notBefore;
}

function withLoads(tasks: readonly StoredTask[], maxBytes: number, moment: OperationContext): TakenTask[] {
  let left = maxBytes;
  return tasks.map((task) => {
    const { id, epoch, session, claim } = task;
    const load = loadOf(task, moment.tables);
    const bytes = Buffer.byteLength(JSON.stringify(load));
    const fits = bytes <= left;
    if (fits) left -= bytes;
    return {
      claim: { id, epoch, session: session!, claim: claim! },
      task: headOf(task),
      orders: ordersFor(task, moment),
      ...(fits && { load }),
    };
  });
}
