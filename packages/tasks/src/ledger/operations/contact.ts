import { LIMITS } from '../rules/rules.ts';
import { newStoreState, type OperationContext } from './tables.ts';

/**
 * Records a worker's contact. During an outage, a failover or a clock step no worker could beat, so afterwards all
 * sessions get another lease. Returns whether there is something to sweep, and asks one worker at a time: expired
 * sessions, ended tasks past their retention, waiting ones past their deadline, or questions that expired.
 * `maySweep`: the worker learns that a sweep is due, or sweeps itself; others must not use the request up.
 */
export function recordContact(
  leaseMs: number,
  context: OperationContext,
  { maySweep }: { readonly maySweep: boolean },
): boolean {
  const { tables, now, rules } = context;
  const before = tables.storeState() ?? newStoreState(now);
  let state = before;
  if (before.lastContactAt > now) {
    // The clock was set back: shorten leases that would now last too long.
    for (const session of tables.sessionsAfter(now + leaseMs)) {
      tables.saveSession({ ...session, expiresAt: now + session.leaseMs });
    }
    const graceUntil = Math.min(before.graceUntil, now + leaseMs);
    state = { ...before, lastContactAt: now, graceUntil, sweepRequestedAt: Math.min(before.sweepRequestedAt, now) };
  }
  const first = tables.firstSession();
  if (now - state.lastContactAt > leaseMs * LIMITS.outageShare && first !== undefined && !state.isGraceGranted) {
    state = { ...state, graceUntil: now + leaseMs, isGraceGranted: true };
  }
  const isDue = now - state.lastContactAt >= leaseMs * LIMITS.contactShare;
  if (isDue || tables.storeState() === undefined) state = { ...state, lastContactAt: now };
  const hasExpired = first !== undefined && first.expiresAt! <= now && now >= state.graceUntil;
  const hasOld = isDue && (tables.firstEnded() ?? Infinity) + rules.retentionMs <= now;
  const hasOverdue = isDue && (tables.firstOverdue(now) ?? tables.firstExpired(now)) !== undefined;
  const expired =
    maySweep && (hasExpired || hasOld || hasOverdue) && now - state.sweepRequestedAt >= LIMITS.sweepRequestIntervalMs;
  if (expired) state = { ...state, sweepRequestedAt: now };
  if (state !== before || tables.storeState() === undefined) tables.saveStoreState(state);
  return expired;
}
