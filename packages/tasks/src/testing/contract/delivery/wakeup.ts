import assert from 'node:assert/strict';
import type { Hint, TaskStore } from '../../../store.ts';
import { bring, type CaseContext, type ContractCase, create, expire, LEASE_MS, usingResource } from '../../case.ts';
import { taken } from '../../talk.ts';

const isReadyHint = ({ type }: Hint): boolean => type === 'ready';

/** What a worker that waits hears, and when. */
async function collectWakeups(store: TaskStore, worker: string, when: () => Promise<unknown>): Promise<Hint[]> {
  const hints: Hint[] = [];
  let notify = (): void => {};
  const rung = new Promise<void>((resolve) => (notify = resolve));
  const watching = await store.watch({ worker }, (hint) => {
    if (!isReadyHint(hint) && hint.type !== 'resync') return;
    hints.push(hint);
    notify();
  });
  try {
    await when();
    await rung;
  } finally {
    await watching[Symbol.asyncDispose]();
  }
  return hints;
}

/** Waking workers: one at a time, and none missed. */
export const wakeupCases: readonly ContractCase[] = [
  ...(
    [
      ['created', ({ store }) => create(store)],
      [
        'released',
        async ({ store }) => {
          const { by } = await bring(store, 'running');
          await taken(store, { worker: 'idle' });
          await store.release(by);
        },
      ],
      [
        'reclaimed',
        async ({ store, advance }) => {
          await bring(store, 'running');
          await taken(store, { worker: 'idle' });
          await expire({ store, advance }, LEASE_MS);
        },
      ],
    ] as readonly [string, (context: CaseContext) => Promise<unknown>][]
  ).map(
    ([name, change]): ContractCase => ({
      title: `a worker that waits is rung when a task is ${name}`,
      async run(context) {
        const { store } = context;
        await taken(store, { worker: 'idle' });
        const [hint] = await collectWakeups(store, 'idle', () => change(context));
        if (hint?.type === 'ready') assert.deepEqual([hint.worker, hint.agent], ['idle', 'assistant']);
      },
    }),
  ),
  {
    title: 'a new task notifies one waiting worker',
    async run({ store }) {
      // A notification may arrive twice.
      const received = new Set<string>();
      const workers = ['a', 'b', 'c'];
      let notify = (): void => {};
      const rung = new Promise<void>((resolve) => (notify = resolve));
      const watches = [];
      for (const worker of workers) {
        await taken(store, { worker });
        watches.push(
          await store.watch({ worker }, (hint) => {
            if (hint.type === 'ready') received.add(worker);
            if (received.size > 0 || hint.type === 'resync') notify();
          }),
        );
      }
      await create(store);
      await rung;
      // Every other notification came before this one.
      await collectWakeups(store, 'last', async () => {
        await taken(store, { worker: 'last', agents: ['other'] });
        await create(store, { agent: 'other' });
      });
      for (const watching of watches) await watching[Symbol.asyncDispose]();
      assert.ok(received.size <= 1, `${received.size} were notified`);
    },
  },
  {
    title: 'a notification reaches a worker of another client',
    needs: 'second client',
    async run({ store, openSecond }) {
      await taken(store, { worker: 'idle' });
      await usingResource(await openSecond(), async (second) => {
        await collectWakeups(store, 'idle', () => create(second));
      });
    },
  },
];
