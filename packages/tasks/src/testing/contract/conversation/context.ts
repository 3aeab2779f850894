import assert from 'node:assert/strict';
import { type ContractCase, claim, create, record, SHORT_MS } from '../../case.ts';
import { readReasonKind, say, take } from '../../talk.ts';

const ANN = { user: 'ann', tags: ['a\u0000b', '…'], locale: { language: 'de', region: 'CH' } };
/** The same context, with its fields in another order. */
const ANN_AGAIN = { locale: { region: 'CH', language: 'de' }, tags: ['a\u0000b', '…'], user: 'ann' };
const BOB = { user: 'bob' };

/** Whose task it is. */
export const contextCases: readonly ContractCase[] = [
  {
    title: 'a context is kept with its task and delivered to its worker; lists do not have it',
    async run({ store }) {
      const alone = await create(store, { context: ANN });
      const talking = await say(store, 'one', { context: ANN });
      for (const { id, context } of [alone, talking]) {
        assert.deepEqual(context, ANN);
        assert.deepEqual((await record(store, id)).context, ANN);
        assert.deepEqual((await claim(store, id)).context, ANN);
        assert.deepEqual((await claim(store, (await create(store)).id)).context, undefined);
      }
      const { tasks } = await store.list({ tenant: 'acme' });
      assert.ok(tasks.length === 4 && tasks.every((task) => !('context' in task)));
    },
  },
  {
    title: 'a context is delivered with a task that is taken',
    async run({ store }) {
      const [{ id }] = [await create(store, { context: ANN }), await create(store)];
      const { tasks } = await take(store);
      for (const { task, load } of tasks) assert.deepEqual(load?.context, task.id === id ? ANN : undefined);
      assert.equal(tasks.length, 2);
    },
  },
  {
    title: 'a context that is not plain data, or too large, is refused by name, and leaves nothing behind',
    async run({ store }) {
      const large = { text: 'ñ'.repeat(8 * 1024) };
      const cyclic: Record<string, unknown> = {};
      cyclic['self'] = cyclic;
      const odd = [{ at: new Date() }, { f: () => {} }, [1], 'ann', null, { n: Number.NaN }, { n: 1n }, cyclic, large];
      for (const context of odd) {
        await assert.rejects(create(store, { context: context as never }), { name: 'SettingsError', field: 'context' });
      }
      assert.equal((await store.list({ tenant: 'acme' })).tasks.length, 0);
      const fits = { text: 'ñ'.repeat(8 * 1024 - 6) };
      assert.deepEqual((await claim(store, (await create(store, { context: fits as never })).id)).context, fits);
    },
  },
  {
    title: 'messages that are held back are merged only if their contexts are equal',
    async run({ store, advance }) {
      const one = await say(store, 'one', { debounceMs: SHORT_MS, context: ANN, policy: 'queue' });
      const two = await say(store, 'two', { debounceMs: SHORT_MS, context: ANN_AGAIN, policy: 'queue' });
      const three = await say(store, 'three', { debounceMs: SHORT_MS, context: BOB, policy: 'queue' });
      const four = await say(store, 'four', { debounceMs: SHORT_MS, policy: 'queue' });
      assert.deepEqual([await readReasonKind(store, one), await readReasonKind(store, two)], ['merged', undefined]);
      const first = await claim(store, two.id);
      assert.deepEqual([first.inputs, first.context], [['one', 'two'], ANN]);
      await store.finish(first.by, { status: 'success' });
      const second = await claim(store, three.id);
      assert.deepEqual([second.inputs, second.context], [['three'], BOB]);
      await store.finish(second.by, { status: 'success' });
      await advance(SHORT_MS);
      const third = await claim(store, four.id);
      assert.deepEqual([third.inputs, third.context], [['four'], undefined]);
    },
  },
  {
    title: 'a message that is not held back lets those of another context go first',
    async run({ store }) {
      const one = await say(store, 'one', { debounceMs: SHORT_MS, context: ANN, policy: 'queue' });
      const two = await say(store, 'two', { context: BOB, policy: 'queue' });
      const first = await claim(store, one.id);
      assert.deepEqual([first.inputs, first.context], [['one'], ANN]);
      await store.finish(first.by, { status: 'success' });
      assert.deepEqual((await claim(store, two.id)).inputs, ['two']);
    },
  },
  {
    title: 'a steering message of another context waits instead',
    async run({ store }) {
      const one = await say(store, 'one', { context: ANN });
      const { by } = await claim(store, one.id);
      const two = await say(store, 'two', { policy: 'steer', context: BOB });
      const three = await say(store, 'three', { policy: 'steer', context: ANN_AGAIN });
      assert.deepEqual([two.steered, three.steered], [undefined, one.id]);
      const { commands } = await record(store, one.id);
      assert.deepEqual(
        commands.map((command) => command.type === 'steer' && command.message),
        ['three'],
      );
      await store.finish(by, { status: 'success' });
      // What was sent to the run and not read comes first.
      const next = await claim(store, three.id);
      await store.finish(next.by, { status: 'success' });
      assert.deepEqual((await claim(store, two.id)).context, BOB);
    },
  },
];
