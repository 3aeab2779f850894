import assert from 'node:assert/strict';
import { type ContractCase, claim, LEASE_MS, nth, SHORT_MS } from '../../case.ts';
import { CONVERSATION, readReasonKind, say, statuses, taken } from '../../talk.ts';

/** A cancel of a whole conversation: whichever of its parts there are, all of them stop. */
export const conversationCancelCases: readonly ContractCase[] = [
  {
    title: 'a cancel of a conversation ends what waits and stops what runs',
    async run({ store }) {
      const one = await say(store, 'one', 'queue');
      await claim(store, one.id);
      const two = await say(store, 'two', 'queue');
      const three = await say(store, 'three', { debounceMs: SHORT_MS });
      const receipt = await store.cancel(CONVERSATION, { kind: 'user', by: 'ann' });
      assert.equal(receipt.result, 'accepted');
      assert.deepEqual(await statuses(store, [one, two, three]), ['cancelling', 'cancelled', 'cancelled']);
      assert.equal((await store.finish(nth(store, one.id, 1), { status: 'cancelled' })).successor, undefined);
      assert.equal((await store.conversation(CONVERSATION))?.current, undefined);
    },
  },
  {
    title: 'a cancel of a conversation without a debounced message stops what runs and ends what waits',
    async run({ store }) {
      const one = await say(store, 'one', 'queue');
      await claim(store, one.id);
      const waiting = [await say(store, 'two', 'queue'), await say(store, 'three', 'queue')];
      const receipt = await store.cancel(CONVERSATION, { kind: 'budget' });
      assert.deepEqual([receipt.result, 'status' in receipt && receipt.status], ['accepted', 'cancelling']);
      assert.deepEqual(await statuses(store, [one, ...waiting]), ['cancelling', 'cancelled', 'cancelled']);
      assert.deepEqual(
        [await readReasonKind(store, waiting[0]!), await readReasonKind(store, waiting[1]!)],
        ['budget', 'budget'],
      );
      assert.deepEqual((await store.conversation(CONVERSATION))?.waiting, []);
      assert.equal((await store.finish(nth(store, one.id, 1), { status: 'success' })).successor, undefined);
    },
  },
  {
    title: 'a cancel of a conversation with only a running task stops that task',
    async run({ store }) {
      const one = await say(store, 'one', 'queue');
      await claim(store, one.id);
      const receipt = await store.cancel(CONVERSATION, {}, { mode: 'now' });
      assert.ok(receipt.result === 'accepted' && receipt.status === 'cancelling' && receipt.level === 'abort');
      assert.equal((await store.cancel(CONVERSATION, {}, { mode: 'kill' })).result, 'escalated');
      assert.equal((await store.conversation(CONVERSATION))?.current, one.id);
      await store.finish(nth(store, one.id, 1), { status: 'cancelled' });
      assert.deepEqual(await store.cancel(CONVERSATION), { result: 'not-found' });
    },
  },
  {
    title: 'a cancel of a conversation with only a task that has not started ends that task',
    async run({ store }) {
      const one = await say(store, 'one', 'queue');
      const receipt = await store.cancel(CONVERSATION);
      assert.deepEqual([receipt.result, 'status' in receipt && receipt.status], ['accepted', 'cancelled']);
      assert.deepEqual(await statuses(store, [one]), ['cancelled']);
      assert.equal((await store.conversation(CONVERSATION))?.current, undefined);
      assert.deepEqual(await taken(store), []);
    },
  },
  {
    title: 'a cancel of a conversation with only a debounced message ends that message',
    async run({ store, advance }) {
      const one = await say(store, 'one', { debounceMs: LEASE_MS });
      const two = await say(store, 'two', { debounceMs: LEASE_MS });
      const receipt = await store.cancel(CONVERSATION, { kind: 'user', by: 'ann' });
      assert.deepEqual([receipt.result, 'status' in receipt && receipt.status], ['accepted', 'cancelled']);
      assert.deepEqual([await readReasonKind(store, one), await readReasonKind(store, two)], ['merged', 'user']);
      assert.equal((await store.conversation(CONVERSATION))?.debouncing, undefined);
      await advance(LEASE_MS);
      assert.deepEqual(await taken(store), []);
      const next = await say(store, 'three', 'replace');
      assert.deepEqual((await claim(store, next.id)).inputs, ['three']);
    },
  },
  {
    title: 'a cancel of a conversation with a running task and a debounced message stops both',
    async run({ store, advance }) {
      const one = await say(store, 'one', 'queue');
      await claim(store, one.id);
      const two = await say(store, 'two', { policy: 'queue', debounceMs: SHORT_MS });
      assert.equal((await store.cancel(CONVERSATION)).result, 'accepted');
      assert.deepEqual(await statuses(store, [one, two]), ['cancelling', 'cancelled']);
      await advance(SHORT_MS);
      assert.deepEqual(await taken(store), []);
      assert.equal((await store.finish(nth(store, one.id, 1), { status: 'cancelled' })).successor, undefined);
    },
  },
  {
    title: 'a cancel of a conversation without active tasks returns unknown',
    async run({ store }) {
      assert.deepEqual(await store.cancel(CONVERSATION), { result: 'not-found' });
    },
  },
];
