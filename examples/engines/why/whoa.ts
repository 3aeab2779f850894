// Whoa alone: the store delivers the task, carries the cancel and keeps the journal.
import { createRunner, createTaskStore, followTask } from '@whoa/tasks';
import { createBooker, SILENCE_TIMEOUT_MS, tenant } from './agent.ts';
import type { Side, StartWorker } from './side.ts';

export const startWhoaWorker: StartWorker = async (url, folder) => {
  const store = createTaskStore(url);
  const runner = createRunner({ store, agents: { booker: createBooker(folder) }, leaseMs: SILENCE_TIMEOUT_MS });
  await runner.serve({ concurrency: 10 });
};

export function openWhoa(url: string): Side {
  const store = createTaskStore(url);
  return {
    name: 'Whoa',
    async start(request, conversation) {
      const task = { tenant, agent: 'booker', input: request, ...(conversation !== undefined && { conversation }) };
      const receipt = await store.create(task, { policy: 'replace' });
      if (receipt.result !== 'created') throw new Error(receipt.result);
      return receipt.task.id;
    },
    async cancel(id) {
      return (await store.cancel({ tenant, id }, { kind: 'user' }, { mode: 'now' })).result;
    },
    async ended(id) {
      for await (const seen of followTask(store, { tenant, id })) {
        if (seen.type === 'end') return { status: seen.task.status, answer: seen.task.outcome?.answer as string };
      }
      throw new Error('unknown task');
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
