import type { CancellationToken } from '@whoa/core';
import { expect, test } from 'vitest';
import { createTaskStore } from '../ledger/factory.ts';
import { createRunner } from './store-runner.ts';
import type { SelfManagedContext } from './work.ts';

const wanted = { tenant: 'acme', agent: 'held', input: 'go', conversation: 'c' };

test('self-managed work is never abandoned, and its messages are the history', async () => {
  await using store = createTaskStore('memory:');
  const started = Promise.withResolvers<CancellationToken>();
  const release = Promise.withResolvers<void>();
  await using runner = createRunner({
    store,
    agents: {
      held: {
        async runTask({ token }) {
          started.resolve(token);
          await release.promise;
          return { status: 'cancelled', answer: 'half', newMessages: ['go', 'half'], isComplete: false };
        },
      },
    },
  });
  const { id, response } = await runner.start(wanted);
  const token = await started.promise;
  await store.cancel({ tenant: 'acme', id }, { message: 'enough' }, { mode: 'kill' });
  await new Promise<void>((resolve) => token.onCancel((level) => level === 'kill' && resolve()));
  expect((await store.get({ tenant: 'acme', id }))?.status).toBe('cancelling');
  release.resolve();
  expect(await response).toMatchObject({ status: 'cancelled', answer: 'half', msg: 'enough' });
  expect((await store.conversation({ tenant: 'acme', conversation: 'c' }))?.history).toEqual(['go', 'half']);
});

test('a task whose worker was lost is settled by the work itself if it was being cancelled, else it continues', async () => {
  await using store = createTaskStore('memory');
  const lost = { session: 'gone', claim: 'gone-1', worker: 'gone', leaseMs: 1 };
  const leave = async (events: { type: string }[]) => {
    const receipt = await store.create({ ...wanted, conversation: undefined });
    const { id } = (receipt as { task: { id: string } }).task;
    const claimed = await store.claim(id, lost);
    if (claimed.result === 'claimed') await store.append(claimed.claim, { after: 0, events });
    return { tenant: 'acme', id };
  };
  const cancelled = await leave([{ type: 'said' }]);
  await store.cancel(cancelled, { message: 'enough' });
  const other = await leave([{ type: 'said' }]);
  const seen = ({ previousJournal }: SelfManagedContext) =>
    previousJournal.map(({ event }) => (event as { type: string }).type).join();
  await using runner = createRunner({
    store,
    agents: {
      held: {
        runTask: (context) => Promise.resolve({ status: 'success', answer: `went on after ${seen(context)}` }),
        settle: (context) => Promise.resolve({ status: 'cancelled', answer: `settled after ${seen(context)}` }),
      },
    },
  });
  expect(await runner.runExisting(cancelled)).toMatchObject({ status: 'cancelled', answer: 'settled after said' });
  expect(await runner.runExisting(other)).toMatchObject({ status: 'success', answer: 'went on after said' });
});
