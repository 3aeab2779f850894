import type { TaskRecord, TaskStore } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { startChild } from './child.ts';
import { openStore } from './open-store.ts';
import { storeKinds } from './shared-stores.ts';
import { stopBetweenWrites } from './stop-process.ts';

// Long enough that a busy machine keeps it until the worker is stopped.
const LEASE_MS = 4_000;

test.each(storeKinds)(
  'a worker on $name that slept past its lease wakes to find nothing of it is accepted, and ends its processes',
  async (kind) => {
    await using shared = await kind.open();
    await using store = openStore(shared.location);
    const receipt = await store.create({ tenant: 'acme', agent: 'assistant', input: 'work' });
    const { id } = (receipt as { task: TaskRecord }).task;
    const ref = { tenant: 'acme', id };
    await using sleeper = startChild('stopped-worker', [shared.location, id, `${LEASE_MS}`]);
    const { pid } = await sleeper.hear<{ type: string; pid: number }>(({ type }) => type === 'working');
    await writtenOnce(store, ref);
    await stopBetweenWrites(shared.location, sleeper.process);

    const { task, claim } = await claimWhenFree(store, id);
    // Reclaimed from one session and given to another.
    expect(task).toMatchObject({ epoch: 3, crashes: 1, worker: 'successor' });
    await store.append(claim, { after: task.position, events: [{ type: 'mine' }] });
    const before = await store.get(ref);

    sleeper.process.kill('SIGCONT');
    expect(await sleeper.hear<{ type: string }>(({ type }) => type === 'ended')).toEqual({
      type: 'ended',
      code: 'LEASE_LOST',
    });
    expect(await sleeper.ended).toBe(0);
    // The process has resumed, so it did not crash.
    expect(await store.get(ref)).toEqual({ ...before, crashes: 0 });
    expect((await store.read(ref)).findLast(({ epoch }) => epoch === 1)!.position).toBe(task.position);
    expect(() => process.kill(pid, 0)).toThrow(/ESRCH/);
    expect(await store.finish(claim, { status: 'success' })).toMatchObject({ result: 'finished', status: 'success' });
  },
);

async function writtenOnce(store: TaskStore, ref: { tenant: string; id: string }): Promise<void> {
  let seen = (): void => {};
  const written = new Promise<void>((resolve) => (seen = resolve));
  await using watching = await store.watch({ id: ref.id }, ({ type }) => type === 'journal' && seen());
  await written;
  expect(watching).toBeDefined();
}

/** Retries after the other's session has expired, and reclaims its tasks at the time that the store names. */
async function claimWhenFree(store: TaskStore, id: string) {
  const request = { session: 'of-successor', claim: 'claim-1', worker: 'successor', leaseMs: 60_000 };
  for (;;) {
    const answer = await store.claim(id, request);
    if (answer.result === 'claimed') return answer;
    if (answer.result !== 'held') throw new Error(`expected held, got ${answer.result}`);
    await new Promise((resolve) => setTimeout(resolve, Math.min(LEASE_MS / 4, Math.max(1, answer.until - Date.now()))));
    await store.sweep();
  }
}
