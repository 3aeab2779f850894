import type { ClaimRef } from '../../packages/tasks/src/delivery/worker-store.ts';
import type { TaskStore } from '../../packages/tasks/src/store.ts';

/** Claims a task for a worker that is not there, or throws. */
export async function claimFor(
  store: TaskStore,
  id: string,
  { worker, leaseMs = 60_000 }: { readonly worker: string; readonly leaseMs?: number },
): Promise<ClaimRef> {
  const answer = await store.claim(id, {
    worker,
    leaseMs,
    session: `session of ${worker}`,
    claim: `claim of ${worker}`,
  });
  if (answer.result !== 'claimed') throw new Error(`${id} could not be claimed: ${answer.result}`);
  return answer.claim;
}

/** Lets sessions without heartbeats expire, and reclaims their tasks. */
export async function expireSessions(
  store: TaskStore,
  world: { readonly clock: { advance(ms: number): Promise<void> } },
  leaseMs: number,
): Promise<void> {
  // The silence before counts as an outage, after which every session gets another lease.
  for (let i = 0; i < 2; i++) {
    await world.clock.advance(leaseMs);
    await store.sweep();
  }
}
