import assert from 'node:assert/strict';
import type { Policy } from '@whoa/core';
import { DEFAULTS, LIMITS } from '../../../ledger/rules/rules.ts';
import { type ContractCase, claim, create, record, SHORT_MS, TENANT } from '../../case.ts';
import { CONVERSATION, say, take, taken } from '../../talk.ts';
import { crash } from '../delivery/crash.ts';
import { ask, askAndPark, askMore, getWhere, liveQuestions, NO, park, states, YES } from './asking.ts';

/** How questions end without an answer: by a newer message, by a cancel, with their task. */
export const closeCases: readonly ContractCase[] = [
  ...(['queue', 'steer', 'merge'] as readonly Policy[]).map(
    (policy): ContractCase => ({
      title: `a newer message (${policy}) withdraws open questions, and answered ones stand`,
      async run({ store }) {
        const asking = await ask(store, [{}, {}], { task: await say(store, 'one', 'queue') });
        await store.answer({ tenant: TENANT, id: asking.asked[0]! }, YES);
        await say(store, 'two', policy);
        assert.deepEqual(await states(store, asking.id), ['given', 'withdrawn']);
        assert.deepEqual(await store.answer({ tenant: TENANT, id: asking.asked[1]! }, NO), {
          result: 'too-late',
          why: 'withdrawn',
        });
        const live = await liveQuestions(store, asking.by);
        assert.deepEqual(
          live.map(({ closed }) => closed?.why),
          [undefined, 'withdrawn'],
        );
        // What was steered is read before the next question.
        await store.append(asking.by, { after: 2, events: ['read'], done: [1] });
        await askMore(store, asking.by, [{}]);
        assert.deepEqual(await states(store, asking.id), ['given', 'withdrawn', 'open']);
      },
    }),
  ),
  ...(['queue', 'steer', 'merge'] as readonly Policy[]).map(
    (policy): ContractCase => ({
      title: `a newer message (${policy}) wakes a parked task`,
      async run({ store }) {
        const asking = await askAndPark(store, [{}], { task: await say(store, 'one', 'queue') });
        const { id: next } = await say(store, 'two', policy);
        assert.deepEqual(await getWhere(store, asking), ['ready', 'init', undefined]);
        const { orders, by } = await claim(store, asking.id);
        assert.equal(orders.commands.length, policy === 'steer' ? 1 : 0);
        assert.equal(orders.questions?.[0]?.closed?.why, 'withdrawn');
        const { successor } = await store.finish(by, { status: 'success' });
        assert.equal(successor, next);
      },
    }),
  ),
  {
    title: 'a message that is rejected withdraws nothing, and one that replaces cancels',
    async run({ store }) {
      const asking = await askAndPark(store, [{}], { task: await say(store, 'one', 'queue') });
      const rejected = await store.create({ ...CONVERSATION, agent: 'assistant', input: 'no' }, { policy: 'reject' });
      assert.equal(rejected.result, 'rejected');
      assert.deepEqual(await getWhere(store, asking), ['parked', 'running', 1]);
      await say(store, 'instead', 'replace');
      assert.deepEqual(await states(store, asking.id), ['cancelled']);
      assert.deepEqual(await getWhere(store, asking), ['ready', 'cancelling', undefined]);
    },
  },
  {
    title: 'a message withdraws questions when it is admitted, not while it is held back',
    async run({ store, advance }) {
      const asking = await askAndPark(store, [{}], { task: await say(store, 'one', 'queue') });
      await say(store, 'two', { policy: 'queue', debounceMs: 5_000 });
      assert.deepEqual(await getWhere(store, asking), ['parked', 'running', 1]);
      await advance(5_000);
      await taken(store, { agents: ['other'] });
      assert.deepEqual(await states(store, asking.id), ['withdrawn']);
      assert.deepEqual(await getWhere(store, asking), ['ready', 'init', undefined]);
    },
  },
  {
    title: 'a message that was stored before a question was asked does not withdraw it',
    async run({ store }) {
      const { id } = await say(store, 'one', 'queue');
      const { by } = await claim(store, id);
      await say(store, 'two', 'queue');
      await askMore(store, by, [{}]);
      assert.deepEqual(await park(store, by), { result: 'parked' });
      assert.deepEqual(await states(store, id), ['open']);
    },
  },
  {
    title: 'a cancel closes open questions and makes a parked task ready to be settled, though its agent is paused',
    options: { maxRunningPerAgent: 1, maxRunningPerTenant: 1 },
    async run({ store }) {
      const asking = await askAndPark(store, [{}, {}]);
      await claim(store, (await create(store)).id);
      await store.pause({ agent: 'assistant' }, true);
      const receipt = await store.cancel(asking.ref);
      assert.deepEqual([receipt.result, 'status' in receipt && receipt.status], ['accepted', 'cancelling']);
      assert.deepEqual(await states(store, asking.id), ['cancelled', 'cancelled']);
      assert.deepEqual(await store.answer({ tenant: TENANT, id: asking.asked[0]! }, YES), {
        result: 'too-late',
        why: 'cancelled',
      });
      const { tasks } = await take(store, { agents: ['other'] });
      assert.deepEqual([tasks[0]?.task.id, tasks[0]?.task.status], [asking.id, 'cancelling']);
      await store.finish(tasks[0]!.claim, { status: 'cancelled' });
      assert.deepEqual(await states(store, asking.id), ['cancelled', 'cancelled']);
    },
  },
  {
    title: 'a cancel with undo of a parked task waits for a worker of its agent',
    async run({ store }) {
      const asking = await askAndPark(store);
      await store.cancel(asking.ref, {}, { undo: true });
      assert.deepEqual(await taken(store, { agents: ['other'] }), []);
      assert.deepEqual(await taken(store), [asking.id]);
    },
  },
  {
    title: 'a cancel of a held task closes its questions, and a second one changes nothing',
    async run({ store }) {
      const { ref, id, asked } = await ask(store, [{}, {}]);
      await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
      for (let i = 0; i < 2; i++) {
        await store.cancel(ref);
        assert.deepEqual(await states(store, id), ['given', 'cancelled']);
      }
      assert.deepEqual((await store.questions({ tenant: TENANT })).questions, []);
    },
  },
  {
    title: 'the end of a task closes what is left of its questions, and answers learn why',
    async run({ store }) {
      const { id, by, asked } = await ask(store, [{}, {}]);
      await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
      await store.finish(by, { status: 'success' });
      assert.deepEqual(await states(store, id), ['ended', 'ended']);
      const [first, second] = [
        await store.answer({ tenant: TENANT, id: asked[0]! }, NO),
        await store.answer({ tenant: TENANT, id: asked[1]! }, NO),
      ];
      assert.ok(first.result === 'too-late' && first.why === 'answered' && first.given?.by === 'ada');
      assert.deepEqual(second, { result: 'too-late', why: 'ended' });
      const { waiting, hasAsked } = await record(store, id);
      assert.deepEqual([waiting, hasAsked, (await create(store)).hasAsked], [undefined, true, undefined]);
      assert.deepEqual((await store.questions({ tenant: TENANT })).questions, []);
    },
  },
  {
    title: 'a task that fails because its workers crashed closes its questions',
    async run(context) {
      const { store } = context;
      const { id, asked } = await ask(store, [{}], { leaseMs: SHORT_MS });
      for (let i = 1; i < LIMITS.maxCrashes; i++) {
        await crash(context);
        const { by, task } = await claim(store, id, { leaseMs: SHORT_MS });
        await store.append(by, { after: task.position, events: [], resetsAttempts: true });
      }
      await crash(context);
      assert.equal((await record(store, id)).status, 'failed');
      assert.deepEqual(await states(store, id), ['ended']);
      assert.deepEqual(await store.answer({ tenant: TENANT, id: asked[0]! }, YES), {
        result: 'too-late',
        why: 'ended',
      });
    },
  },
  {
    title: 'questions are kept as long as their task',
    async run({ store, advance }) {
      const { ref, id, by, asked } = await ask(store);
      const send = () => store.answer({ tenant: TENANT, id: asked[0]! }, YES, { nonce: 'n' });
      const first = await send();
      await store.finish(by, { status: 'success' });
      await advance(DEFAULTS.retentionMs - 60_000);
      assert.deepEqual(await send(), first);
      assert.deepEqual(await states(store, id), ['ended']);
      await advance(60_000);
      assert.deepEqual(await send(), { result: 'not-found' });
      while ((await store.sweep()).hasMore);
      assert.equal(await store.get(ref), undefined);
    },
  },
  {
    title: 'a removed task takes its questions with it, also for the next task with its key',
    async run({ store }) {
      const { ref, id, by, asked } = await ask(store, [{}], { task: await create(store, { key: 'k' }) });
      await store.answer({ tenant: TENANT, id: asked[0]! }, YES, { nonce: 'n' });
      await store.finish(by, { status: 'success' });
      await store.remove(ref);
      assert.deepEqual(await store.answer({ tenant: TENANT, id: asked[0]! }, YES, { nonce: 'n' }), {
        result: 'not-found',
      });
      assert.equal((await create(store, { key: 'k' })).id, id);
      assert.deepEqual(await states(store, id), []);
      assert.deepEqual(await store.answer({ tenant: TENANT, id: asked[0]! }, YES, { nonce: 'n' }), {
        result: 'not-found',
      });
      const { by: next } = await claim(store, id);
      assert.deepEqual(await askMore(store, next, [{}]), asked);
    },
  },
];
