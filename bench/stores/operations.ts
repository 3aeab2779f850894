import type { TaskRecord, TaskStore } from '@whoa/tasks';
import type { ClaimRef } from '@whoa/tasks/store';

/** The claim of the one session that every task here has. */
const createClaim = (id: string): ClaimRef => ({ id, epoch: 1, session: `session of ${id}`, claim: `claim of ${id}` });

/** The operations in a task's life, in order; each is measured separately. */
export const OPERATIONS: Record<string, (store: TaskStore, id: string) => Promise<unknown>> = {
  claim: claimOne,
  get: (store, id) => store.get({ tenant: 'bench', id }),
  heartbeat: (store, id) => store.heartbeat({ session: createClaim(id).session, count: 1 }),
  append: (store, id) =>
    store.append(createClaim(id), {
      after: 0,
      events: [{ type: 'text', text: 'a hundred and some bytes' }],
      activity: { turns: 1, calls: 0, usage: { inputTokens: 1_234, outputTokens: 56, isComplete: true } },
    }),
  send: (store, id) => store.send({ tenant: 'bench', id }, { type: 'cancel-call', callId: 'c' }),
  cancel: (store, id) => store.cancel({ tenant: 'bench', id }),
  finish: (store, id) => store.finish(createClaim(id), { status: 'success', answer: 'done' }),
};

export function claimOne(store: TaskStore, id: string): Promise<unknown> {
  const { session, claim } = createClaim(id);
  return store.claim(id, { worker: 'w', leaseMs: 36_000_000, session, claim });
}

export async function createOne(store: TaskStore, tenant = 'bench'): Promise<string> {
  const receipt = await store.create({
    tenant,
    agent: 'bench',
    input: 'a question of some forty characters',
    preferredWorker: 'w',
  });
  return (receipt as { task: TaskRecord }).task.id;
}

/** Runs an operation `count` times, `concurrency` of them at the same time. */
export async function repeat(
  count: number,
  concurrency: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const one = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: concurrency }, one));
}
