import assert from 'node:assert/strict';
import { type ContractCase, claim, create, record, SHORT_MS, TENANT } from '../../case.ts';
import { say, take, taken } from '../../talk.ts';
import { crash } from '../delivery/crash.ts';
import { ask, askAndPark, close, getWhere, liveQuestions, park, states, YES } from './asking.ts';

/** Questions and tasks whose time is over. */
export const expiryCases: readonly ContractCase[] = [
  {
    title: 'a question that is not answered in time is closed, and wakes its parked task',
    async run({ store, advance }) {
      const asking = await askAndPark(store, [{ expiresMs: 10_000 }, {}]);
      await advance(5_000);
      await store.sweep();
      assert.deepEqual(await states(store, asking.id), ['open', 'open']);
      await advance(5_000);
      await store.sweep();
      assert.deepEqual(await states(store, asking.id), ['expired', 'open']);
      assert.deepEqual(await getWhere(store, asking), ['ready', 'init', 1]);
      assert.deepEqual(await store.answer({ tenant: TENANT, id: asking.asked[0]! }, YES), {
        result: 'too-late',
        why: 'expired',
      });
      const { by } = await claim(store, asking.id);
      assert.deepEqual(
        (await liveQuestions(store, by)).map(({ closed }) => closed?.why),
        ['expired', undefined],
      );
      await close(store, by, { journaled: [asking.asked[0]!] });
      assert.equal((await liveQuestions(store, by)).length, 1);
      assert.deepEqual(await park(store, by), { result: 'parked' });
    },
  },
  {
    title: 'after its time an answer does not count, though no worker has looked',
    async run(context) {
      const { store, advance } = context;
      const parked = await askAndPark(store, [{ expiresMs: 10_000 }]);
      const held = await ask(store, [{ expiresMs: 10_000 }, {}]);
      const waiting = await ask(store, [{ expiresMs: 10_000 }]);
      await store.release(waiting.by);
      const { orderNumber } = await record(store, held.id);
      await advance(10_000);
      for (const { asked } of [parked, held, waiting]) {
        const late = await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
        assert.deepEqual(late, { result: 'too-late', why: 'expired' });
      }
      assert.deepEqual(await states(store, parked.id), ['expired']);
      assert.deepEqual(await getWhere(store, parked), ['ready', 'init', undefined]);
      assert.deepEqual(await states(store, held.id), ['expired', 'open']);
      assert.equal((await record(store, held.id)).orderNumber, orderNumber + 1);
      assert.deepEqual(await states(store, waiting.id), ['expired']);
      assert.equal((await store.answer({ tenant: TENANT, id: held.asked[1]! }, YES)).result, 'accepted');
    },
  },
  {
    title: 'an answered question does not expire',
    async run({ store, advance }) {
      const asking = await ask(store, [{ expiresMs: 10 }]);
      assert.equal(
        (await store.answer({ tenant: TENANT, id: asking.asked[0]! }, YES, { nonce: 'n' })).result,
        'accepted',
      );
      await advance(1_000);
      assert.equal(
        (await store.answer({ tenant: TENANT, id: asking.asked[0]! }, YES, { nonce: 'n' })).result,
        'accepted',
      );
      await store.sweep();
      assert.deepEqual(await states(store, asking.id), ['given']);
      assert.equal((await getWhere(store, asking))[0], 'held');
    },
  },
  {
    title: 'a question past its time is not listed, and reading its task closes it',
    async run({ store, advance }) {
      const asking = await askAndPark(store, [{ expiresMs: 10_000 }, {}]);
      await advance(10_000);
      const { questions } = await store.questions({ tenant: TENANT });
      assert.deepEqual(
        questions.map(({ id }) => id),
        [asking.asked[1]],
      );
      assert.equal(await store.get({ tenant: 'other', id: asking.id }), undefined);
      const read = await record(store, asking.id);
      assert.deepEqual([read.stage, read.waiting], ['ready', 1]);
      assert.deepEqual(
        read.questions?.map(({ closed }) => closed?.why),
        ['expired', undefined],
      );
      assert.deepEqual(await record(store, asking.id), read);
    },
  },
  {
    title: 'whatever closes questions says which of them had expired before',
    async run({ store, advance }) {
      const questions = [{ expiresMs: 10_000 }, {}];
      const cancelled = await askAndPark(store, questions);
      const stopping = await ask(store, questions);
      const withdrawn = await ask(store, questions, { task: await say(store, 'one', 'queue') });
      const steered = await ask(store, questions);
      await advance(10_000);
      await store.cancel(cancelled.ref);
      await store.cancel(stopping.ref);
      await say(store, 'two', 'queue');
      await store.send(steered.ref, { type: 'steer', message: 'two' });
      assert.deepEqual(await states(store, cancelled.id), ['expired', 'cancelled']);
      assert.deepEqual(await states(store, stopping.id), ['expired', 'cancelled']);
      assert.deepEqual(await states(store, withdrawn.id), ['expired', 'withdrawn']);
      assert.deepEqual(await states(store, steered.id), ['expired', 'withdrawn']);
    },
  },
  {
    title: 'after the deadline of a task that no worker holds, an answer is too late, and its questions are not listed',
    async run({ store, advance }) {
      const { createdAt } = await create(store);
      const deadline = createdAt + 60_000;
      const parked = await askAndPark(store, [{}], { task: await create(store, { deadline }) });
      const waiting = await ask(store, [{}], { task: await create(store, { deadline }) });
      await store.release(waiting.by);
      const held = await ask(store, [{}], { task: await create(store, { deadline }) });
      await advance(60_000);
      assert.deepEqual(
        (await store.questions({ tenant: TENANT })).questions.map(({ id }) => id),
        held.asked,
      );
      for (const asking of [parked, waiting]) {
        const late = await store.answer({ tenant: TENANT, id: asking.asked[0]! }, YES);
        assert.deepEqual(late, { result: 'too-late', why: 'cancelled' });
        assert.deepEqual(await getWhere(store, asking), ['ready', 'cancelling', undefined]);
        assert.equal((await record(store, asking.id)).stop?.reason.kind, 'deadline');
      }
      assert.deepEqual(await getWhere(store, held), ['held', 'running', 1]);
    },
  },
  {
    title: 'whoever reads or cancels a task past its deadline that no worker holds learns that it is over',
    async run({ store, advance }) {
      const { createdAt } = await create(store);
      const deadline = createdAt + 60_000;
      const read = await create(store, { deadline });
      const cancelled = await create(store, { deadline });
      const parked = await askAndPark(store, [{}], { task: await create(store, { deadline }) });
      const first = await say(store, 'one', { policy: 'queue', deadline });
      const next = await say(store, 'two', 'queue');
      await advance(60_000);
      const { status, outcome } = await record(store, read.id);
      assert.deepEqual([status, outcome?.reason?.kind], ['cancelled', 'deadline']);
      const late = await store.cancel({ tenant: TENANT, id: cancelled.id });
      assert.deepEqual(late, { result: 'too-late', status: 'cancelled' });
      const receipt = await store.cancel(parked.ref, { message: 'later' });
      assert.ok(receipt.result === 'unchanged' && receipt.reason.kind === 'deadline');
      assert.equal((await record(store, first.id)).status, 'cancelled');
      assert.equal((await record(store, next.id)).stage, 'ready');
    },
  },
  {
    title: 'an expiry is an order to the worker that holds the task, and changes nothing else of one that waits',
    async run(context) {
      const { store, advance } = context;
      const held = await ask(store, [{ expiresMs: 10 }]);
      const { orderNumber } = await record(store, held.id);
      await advance(10);
      assert.equal((await store.sweep()).hasMore, false);
      const { stage, orderNumber: after } = await record(store, held.id);
      assert.deepEqual([stage, after], ['held', orderNumber + 1]);
      assert.deepEqual(await states(store, held.id), ['expired']);
      await store.release(held.by);
      const reclaimed = await ask(store, [{ expiresMs: 3_600_000 }], { leaseMs: SHORT_MS });
      await crash(context);
      await advance(3_600_000);
      await store.sweep();
      assert.deepEqual(await getWhere(store, reclaimed), ['ready', 'init', undefined]);
      assert.deepEqual(await states(store, reclaimed.id), ['expired']);
    },
  },
  {
    title: 'a take tells its worker to sweep when a question has expired',
    async run({ store, advance }) {
      await askAndPark(store, [{ expiresMs: 3_600_000 }]);
      await taken(store);
      await advance(3_600_000);
      assert.equal((await take(store)).shouldSweep, true);
    },
  },
  {
    title: 'a sweep closes many expired questions, a few at a time',
    async run({ store, advance }) {
      const all = [];
      for (let i = 0; i < 5; i++) all.push(await askAndPark(store, [{ expiresMs: 10 }]));
      await advance(10);
      assert.equal((await store.sweep({ limit: 2 })).hasMore, true);
      while ((await store.sweep({ limit: 2 })).hasMore);
      for (const one of all) assert.deepEqual(await getWhere(store, one), ['ready', 'init', undefined]);
    },
  },
  {
    title: 'a parked task is cancelled at its deadline, and settled by any worker',
    async run({ store, advance }) {
      const { createdAt } = await create(store);
      const task = await create(store, { deadline: createdAt + 60_000 });
      const asking = await askAndPark(store, [{}], { task });
      await advance(60_000);
      await store.sweep();
      assert.deepEqual(await getWhere(store, asking), ['ready', 'cancelling', undefined]);
      assert.equal((await record(store, asking.id)).stop?.reason.kind, 'deadline');
      assert.deepEqual(await states(store, asking.id), ['cancelled']);
      assert.deepEqual(await taken(store, { agents: ['other'] }), [asking.id]);
    },
  },
  {
    title: 'a task that is no longer parked keeps its deadline for its worker',
    async run({ store, advance }) {
      const { createdAt } = await create(store);
      const task = await create(store, { deadline: createdAt + 60_000 });
      const asking = await askAndPark(store, [{}], { task });
      await store.answer({ tenant: TENANT, id: asking.asked[0]! }, YES);
      await claim(store, asking.id);
      await advance(60_000);
      assert.equal((await store.sweep()).hasMore, false);
      assert.deepEqual(await getWhere(store, asking), ['held', 'running', undefined]);
    },
  },
];
