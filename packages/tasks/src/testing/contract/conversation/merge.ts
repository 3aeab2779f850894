import assert from 'node:assert/strict';
import { LIMITS } from '../../../ledger/rules/rules.ts';
import { type ContractCase, claim, record, SHORT_MS } from '../../case.ts';
import { CONVERSATION, readReasonKind, say, take, taken } from '../../talk.ts';

/** Messages that wait together: one task answers them. */
export const mergeCases: readonly ContractCase[] = [
  {
    title: 'messages that are sent with `merge` while a task runs become one task, and the last one gets the answer',
    async run({ store }) {
      const first = await claim(store, (await say(store, 'one', 'merge')).id);
      const two = await say(store, 'two', 'merge');
      const three = await say(store, 'three', 'merge');
      const four = await say(store, `four ${'.'.repeat(100)}`, 'merge');
      assert.deepEqual(four.inputs, ['two', 'three', four.title]);
      for (const { id, title } of [two, three]) {
        const { inputs, title: kept } = await record(store, id);
        assert.deepEqual([inputs, kept], [[], title]);
      }
      assert.deepEqual([await readReasonKind(store, two), await readReasonKind(store, three)], ['merged', 'merged']);
      const { waiting } = (await store.conversation(CONVERSATION))!;
      assert.deepEqual(waiting, [four.id]);
      await store.finish(first.by, { status: 'success' });
      const { tasks } = await take(store);
      assert.deepEqual(tasks[0]?.load?.inputs, four.inputs);
    },
  },
  {
    title: 'a message is merged with the last that waits, also if that was queued, and keeps its place',
    async run({ store }) {
      const first = await claim(store, (await say(store, 'one', 'queue')).id);
      const two = await say(store, 'two', 'queue');
      await say(store, 'three', 'queue');
      const four = await say(store, 'four', 'merge');
      const five = await say(store, 'five', 'queue');
      assert.deepEqual((await store.conversation(CONVERSATION))?.waiting, [two.id, four.id, five.id]);
      assert.deepEqual((await record(store, four.id)).inputs, ['three', 'four']);
      await store.finish(first.by, { status: 'success' });
      assert.deepEqual(await taken(store), [two.id]);
    },
  },
  {
    title: 'messages of another context or agent, and messages passed to the current task, are not merged',
    async run({ store }) {
      await claim(store, (await say(store, 'one', 'merge')).id);
      const all = [
        await say(store, 'steered', 'steer'),
        await say(store, 'two', 'merge'),
        await say(store, 'three', { policy: 'merge', context: { user: 'ann' } }),
        await say(store, 'four', { policy: 'merge', agent: 'other', context: { user: 'ann' } }),
        await say(store, 'five', { policy: 'merge', agent: 'other' }),
      ];
      assert.deepEqual(
        (await store.conversation(CONVERSATION))?.waiting,
        all.map(({ id }) => id),
      );
    },
  },
  {
    title: 'messages that were held back together are merged with those that wait',
    async run({ store, advance }) {
      await claim(store, (await say(store, 'one', 'merge')).id);
      await say(store, 'two', 'merge');
      await say(store, 'three', { policy: 'merge', debounceMs: SHORT_MS });
      const four = await say(store, 'four', { policy: 'merge', debounceMs: SHORT_MS });
      await advance(SHORT_MS);
      assert.deepEqual(await taken(store), []);
      assert.deepEqual((await record(store, four.id)).inputs, ['two', 'three', 'four']);
      assert.deepEqual((await store.conversation(CONVERSATION))?.waiting, [four.id]);
    },
  },
  {
    title: 'beyond the limit for merging a message waits alone',
    async run({ store, advance }) {
      await claim(store, (await say(store, 'one', 'merge')).id);
      for (let i = 1; i < LIMITS.maxDebounced; i++) await say(store, `${i}`, { policy: 'merge', debounceMs: SHORT_MS });
      await advance(SHORT_MS);
      const last = await say(store, 'last', 'merge');
      assert.equal((await record(store, last.id)).inputs.length, LIMITS.maxDebounced);
      const alone = await say(store, 'alone', 'merge');
      assert.deepEqual(alone.inputs, ['alone']);
      assert.deepEqual((await store.conversation(CONVERSATION))?.waiting, [last.id, alone.id]);
    },
  },
  ...[0, SHORT_MS].map(
    (debounceMs): ContractCase => ({
      title: `messages that were taken over are kept when their key is used again, hold ${debounceMs} ms`,
      async run({ store }) {
        await claim(store, (await say(store, 'one', 'queue')).id);
        const long = 'x'.repeat(100);
        for (const input of ['two', long]) {
          const keyed = { ...CONVERSATION, agent: 'assistant', key: `key ${input}` };
          const old = await store.create({ ...keyed, input, debounceMs }, { policy: 'queue' });
          assert.ok(old.result === 'created');
          const newer = await say(store, 'newer', { policy: 'merge', debounceMs });
          assert.deepEqual(newer.inputs.slice(-2), [input, 'newer']);
          await store.remove(old.task);
          const again = await store.create({ ...keyed, input: 'again' }, { policy: 'queue' });
          assert.ok(again.result === 'created');
          const inputs = debounceMs === 0 ? ['again'] : [...newer.inputs, 'again'];
          assert.deepEqual(again.task.inputs, inputs);
          await store.cancel(again.task);
          await store.remove(again.task);
          assert.deepEqual((await record(store, newer.id)).inputs, debounceMs === 0 ? newer.inputs : []);
        }
      },
    }),
  ),
  {
    title: 'a merge whose response was lost is answered the same when it is repeated',
    async run({ store }) {
      await claim(store, (await say(store, 'one', 'merge')).id);
      await say(store, 'two', 'merge');
      const asked = { ...CONVERSATION, agent: 'assistant', input: 'three' };
      const receipt = await store.create(asked, { policy: 'merge', nonce: 'n' });
      assert.deepEqual(await store.create(asked, { policy: 'merge', nonce: 'n' }), receipt);
    },
  },
];
