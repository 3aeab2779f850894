import type { TaskRecord, TaskStore } from '@whoa/tasks';

/** What a task goes through, one operation after the other; each is measured by itself. */
export const OPERATIONS: Record<string, (store: TaskStore, id: string) => Promise<unknown>> = {
  claim: (store, id) => store.claim(id, 'w', 600_000),
  get: (store, id) => store.get({ tenant: 'bench', id }),
  renew: (store, id) => store.renew(id, 1, 600_000),
  append: (store, id) =>
    store.append(id, 1, { after: 0, events: [{ type: 'text', text: 'a hundred and some bytes' }] }),
  send: (store, id) => store.send({ tenant: 'bench', id }, { type: 'cancel-call', callId: 'c' }),
  cancel: (store, id) => store.cancel({ tenant: 'bench', id }),
  finish: (store, id) => store.finish(id, 1, { status: 'success', answer: 'done' }),
};

export async function createOne(store: TaskStore, tenant = 'bench'): Promise<string> {
  const receipt = await store.create({
    tenant,
    agent: 'bench',
    input: 'a question of some forty characters',
    worker: 'w',
  });
  return (receipt as { task: TaskRecord }).task.id;
}

/** Does something so often, so many at once. */
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
