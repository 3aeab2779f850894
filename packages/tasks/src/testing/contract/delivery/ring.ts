import assert from 'node:assert/strict';
import type { Hint, TaskStore } from '../../../store.ts';
import { bring, type CaseContext, type ContractCase, create, expire, LEASE_MS, usingResource } from '../../case.ts';
import { taken } from '../../talk.ts';

const orderOf = ({ type }: Hint): boolean => type === 'work';

/** What a worker that waits hears, and when. */
async function rings(store: TaskStore, worker: string, when: () => Promise<unknown>): Promise<Hint[]> {
  const heard: Hint[] = [];
  let tell = (): void => {};
  const rung = new Promise<void>((resolve) => (tell = resolve));
  const watching = await store.watch({ worker }, (hint) => {
    if (!orderOf(hint) && hint.type !== 'resync') return;
    heard.push(hint);
    tell();
  });
  try {
    await when();
    await rung;
  } finally {
    await watching[Symbol.asyncDispose]();
  }
  return heard;
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
        const [hint] = await rings(store, 'idle', () => change(context));
        if (hint?.type === 'work') assert.deepEqual([hint.worker, hint.agent, hint.domain], ['idle', 'assistant', 0]);
      },
    }),
  ),
  {
    title: 'a new task notifies one waiting worker',
    async run({ store }) {
      const heard: string[] = [];
      const workers = ['a', 'b', 'c'];
      let tell = (): void => {};
      const rung = new Promise<void>((resolve) => (tell = resolve));
      const watches = [];
      for (const worker of workers) {
        await taken(store, { worker });
        watches.push(
          await store.watch({ worker }, (hint) => {
            if (hint.type === 'work') heard.push(worker);
            if (heard.length > 0 || hint.type === 'resync') tell();
          }),
        );
      }
      await create(store);
      await rung;
      // Whatever else was told came before this.
      await rings(store, 'last', async () => {
        await taken(store, { worker: 'last', agents: ['other'] });
        await create(store, { agent: 'other' });
      });
      for (const watching of watches) await watching[Symbol.asyncDispose]();
      assert.ok(heard.length <= 1, `${heard.length} were rung`);
    },
  },
  {
    title: 'a notification reaches a worker of another client',
    needs: 'second client',
    async run({ store, openSecond }) {
      await taken(store, { worker: 'idle' });
      await usingResource(await openSecond(), async (second) => {
        await rings(store, 'idle', () => create(second));
      });
    },
  },
];
