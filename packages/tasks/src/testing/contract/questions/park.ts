import assert from 'node:assert/strict';
import type { Hint } from '../../../store.ts';
import {
  assertFenced,
  bring,
  type CaseContext,
  type ContractCase,
  claim,
  create,
  nth,
  ordersFor,
  record,
  SHORT_MS,
  TENANT,
  tryClaim,
  usingResource,
} from '../../case.ts';
import { createTakeRequest, take, taken } from '../../talk.ts';
import { crash } from '../delivery/crash.ts';
import { type Asking, ask, askAndPark, askMore, close, getWhere, park, states, YES } from './asking.ts';

/** Tasks that wait for answers without a worker. */
export const parkCases: readonly ContractCase[] = [
  {
    title: 'a parked task has no worker, and costs no attempt',
    async run({ store }) {
      const asking = await ask(store);
      const { id, by } = asking;
      const before = await record(store, id);
      assert.deepEqual(await park(store, by), { result: 'parked' });
      assert.deepEqual(await getWhere(store, asking), ['parked', 'running', 1]);
      const { worker, epoch, attempts } = await record(store, id);
      assert.deepEqual([worker, epoch, attempts], [undefined, before.epoch + 1, 0]);
      await assertFenced(store.append(by, { after: 1, events: ['late'] }));
      await assertFenced(store.finish(by, { status: 'success' }));
      assert.deepEqual(await store.held({ session: by.session }), []);
      assert.deepEqual(await tryClaim(store, id), { result: 'waiting' });
      assert.deepEqual(await taken(store), []);
      assert.equal((await store.counts({ tenant: TENANT })).statuses.running, 1);
      assert.equal((await store.list({ tenant: TENANT, status: 'running' })).tasks[0]?.waiting, 1);
    },
  },
  {
    title: 'parking again, or handing back, after the task was parked changes nothing',
    async run({ store }) {
      const asking = await askAndPark(store);
      const { id, by, asked } = asking;
      assert.deepEqual(await park(store, by), { result: 'unchanged' });
      assert.deepEqual(await store.release(by), { result: 'unchanged' });
      assert.deepEqual(await getWhere(store, asking), ['parked', 'running', 1]);
      await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
      assert.deepEqual(await park(store, by), { result: 'unchanged' });
      assert.deepEqual(await getWhere(store, asking), ['ready', 'init', undefined]);
      await claim(store, id);
      await assertFenced(park(store, by));
    },
  },
  ...(
    [
      ['nothing was asked', ({ store }) => bring(store, 'running')],
      [
        'nothing is open',
        async ({ store }) => {
          const asking = await ask(store);
          await store.answer({ tenant: TENANT, id: asking.asked[0]! }, YES);
          await close(store, asking.by, { answered: asking.asked });
          return asking;
        },
      ],
      [
        'an answer was not acted on',
        async ({ store }) => {
          const asking = await ask(store, [{}, {}]);
          await store.answer({ tenant: TENANT, id: asking.asked[0]! }, YES);
          return asking;
        },
      ],
      [
        'an expiry was not journaled',
        async ({ store, advance }) => {
          const asking = await ask(store, [{ expiresMs: 10 }, {}]);
          await advance(10);
          await store.sweep();
          return asking;
        },
      ],
      [
        'a command was not carried out',
        async ({ store }) => {
          const asking = await ask(store);
          await store.send(asking.ref, { type: 'steer', message: 'm' });
          return asking;
        },
      ],
      [
        'the task is being stopped',
        async ({ store }) => {
          const asking = await ask(store);
          await store.cancel(asking.ref);
          return asking;
        },
      ],
    ] as readonly [string, (context: CaseContext) => Promise<Pick<Asking, 'by' | 'id'>>][]
  ).map(
    ([why, set]): ContractCase => ({
      title: `a task is not parked when ${why}`,
      async run(context) {
        const { store } = context;
        const { by, id } = await set(context);
        const receipt = await park(store, by);
        assert.ok(receipt.result === 'busy');
        const orders = await ordersFor(store, by);
        assert.deepEqual({ ...receipt.orders, now: orders.now }, orders);
        assert.equal((await record(store, id)).stage, 'held');
      },
    }),
  ),
  {
    title: 'a park that comes late does not count: not after an append, and not after an order',
    async run({ store }) {
      const { id, by, ref } = await ask(store, [{}, {}]);
      const { position, orderNumber } = await record(store, id);
      await store.append(by, { after: position, events: ['more'] });
      assert.equal((await store.park(by, { position, orderNumber })).result, 'busy');
      await store.send(ref, { type: 'cancel-call', callId: 'c' });
      assert.equal((await store.park(by, { position: position + 1, orderNumber })).result, 'busy');
      await store.append(by, { after: position + 1, events: [], done: [1] });
      assert.equal((await park(store, by)).result, 'parked');
    },
  },
  {
    title: 'an answer that comes before a park keeps the task at its worker, and one that comes after it wakes it',
    async run({ store }) {
      for (const isFirst of [true, false]) {
        const asking = await ask(store);
        const seen = await record(store, asking.id);
        const answer = () => store.answer({ tenant: TENANT, id: asking.asked[0]! }, YES);
        if (isFirst) await answer();
        const { result: parked } = await store.park(asking.by, seen);
        if (!isFirst) await answer();
        assert.equal(parked, isFirst ? 'busy' : 'parked');
        assert.equal((await getWhere(store, asking))[0], isFirst ? 'held' : 'ready');
      }
    },
  },
  {
    title: 'a command makes a parked task ready',
    async run({ store }) {
      const asking = await askAndPark(store);
      assert.equal((await store.send(asking.ref, { type: 'cancel-call', callId: 'c' })).result, 'accepted');
      assert.deepEqual(await getWhere(store, asking), ['ready', 'init', 1]);
      const { orders } = await claim(store, asking.id);
      assert.equal(orders.commands.length, 1);
      assert.equal(orders.questions?.length, 1);
    },
  },
  ...[ask, askAndPark].map(
    (begin): ContractCase => ({
      title: `a message sent to a task that asks (${begin.name}) withdraws open questions, and another command does not`,
      async run({ store }) {
        const { id, ref, asked } = await begin(store, [{}]);
        await store.send(ref, { type: 'cancel-call', callId: 'another' });
        assert.deepEqual(await states(store, id), ['open']);
        const steer = { type: 'steer', message: 'a \u0000 b' } as const;
        await store.send(ref, steer, { nonce: 'n' });
        assert.deepEqual(await states(store, id), ['withdrawn']);
        const answered = await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
        assert.deepEqual(answered, { result: 'too-late', why: 'withdrawn' });
        assert.equal((await store.send(ref, steer, { nonce: 'n' })).result, 'accepted');
        assert.equal((await record(store, id)).status, begin === ask ? 'running' : 'init');
      },
    }),
  ),
  {
    title: 'a reader of its journal does not wake a parked task',
    async run({ store }) {
      const asking = await askAndPark(store);
      const reader = await store.watch({ ...asking.ref, words: true }, () => {});
      assert.deepEqual(await getWhere(store, asking), ['parked', 'running', 1]);
      await store.answer({ tenant: TENANT, id: asking.asked[0]! }, YES);
      assert.equal((await claim(store, asking.id)).orders.readers.length, 1);
      await reader[Symbol.asyncDispose]();
    },
  },
  {
    title: 'a worker that waits is told when a parked task has its answer',
    async run({ store }) {
      const { asked } = await askAndPark(store);
      await taken(store, { worker: 'idle' });
      const hints: Hint[] = [];
      let isHeard = (): void => {};
      const rung = new Promise<void>((resolve) => (isHeard = resolve));
      const watching = await store.watch({ worker: 'idle' }, (hint) => {
        hints.push(hint);
        if (hint.type === 'ready' || hint.type === 'resync') isHeard();
      });
      await usingResource(watching, async () => {
        await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
        await rung;
      });
    },
  },
  {
    title: 'a crash never parks a task: its questions stay open, and its next worker parks it',
    async run(context) {
      const { store } = context;
      const asking = await ask(store, [{}], { leaseMs: SHORT_MS });
      await crash(context);
      assert.deepEqual(await getWhere(store, asking), ['ready', 'init', 1]);
      await assertFenced(park(store, asking.by));
      const { by, orders } = await claim(store, asking.id);
      assert.deepEqual(
        orders.questions?.map(({ id }) => id),
        asking.asked,
      );
      assert.deepEqual(await park(store, by), { result: 'parked' });
      assert.deepEqual(await states(store, asking.id), ['open']);
    },
  },
  {
    title: 'a late release of an earlier worker leaves a parked task parked',
    async run(context) {
      const { store } = context;
      const { id } = await create(store);
      const { by: lost } = await claim(store, id, { leaseMs: SHORT_MS });
      await crash(context);
      const { by } = await claim(store, id);
      await askMore(store, by, [{}]);
      assert.deepEqual(await park(store, by), { result: 'parked' });
      assert.deepEqual(await store.release(lost), { result: 'unchanged' });
      const { stage, status, crashes, attempts } = await record(store, id);
      assert.deepEqual([stage, status, crashes, attempts], ['parked', 'running', 0, 0]);
    },
  },
  ...[{ maxRunningPerAgent: 1 }, { maxRunningPerTenant: 1 }].map(
    (options): ContractCase => ({
      title: `a parked task does not count as running (${Object.keys(options)[0]})`,
      options,
      async run({ store }) {
        const { asked, id } = await ask(store);
        const next = await create(store);
        assert.deepEqual(await taken(store), []);
        await park(store, nth(store, id, 1));
        const request = createTakeRequest();
        const { tasks } = await take(store, request);
        assert.deepEqual(
          tasks.map(({ task }) => task.id),
          [next.id],
        );
        await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
        assert.deepEqual(await taken(store), []);
        await store.finish(tasks[0]!.claim, { status: 'success' });
        assert.deepEqual(await taken(store), [id]);
      },
    }),
  ),
  {
    title: 'under a pause answers are accepted and take effect after it',
    async run({ store }) {
      const { asked, id } = await askAndPark(store);
      await store.pause({ agent: 'assistant' }, true);
      assert.equal((await store.answer({ tenant: TENANT, id: asked[0]! }, YES)).result, 'accepted');
      assert.deepEqual(await taken(store), []);
      await store.pause({ agent: 'assistant' }, false);
      assert.deepEqual(await taken(store), [id]);
    },
  },
];
