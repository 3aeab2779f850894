import assert from 'node:assert/strict';
import type { Hint, PushedOrder, TaskStore, WatchFilter } from '../../../store.ts';
import { bring, type ContractCase, claim, create, nth, ordersFor, record, TENANT, usingResource } from '../../case.ts';

interface Hearing {
  readonly filter: WatchFilter;
  readonly wanted: (hint: Hint & { id: string }) => boolean;
  readonly when: () => Promise<unknown>;
}

/** Does something and waits until a watcher is notified of it. */
async function checkHint(store: TaskStore, { filter, wanted, when }: Hearing): Promise<void> {
  let notify = (): void => {};
  const notified = new Promise<void>((resolve) => (notify = resolve));
  const watching = await store.watch(
    filter,
    (hint) => ('id' in hint ? wanted(hint) : hint.type === 'resync') && notify(),
  );
  try {
    await when();
    await notified;
  } finally {
    await watching[Symbol.asyncDispose]();
  }
}

/** Who is notified of changes, and of which. */
export const watchCases: readonly ContractCase[] = [
  ...(
    [
      ['cancel', 'a cancel'],
      ['command', 'a command'],
      ['journal', 'an append'],
      ['status', 'an end'],
    ] as const
  ).map(
    ([type, name]): ContractCase => ({
      title: `${name} is told to those who watch its worker`,
      async run({ store }) {
        const { id, ref, by } = await bring(store, 'running');
        const changes = {
          cancel: () => store.cancel(ref),
          command: () => store.send(ref, { type: 'steer', message: 'x' }),
          journal: () => store.append(by, { after: 0, events: ['x'] }),
          status: () => store.finish(by, { status: 'success' }),
        };
        const wanted = (hint: Hint & { id: string }): boolean => hint.type === type && hint.id === id;
        await checkHint(store, { filter: { worker: 'w1' }, wanted, when: changes[type] });
      },
    }),
  ),
  {
    title: 'a question is told as a change of its task, to those who watch the tenant and its worker',
    async run({ store }) {
      const { id, by } = await bring(store, 'running');
      const wanted = (hint: Hint & { id: string }): boolean => hint.type === 'status' && hint.id === id;
      for (const [after, filter] of [{ tenant: TENANT }, { worker: 'w1' }].entries()) {
        const ask = { id: `${id}.q${after}`, callId: 'c', kind: 'answer' as const, shown: 'x' };
        const when = () => store.append(by, { after, events: ['asked'], asks: [ask] });
        await checkHint(store, { filter, wanted, when });
      }
    },
  },
  {
    title: 'an order pushed by a cancel is the one in the record, for the claim that holds the task',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      for (const [mode, level] of [
        ['graceful', 'drain'],
        ['kill', 'kill'],
      ] as const) {
        let received: Hint | undefined;
        const wanted = (hint: Hint & { id: string }): boolean => {
          if (hint.type === 'cancel' && hint.id === id) received = hint;
          return received !== undefined;
        };
        const when = () => store.cancel(ref, { message: mode, by: 'ann' }, { mode, undo: level === 'kill' });
        await checkHint(store, { filter: { worker: 'w1' }, wanted, when });
        // It may bring none, and hints may come late.
        const order = (received as (Hint & { order?: PushedOrder }) | undefined)?.order;
        if (order?.stop.level === level) {
          const { stop, orderNumber } = await record(store, id);
          assert.deepEqual(order, { epoch: by.epoch, claim: by.claim, orderNumber, stop });
        }
      }
    },
  },
  {
    title: 'a worker is notified when its waiting task can start',
    async run({ store }) {
      const one = await create(store, { conversation: 'c', preferredWorker: 'home' });
      await claim(store, one.id);
      const two = await create(store, { conversation: 'c', preferredWorker: 'home' });
      await checkHint(store, {
        filter: { worker: 'home' },
        wanted: (hint) => hint.type === 'preferred' && hint.id === two.id,
        when: () => store.finish(nth(store, one.id, 1), { status: 'cancelled' }),
      });
    },
  },
  {
    title: 'a watcher is notified only of what it asked for',
    async run({ store }) {
      const one = await bring(store, 'running');
      const other = await bring(store, 'running');
      const seen: string[] = [];
      const watching = await store.watch({ tenant: TENANT, id: one.id }, (hint) => 'id' in hint && seen.push(hint.id));
      const when = async (): Promise<void> => {
        await store.cancel(one.ref);
        await store.cancel(other.ref);
      };
      await checkHint(store, { filter: { id: other.id }, wanted: () => true, when });
      await watching[Symbol.asyncDispose]();
      assert.ok(seen.every((id) => id === one.id));
    },
  },
  {
    title: 'a watcher that has left is not notified any more',
    async run({ store }) {
      const { ref } = await bring(store, 'running');
      let calls = 0;
      const watching = await store.watch({ tenant: TENANT }, () => calls++);
      await watching[Symbol.asyncDispose]();
      await checkHint(store, { filter: { tenant: TENANT }, wanted: () => true, when: () => store.cancel(ref) });
      assert.equal(calls, 0);
    },
  },
  {
    title: 'another client sees a task, cancels it, and the first learns of it',
    needs: 'second client',
    async run({ store, openSecond }) {
      const { ref, by } = await bring(store, 'running');
      await usingResource(await openSecond(), async (second) => {
        assert.equal((await second.get(ref))?.status, 'running');
        await checkHint(store, {
          filter: { worker: 'w1' },
          wanted: ({ type }) => type === 'cancel',
          when: () => second.cancel(ref, { by: 'second' }),
        });
      });
      assert.equal((await ordersFor(store, by)).stop?.reason.by, 'second');
    },
  },
];
