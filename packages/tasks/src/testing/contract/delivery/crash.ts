import { LIMITS } from '../../../ledger/rules/rules.ts';
import { type CaseContext, claim, create, expire, SHORT_MS } from '../../case.ts';

/** Crashes the session that holds everything taken so far, and waits until its tasks can be taken again. */
export async function crash(context: Pick<CaseContext, 'store' | 'advance'>): Promise<void> {
  await expire(context, SHORT_MS);
  await context.advance(LIMITS.maxCrashBackoffMs);
}

/** Claims a task in a new session and crashes it, a number of times. */
export async function crashWith(
  context: Pick<CaseContext, 'store' | 'advance'>,
  id: string,
  times: number,
): Promise<void> {
  for (let i = 0; i < times; i++) {
    await claim(context.store, id, { leaseMs: SHORT_MS });
    await crash(context);
  }
}

/** Creates tasks that are suspects: their first two sessions crashed. */
export async function createSuspects(context: CaseContext, count: number, rest: object = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push((await create(context.store, rest)).id);
  for (let i = 0; i < LIMITS.suspectAttempts; i++) {
    for (const id of ids) await claim(context.store, id, { leaseMs: SHORT_MS });
    await crash(context);
  }
  return ids;
}
