import assert from 'node:assert/strict';
import type { Policy } from '@whoa/core';
import { type ContractCase, claim, LEASE_MS, nth, ordersFor, record, TENANT, tryClaim } from '../../case.ts';
import { CONVERSATION, readReasonKind, say, statuses } from '../../talk.ts';

/** One live task in a conversation, and what a newer message does to it. */
export const conversationCases: readonly ContractCase[] = [
  {
    title: 'the first message of a conversation is its current task',
    async run({ store }) {
      const { id } = await say(store, 'one', 'replace');
      assert.equal((await store.conversation(CONVERSATION))?.current, id);
    },
  },
  {
    title: 'replace ends a task that has not started, and takes its place',
    async run({ store }) {
      const one = await say(store, 'one', 'replace');
      const two = await say(store, 'two', 'replace');
      assert.deepEqual(await statuses(store, [one, two]), ['cancelled', 'init']);
      assert.equal(await readReasonKind(store, one), 'superseded');
      await claim(store, two.id);
    },
  },
  {
    title: 'replace cancels a running task in the same step and waits for its end',
    async run({ store }) {
      const one = await say(store, 'one', 'replace');
      await claim(store, one.id);
      const receipt = await store.create({ ...CONVERSATION, agent: 'assistant', input: 'two' }, { policy: 'replace' });
      assert.ok(receipt.result === 'created');
      assert.deepEqual(receipt.superseded, [one.id]);
      assert.equal((await record(store, one.id)).status, 'cancelling');
      assert.deepEqual(await tryClaim(store, receipt.task.id, { worker: 'w1' }), { result: 'waiting' });
      const ended = await store.finish(nth(store, one.id, 1), { status: 'cancelled' });
      assert.equal(ended.successor, receipt.task.id);
      await claim(store, receipt.task.id);
    },
  },
  {
    title: 'replace drops what waited, and only the newest is next',
    async run({ store }) {
      const one = await say(store, 'one', 'queue');
      await claim(store, one.id);
      const others = [await say(store, 'two', 'queue'), await say(store, 'three', 'replace')];
      const newest = await say(store, 'four', 'replace');
      assert.deepEqual(await statuses(store, others), ['cancelled', 'cancelled']);
      const { successor } = await store.finish(nth(store, one.id, 1), { status: 'success' });
      assert.equal(successor, newest.id);
      assert.equal((await record(store, one.id)).status, 'cancelled');
    },
  },
  {
    title: 'replace keeps the reason of a cancel that came before it',
    async run({ store }) {
      const one = await say(store, 'one', 'replace');
      await claim(store, one.id);
      await store.cancel({ tenant: TENANT, id: one.id }, { kind: 'user', by: 'ann' });
      await say(store, 'two', 'replace');
      await store.finish(nth(store, one.id, 1), { status: 'cancelled' });
      assert.equal(await readReasonKind(store, one), 'user');
    },
  },
  {
    title: 'queue runs each task in order',
    async run({ store }) {
      const tasks = [];
      for (const text of ['one', 'two', 'three']) tasks.push(await say(store, text, 'queue'));
      for (const [index, { id }] of tasks.entries()) {
        for (const later of tasks.slice(index + 1))
          assert.equal((await tryClaim(store, later.id, { worker: 'w' })).result, 'waiting');
        await claim(store, id);
        const { successor } = await store.finish(nth(store, id, 1), { status: 'success' });
        assert.equal(successor, tasks[index + 1]?.id);
      }
      assert.deepEqual(await statuses(store, tasks), ['success', 'success', 'success']);
    },
  },
  {
    title: 'queue refuses a message when the queue is full, which is not the same as a policy that rejects',
    async run({ store }) {
      await say(store, 'current', 'queue');
      for (let i = 0; i < 100; i++) await say(store, `${i}`, 'queue');
      const receipt = await store.create(
        { ...CONVERSATION, agent: 'assistant', input: 'too many' },
        { policy: 'queue' },
      );
      assert.deepEqual(receipt, { result: 'full', what: 'queue', limit: 100 });
    },
  },
  {
    title: 'reject refuses while a task is active, and the key of a refused task can be used again',
    async run({ store }) {
      const one = await say(store, 'one', 'reject');
      const again = { ...CONVERSATION, agent: 'assistant', input: 'two', key: 'm2' };
      assert.deepEqual(await store.create(again, { policy: 'reject' }), { result: 'rejected' });
      await claim(store, one.id);
      await store.finish(nth(store, one.id, 1), { status: 'success' });
      assert.equal((await store.create(again, { policy: 'reject' })).result, 'created');
    },
  },
  {
    title: 'a refused message does not affect accepted messages that are held back',
    async run({ store }) {
      const one = await say(store, 'one', 'queue');
      await claim(store, one.id);
      const held = await say(store, 'held', { debounceMs: LEASE_MS });
      const refused = { ...CONVERSATION, agent: 'assistant', input: 'refused' };
      assert.deepEqual(await store.create(refused, { policy: 'reject' }), { result: 'rejected' });
      assert.equal((await record(store, held.id)).status, 'init');
      assert.equal((await store.conversation(CONVERSATION))?.debouncing, held.id);
    },
  },
  {
    title: 'steer gives the message to the running task and keeps it in case it comes too late',
    async run({ store }) {
      const one = await say(store, 'one', 'steer');
      await claim(store, one.id);
      const receipt = await store.create({ ...CONVERSATION, agent: 'assistant', input: 'also' }, { policy: 'steer' });
      assert.ok(receipt.result === 'created' && receipt.steered === one.id);
      const { commands } = await ordersFor(store, nth(store, one.id, 1));
      assert.deepEqual(commands, [{ type: 'steer', message: 'also', task: receipt.task.id, number: 1 }]);
      assert.equal((await store.finish(nth(store, one.id, 1), { status: 'success' })).successor, receipt.task.id);
    },
  },
  {
    title: 'a message that the running task has read does not run as a task of its own',
    async run({ store }) {
      const one = await say(store, 'one', 'steer');
      await claim(store, one.id);
      const steered = await say(store, 'also', 'steer');
      await store.append(nth(store, one.id, 1), { after: 0, events: [], done: [1] });
      assert.deepEqual(
        [await statuses(store, [steered]), await readReasonKind(store, steered)],
        [['cancelled'], 'steered'],
      );
      assert.equal((await store.finish(nth(store, one.id, 1), { status: 'success' })).successor, undefined);
    },
  },
  {
    title: 'a message that is withdrawn before the running task has read it is taken back from it',
    async run({ store }) {
      const one = await say(store, 'one', 'steer');
      await claim(store, one.id);
      const withdrawn = await say(store, 'never mind', 'steer');
      const kept = await say(store, 'also', 'steer');
      const before = await ordersFor(store, nth(store, one.id, 1));
      const receipt = await store.cancel({ tenant: TENANT, id: withdrawn.id });
      assert.deepEqual([receipt.result, await statuses(store, [withdrawn])], ['accepted', ['cancelled']]);
      const after = await ordersFor(store, nth(store, one.id, 1));
      assert.deepEqual(after.commands, [{ type: 'steer', message: 'also', task: kept.id, number: 2 }]);
      assert.ok(after.orderNumber > before.orderNumber);
      await store.append(nth(store, one.id, 1), { after: 0, events: [], done: [1, 2] });
      assert.deepEqual(
        [await readReasonKind(store, withdrawn), await readReasonKind(store, kept)],
        ['user', 'steered'],
      );
    },
  },
  {
    title: 'messages that a task did not read run before those that were queued',
    async run({ store }) {
      const one = await say(store, 'one', 'queue');
      await claim(store, one.id);
      const queued = await say(store, 'queued', 'queue');
      const first = await say(store, 'first', 'steer');
      const second = await say(store, 'second', 'steer');
      assert.deepEqual((await store.conversation(CONVERSATION))?.waiting, [first.id, second.id, queued.id]);
    },
  },
  {
    title: 'steer waits its turn when the current task is being cancelled',
    async run({ store }) {
      const one = await say(store, 'one', 'steer');
      await claim(store, one.id);
      await store.cancel({ tenant: TENANT, id: one.id });
      const receipt = await store.create({ ...CONVERSATION, agent: 'assistant', input: 'late' }, { policy: 'steer' });
      assert.ok(receipt.result === 'created' && receipt.steered === undefined);
      assert.deepEqual((await ordersFor(store, nth(store, one.id, 1))).commands, []);
    },
  },
  {
    title: 'two tasks of a conversation can never be claimed at the same time',
    async run({ store }) {
      const policies: Policy[] = ['replace', 'queue', 'steer', 'replace', 'queue'];
      const first = await say(store, 'first', 'queue');
      const tasks = [first];
      for (const policy of policies) tasks.push(await say(store, policy, policy));
      const answers = await Promise.all(tasks.map(({ id }) => tryClaim(store, id, { worker: 'w' })));
      assert.equal(answers.filter(({ result }) => result === 'claimed').length, 1);
    },
  },
  {
    title: 'a history is kept with the conversation and given to the next claim',
    async run({ store }) {
      const one = await say(store, 'one', 'queue');
      const two = await say(store, 'two', 'queue');
      assert.deepEqual((await claim(store, one.id)).history, []);
      const history = [{ role: 'user', content: 'one' }];
      await store.finish(nth(store, one.id, 1), { status: 'success', history });
      assert.deepEqual((await claim(store, two.id)).history, history);
      assert.equal('history' in ((await record(store, one.id)).outcome ?? {}), false);
    },
  },
  {
    title: 'an end without a history keeps the previous history',
    async run({ store }) {
      const one = await say(store, 'one', 'queue');
      await claim(store, one.id);
      await store.finish(nth(store, one.id, 1), { status: 'success', history: ['kept'] });
      const two = await say(store, 'two', 'queue');
      await claim(store, two.id);
      await store.finish(nth(store, two.id, 1), { status: 'failed', error: { message: 'oops' } });
      assert.deepEqual((await store.conversation(CONVERSATION))?.history, ['kept']);
    },
  },
  {
    title: 'a cancelled task that was waiting is skipped',
    async run({ store }) {
      const one = await say(store, 'one', 'queue');
      await claim(store, one.id);
      const two = await say(store, 'two', 'queue');
      const three = await say(store, 'three', 'queue');
      await store.cancel({ tenant: TENANT, id: two.id });
      assert.equal((await store.finish(nth(store, one.id, 1), { status: 'success' })).successor, three.id);
    },
  },
  {
    title: 'when a task that had not started is cancelled, the next one starts',
    async run({ store }) {
      const one = await say(store, 'one', 'queue');
      const two = await say(store, 'two', 'queue');
      await store.cancel({ tenant: TENANT, id: one.id });
      await claim(store, two.id);
    },
  },
  {
    title: 'a released task stays the current one',
    async run({ store }) {
      const one = await say(store, 'one', 'queue');
      const two = await say(store, 'two', 'queue');
      await claim(store, one.id);
      await store.release(nth(store, one.id, 1));
      assert.equal((await tryClaim(store, two.id, { worker: 'w' })).result, 'waiting');
      await claim(store, one.id);
    },
  },
  {
    title: 'conversations do not disturb each other',
    async run({ store }) {
      const one = await say(store, 'one', 'replace');
      await claim(store, one.id);
      const other = await say(store, 'other', { conversation: 'c2' });
      const foreign = await say(store, 'foreign', { tenant: 'other' });
      await claim(store, other.id);
      await claim(store, foreign.id);
      assert.deepEqual(await statuses(store, [one, other]), ['running', 'running']);
    },
  },
];
