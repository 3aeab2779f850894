import assert from 'node:assert/strict';
import { SIZES } from '../../../ledger/rules/rules.ts';
import { type ContractCase, claim, ordersFor, record, SHORT_MS, TENANT } from '../../case.ts';
import { take } from '../../talk.ts';
import { crash } from '../delivery/crash.ts';
import { ask, askAndPark, close, getWhere, liveQuestions, NO, states, YES } from './asking.ts';

/** Answers: the first counts, and each gets a truthful receipt. */
export const answerCases: readonly ContractCase[] = [
  {
    title: 'the first answer to a question counts, and others learn whose it is',
    async run({ store }) {
      const { id, asked } = await ask(store);
      const first = await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
      assert.ok(first.result === 'accepted');
      const given = { ...YES, at: first.at };
      assert.deepEqual(await store.answer({ tenant: TENANT, id: asked[0]! }, NO), {
        result: 'too-late',
        why: 'answered',
        given,
      });
      assert.deepEqual((await record(store, id)).questions?.[0]?.answer, given);
      assert.equal((await record(store, id)).waiting, undefined);
      assert.deepEqual((await store.questions({ tenant: TENANT })).questions, []);
    },
  },
  {
    title: 'the same answer sent again gets the same receipt, whatever has happened since',
    async run({ store, advance }) {
      const { by, asked } = await ask(store);
      const send = () => store.answer({ tenant: TENANT, id: asked[0]! }, YES, { nonce: 'n\n1' });
      const first = await send();
      assert.equal(first.result, 'accepted');
      await advance(10);
      assert.deepEqual(await send(), first);
      await close(store, by, { answered: asked });
      assert.deepEqual(await send(), first);
      await store.finish(by, { status: 'success' });
      await advance(10);
      assert.deepEqual(await send(), first);
      const other = await store.answer({ tenant: TENANT, id: asked[0]! }, YES, { nonce: 'another' });
      assert.ok(other.result === 'too-late' && other.why === 'answered' && other.given?.by === 'ada');
    },
  },
  {
    title: 'an answer keeps its value as it was given',
    async run({ store }) {
      const { by, asked } = await ask(store, [{}, {}]);
      const value = { text: 'é\u0000\n"\ud800', list: [null, 1.5, {}], nothing: null };
      await store.answer({ tenant: TENANT, id: asked[0]! }, { value });
      await store.answer({ tenant: TENANT, id: asked[1]! }, { value: null });
      const [first, second] = await liveQuestions(store, by);
      assert.deepEqual([first?.answer?.value, second?.answer?.value], [value, null]);
      assert.ok(!('by' in first!.answer!));
    },
  },
  {
    title: 'an answer that is too large is refused, and the question stays open',
    async run({ store }) {
      const { id, asked } = await ask(store);
      const large = { value: 'x'.repeat(SIZES.answerBytes + 1) };
      await assert.rejects(store.answer({ tenant: TENANT, id: asked[0]! }, large), RangeError);
      assert.deepEqual(await states(store, id), ['open']);
    },
  },
  {
    title: 'questions that do not exist, and those of other tenants, are unknown to an answer',
    async run({ store }) {
      const { id, asked } = await ask(store);
      assert.deepEqual(await store.answer({ tenant: 'other', id: asked[0]! }, YES), { result: 'not-found' });
      for (const one of [`${id}.none`, id, 'nonsense', 't-none.1', `${asked[0]}.1`]) {
        assert.deepEqual(await store.answer({ tenant: TENANT, id: one }, YES), { result: 'not-found' });
      }
      await assert.rejects(store.answer({ tenant: TENANT, id: '' }, YES), TypeError);
      assert.deepEqual(await states(store, id), ['open']);
    },
  },
  {
    title: 'an answer is an order to the worker that holds the task, until it confirms',
    async run({ store }) {
      const { by, asked, id } = await ask(store);
      const before = (await ordersFor(store, by)).orderNumber;
      await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
      const beat = { session: by.session, count: 1 };
      const beaten = await store.heartbeat(beat);
      assert.ok(beaten.result === 'alive');
      const [order] = beaten.orders;
      assert.deepEqual([order?.id, order?.orderNumber], [id, before + 1]);
      assert.equal(order?.questions?.[0]?.answer?.by, 'ada');
      const confirmed = [{ ...by, orderNumber: before + 1 }];
      const again = await store.heartbeat({ ...beat, confirmed });
      assert.ok(again.result === 'alive');
      assert.deepEqual(again.orders, []);
    },
  },
  {
    title: 'an answer makes a parked task ready, and its next worker gets it',
    async run({ store }) {
      const asking = await askAndPark(store, [{}, {}]);
      assert.equal((await store.answer({ tenant: TENANT, id: asking.asked[1]! }, YES)).result, 'accepted');
      assert.deepEqual(await getWhere(store, asking), ['ready', 'init', 1]);
      const { tasks } = await take(store);
      const [taken] = tasks;
      assert.deepEqual([taken?.task.id, taken?.task.status], [asking.id, 'running']);
      const { questions } = taken!.orders;
      assert.deepEqual(
        questions?.map(({ id, answer }) => [id, answer?.by]),
        [
          [asking.asked[0], undefined],
          [asking.asked[1], 'ada'],
        ],
      );
    },
  },
  {
    title: 'an answer to a task that waits for a worker changes nothing else',
    async run(context) {
      const { store } = context;
      const asking = await ask(store, [{}], { leaseMs: SHORT_MS });
      await crash(context);
      const before = await getWhere(store, asking);
      assert.deepEqual(before, ['ready', 'init', 1]);
      assert.equal((await store.answer({ tenant: TENANT, id: asking.asked[0]! }, YES)).result, 'accepted');
      assert.deepEqual(await getWhere(store, asking), ['ready', 'init', undefined]);
      const { by } = await claim(store, asking.id);
      assert.equal((await liveQuestions(store, by))[0]?.answer?.by, 'ada');
      await close(store, by, { answered: asking.asked });
    },
  },
  {
    title: 'of many answers together exactly one is accepted',
    async run({ store }) {
      const { asked, id } = await askAndPark(store);
      const people = Array.from({ length: 8 }, (_, i) => `p${i}`);
      const receipts = await Promise.all(
        people.map((by) => store.answer({ tenant: TENANT, id: asked[0]! }, { value: true, by })),
      );
      const winner = people[receipts.findIndex(({ result }) => result === 'accepted')];
      const others = receipts.filter(({ result: answer }) => answer !== 'accepted');
      assert.equal(others.length, 7);
      for (const one of others) assert.ok(one.result === 'too-late' && one.given?.by === winner);
      assert.equal((await record(store, id)).questions?.[0]?.answer?.by, winner);
    },
  },
];
