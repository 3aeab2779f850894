import assert from 'node:assert/strict';
import type { Policy } from '@whoa/core';
import { type ContractCase, claim, record, TENANT } from '../../case.ts';
import { CONVERSATION, say, taken } from '../../talk.ts';
import { ask, askAndPark, getWhere, states, YES } from './asking.ts';

/** Messages of people who may not answer: they withdraw no question. */
export const keepCases: readonly ContractCase[] = [
  ...(['queue', 'steer', 'merge'] as readonly Policy[]).map(
    (policy): ContractCase => ({
      title: `a newer message (${policy}) of someone who may not answer is queued, and withdraws nothing`,
      async run({ store }) {
        const asking = await askAndPark(store, [{}], { task: await say(store, 'one', 'queue') });
        const { id: next, steered } = await say(store, 'two', { policy, keepsQuestions: true });
        assert.equal(steered, undefined);
        assert.deepEqual(await getWhere(store, asking), ['parked', 'running', 1]);
        assert.equal((await record(store, next)).stage, 'queued');
        await store.answer({ tenant: TENANT, id: asking.asked[0]! }, YES);
        const { orders, by } = await claim(store, asking.id);
        assert.equal(orders.commands.length, 0);
        assert.equal((await store.finish(by, { status: 'success' })).successor, next);
      },
    }),
  ),
  {
    title: 'it is passed on as always while no question is open',
    async run({ store }) {
      const { id, asked } = await ask(store, [{}], { task: await say(store, 'one', 'queue') });
      await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
      assert.equal((await say(store, 'two', { policy: 'steer', keepsQuestions: true })).steered, id);
      assert.deepEqual(await states(store, id), ['given']);
    },
  },
  {
    title: 'it withdraws nothing when it is admitted, after it was held back',
    async run({ store, advance }) {
      const asking = await askAndPark(store, [{}], { task: await say(store, 'one', 'queue') });
      const next = await say(store, 'two', { policy: 'steer', debounceMs: 5_000, keepsQuestions: true });
      assert.equal('keepsQuestions' in next, false);
      await advance(5_000);
      await taken(store, { agents: ['other'] });
      assert.equal((await record(store, next.id)).stage, 'queued');
      assert.deepEqual(await getWhere(store, asking), ['parked', 'running', 1]);
      await say(store, 'three', 'queue');
      assert.deepEqual(await states(store, asking.id), ['withdrawn']);
    },
  },
  {
    title: 'it replaces as always, and is rejected as always',
    async run({ store }) {
      const asking = await askAndPark(store, [{}], { task: await say(store, 'one', 'queue') });
      const task = { ...CONVERSATION, agent: 'assistant', input: 'no', keepsQuestions: true };
      assert.equal((await store.create(task, { policy: 'reject' })).result, 'rejected');
      assert.deepEqual(await states(store, asking.id), ['open']);
      await store.create(task, { policy: 'replace' });
      assert.deepEqual(await states(store, asking.id), ['cancelled']);
    },
  },
];
