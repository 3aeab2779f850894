import assert from 'node:assert/strict';
import { type ContractCase, claim, LEASE_MS, record, SHORT_MS } from '../case.ts';
import { kindOf, say } from './talk.ts';

/** Messages that are held back for a moment, in case more follow. */
export const holdCases: readonly ContractCase[] = [
  {
    title: 'a message that is held back cannot be claimed before its time',
    async run({ store, advance }) {
      const one = await say(store, 'one', { holdMs: SHORT_MS });
      const early = await store.claim(one.id, 'w', LEASE_MS);
      assert.ok(early.answer === 'waiting' && early.until !== undefined);
      await advance(SHORT_MS);
      await claim(store, one.id);
    },
  },
  {
    title: 'messages that follow each other closely become one task, and the last gets the answer',
    async run({ store, advance }) {
      const one = await say(store, 'one', { holdMs: SHORT_MS });
      const two = await say(store, 'two', { holdMs: SHORT_MS });
      assert.equal(await kindOf(store, one), 'merged');
      await advance(SHORT_MS);
      assert.deepEqual((await claim(store, two.id)).task.inputs, ['one', 'two']);
    },
  },
  {
    title: 'a message that is not held back takes those that are with it',
    async run({ store }) {
      await say(store, 'one', { holdMs: SHORT_MS });
      const two = await say(store, 'two', 'replace');
      assert.deepEqual((await claim(store, two.id)).task.inputs, ['one', 'two']);
    },
  },
  {
    title: 'a message that is held back leaves the running task alone until its time has come',
    async run({ store, advance }) {
      const one = await say(store, 'one', 'replace');
      await claim(store, one.id);
      const two = await say(store, 'two', { holdMs: SHORT_MS });
      assert.equal((await record(store, one.id)).status, 'running');
      await advance(SHORT_MS);
      assert.equal((await store.claim(two.id, 'w', LEASE_MS)).answer, 'waiting');
      assert.equal((await record(store, one.id)).status, 'cancelling');
    },
  },
  ...(['replace', 'queue', 'steer'] as const).map(
    (policy): ContractCase => ({
      title: `a message that was held back and has to wait (${policy}) is due when its turn comes, not before`,
      async run({ store, advance }) {
        const one = await say(store, 'one', 'replace');
        await claim(store, one.id);
        const two = await say(store, 'two', { policy, holdMs: SHORT_MS });
        await advance(SHORT_MS);
        assert.deepEqual(await store.due(), [two.id]);
        assert.equal((await store.claim(two.id, 'w', LEASE_MS)).answer, 'waiting');
        assert.deepEqual([await store.due(), (await record(store, two.id)).dueAt], [[], undefined]);
        await store.finish(one.id, 1, { status: 'success' });
        assert.deepEqual(await store.due(), [two.id]);
        await claim(store, two.id);
      },
    }),
  ),
  {
    title: 'a message that was held back and then refused ends, and says why',
    async run({ store, advance }) {
      const one = await say(store, 'one', 'replace');
      await claim(store, one.id);
      const two = await say(store, 'two', { policy: 'reject', holdMs: SHORT_MS });
      await advance(SHORT_MS);
      assert.deepEqual(await store.claim(two.id, 'w', LEASE_MS), { answer: 'too-late', status: 'cancelled' });
      assert.equal(await kindOf(store, two), 'rejected');
    },
  },
];
