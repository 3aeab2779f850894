import assert from 'node:assert/strict';
import { LIMITS } from '../../../ledger/rules/rules.ts';
import { type ContractCase, claim, create, LEASE_MS, record, SHORT_MS, tryClaim } from '../../case.ts';
import { CONVERSATION, readReasonKind, say, taken } from '../../talk.ts';

/** Messages that are held back for a moment, in case more follow. */
export const holdCases: readonly ContractCase[] = [
  {
    title: 'a message that is held back cannot be claimed before its time',
    async run({ store, advance }) {
      const one = await say(store, 'one', { debounceMs: SHORT_MS });
      const early = await tryClaim(store, one.id, { worker: 'w' });
      assert.ok(early.result === 'waiting' && early.until !== undefined);
      await advance(SHORT_MS);
      await claim(store, one.id);
    },
  },
  {
    title: 'a message that is held back has no time at which it can be claimed while its tenant is paused',
    async run({ store }) {
      const one = await say(store, 'one', { debounceMs: SHORT_MS, preferredWorker: 'w' });
      await store.pause({ tenant: one.tenant }, true);
      assert.deepEqual(await tryClaim(store, one.id, { worker: 'w' }), { result: 'waiting' });
      await store.pause({ tenant: one.tenant }, false);
      const answer = await tryClaim(store, one.id, { worker: 'w' });
      assert.ok(answer.result === 'waiting' && answer.until === one.stageAt);
    },
  },
  {
    title: 'a message that was merged with others has their inputs, and they have none',
    async run({ store }) {
      const one = await say(store, 'one', { debounceMs: SHORT_MS });
      const two = await say(store, 'two', { debounceMs: SHORT_MS });
      assert.deepEqual(
        [(await record(store, one.id)).inputs, (await record(store, two.id)).inputs],
        [[], ['one', 'two']],
      );
    },
  },
  {
    title: 'messages beyond the limit for merging are refused',
    async run({ store }) {
      for (let i = 0; i < LIMITS.maxDebounced; i++) await say(store, `${i}`, { debounceMs: LEASE_MS });
      const receipt = await store.create({ ...CONVERSATION, agent: 'assistant', input: 'x', debounceMs: LEASE_MS });
      assert.equal(receipt.result, 'full');
    },
  },
  {
    title: 'messages in quick succession become one task, and the last one gets the answer',
    async run({ store, advance }) {
      const one = await say(store, 'one', { debounceMs: SHORT_MS });
      const two = await say(store, 'two', { debounceMs: SHORT_MS });
      assert.equal(await readReasonKind(store, one), 'merged');
      await advance(SHORT_MS);
      assert.deepEqual((await claim(store, two.id)).inputs, ['one', 'two']);
    },
  },
  {
    title: 'a message that is not held back is merged with those that are',
    async run({ store }) {
      await say(store, 'one', { debounceMs: SHORT_MS });
      const two = await say(store, 'two', 'replace');
      assert.deepEqual((await claim(store, two.id)).inputs, ['one', 'two']);
    },
  },
  {
    title: 'a message that is held back does not affect the running task before its time',
    async run({ store, advance }) {
      const one = await say(store, 'one', 'replace');
      await claim(store, one.id);
      const two = await say(store, 'two', { debounceMs: SHORT_MS });
      assert.equal((await record(store, one.id)).status, 'running');
      await advance(SHORT_MS);
      assert.equal((await tryClaim(store, two.id, { worker: 'w' })).result, 'waiting');
      assert.equal((await record(store, one.id)).status, 'cancelling');
    },
  },
  ...(['replace', 'queue', 'steer'] as const).map(
    (policy): ContractCase => ({
      title: `a message that was held back and has to wait (${policy}) is taken when its turn comes, not before`,
      async run({ store, advance }) {
        const one = await say(store, 'one', 'replace');
        const { by } = await claim(store, one.id);
        const two = await say(store, 'two', { policy, debounceMs: SHORT_MS });
        assert.deepEqual(await taken(store), []);
        await advance(SHORT_MS);
        assert.deepEqual(await taken(store), []);
        assert.equal((await record(store, two.id)).stage, 'queued');
        await store.finish(by, { status: 'success' });
        assert.deepEqual(await taken(store), [two.id]);
      },
    }),
  ),
  {
    title: 'a task that is due together with the message that replaces it has ended, and is not taken',
    async run({ store, advance }) {
      const { createdAt } = await create(store);
      await taken(store);
      const one = await create(store, { conversation: CONVERSATION.conversation, notBefore: createdAt + 2 * SHORT_MS });
      const two = await say(store, 'two', { policy: 'replace', debounceMs: SHORT_MS });
      await advance(3 * SHORT_MS);
      assert.deepEqual(await taken(store), [two.id]);
      assert.deepEqual(
        [(await record(store, one.id)).status, await readReasonKind(store, one)],
        ['cancelled', 'superseded'],
      );
    },
  },
  {
    title: 'a message that was held back and then refused ends with a reason',
    async run({ store, advance }) {
      const one = await say(store, 'one', 'replace');
      await claim(store, one.id);
      const two = await say(store, 'two', { policy: 'reject', debounceMs: SHORT_MS });
      await advance(SHORT_MS);
      assert.deepEqual(await tryClaim(store, two.id, { worker: 'w' }), { result: 'too-late', status: 'cancelled' });
      assert.equal(await readReasonKind(store, two), 'rejected');
    },
  },
  {
    title: 'a conversation has changed when a message that was held back is refused',
    async run({ store, advance }) {
      const one = await say(store, 'one', 'replace');
      await claim(store, one.id);
      const two = await say(store, 'two', { policy: 'reject', debounceMs: SHORT_MS });
      const before = (await store.conversation(CONVERSATION))!.changedAt;
      await advance(SHORT_MS);
      await tryClaim(store, two.id, { worker: 'w' });
      assert.ok((await store.conversation(CONVERSATION))!.changedAt >= before + SHORT_MS);
    },
  },
  {
    title: 'a message that a full queue refuses does not affect those that are held back',
    async run({ store }) {
      await say(store, 'current', 'queue');
      for (let i = 0; i < LIMITS.maxQueued; i++) await say(store, `${i}`, 'queue');
      const held = await say(store, 'held', { policy: 'queue', debounceMs: LEASE_MS });
      const refused = { ...CONVERSATION, agent: 'assistant', input: 'too many' };
      for (const policy of ['queue', 'steer'] as const) {
        const full = { result: 'full', what: 'queue', limit: LIMITS.maxQueued };
        assert.deepEqual(await store.create(refused, { policy }), full);
      }
      assert.equal((await store.conversation(CONVERSATION))?.debouncing, held.id);
      const { status, inputs } = await record(store, held.id);
      assert.deepEqual({ status, inputs }, { status: 'init', inputs: ['held'] });
    },
  },
];
