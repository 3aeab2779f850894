import assert from 'node:assert/strict';
import type { TaskStore } from '../../../store.ts';
import type { TaskOutcome } from '../../../task.ts';
import { bring, type ContractCase, claim, expire, nth, SHORT_MS } from '../../case.ts';
import { CONVERSATION, say } from '../../talk.ts';

const readHistory = async (store: TaskStore): Promise<unknown> => (await store.conversation(CONVERSATION))?.history;

/** One message of the conversation, answered; the history that its worker got. */
async function answer(store: TaskStore, outcome: Omit<TaskOutcome, 'status'>): Promise<unknown> {
  const { id } = await say(store, 'hello', 'queue');
  const { history } = await claim(store, id);
  await store.finish(nth(store, id, 1), { status: 'success', ...outcome });
  return history;
}

/** The messages of a conversation outlive its tasks. */
export const historyCases: readonly ContractCase[] = [
  {
    title: 'messages of a task are added to the history, and the next task gets all of them in order',
    async run({ store }) {
      assert.deepEqual(await answer(store, { newMessages: ['a', { b: null }] }), []);
      assert.deepEqual(await answer(store, { newMessages: [] }), ['a', { b: null }]);
      assert.deepEqual(await answer(store, { newMessages: [['c'], 'd \u0000 ñ'] }), ['a', { b: null }]);
      assert.deepEqual(await readHistory(store), ['a', { b: null }, ['c'], 'd \u0000 ñ']);
    },
  },
  {
    title: 'a complete history replaces the old one, and new messages are added to it',
    async run({ store }) {
      await answer(store, { newMessages: ['a', 'b', 'c'] });
      await answer(store, { history: ['in short'] });
      assert.deepEqual(await readHistory(store), ['in short']);
      await answer(store, { history: ['shorter'], newMessages: ['and more'] });
      assert.deepEqual(await readHistory(store), ['shorter', 'and more']);
      await answer(store, { history: [] });
      assert.deepEqual(await readHistory(store), []);
    },
  },
  {
    title: 'a task without messages does not change the history',
    async run({ store }) {
      await answer(store, { newMessages: ['a'] });
      await answer(store, {});
      assert.deepEqual(await readHistory(store), ['a']);
    },
  },
  {
    title: 'messages that are sent again because a response was lost are stored once, and not with the task',
    async run({ store }) {
      const { id, tenant } = await say(store, 'hello', 'queue');
      await claim(store, id);
      for (let i = 0; i < 3; i++) await store.finish(nth(store, id, 1), { status: 'success', newMessages: ['a'] });
      assert.deepEqual(await readHistory(store), ['a']);
      assert.deepEqual((await store.get({ tenant, id }))?.outcome, { status: 'success' });
    },
  },
  {
    title: 'a task without a conversation has no history to add to',
    async run({ store }) {
      const { ref, by } = await bring(store, 'running');
      await store.finish(by, { status: 'success', newMessages: ['a'], history: ['b'] });
      assert.deepEqual((await store.get(ref))?.outcome, { status: 'success' });
    },
  },
  {
    title: 'a long history keeps its order',
    async run({ store }) {
      const messages = Array.from({ length: 500 }, (_, i) => i);
      for (let i = 0; i < 4; i++) await answer(store, { newMessages: messages.map((n) => n + 500 * i) });
      const all = (await readHistory(store)) as number[];
      assert.equal(all.length, 2_000);
      assert.ok(all.every((n, i) => n === i));
    },
  },
  {
    title: 'a worker that lost a task cannot add to the history',
    async run({ store, advance }) {
      const { id } = await say(store, 'hello', 'queue');
      await claim(store, id, { leaseMs: SHORT_MS });
      await expire({ store, advance }, SHORT_MS);
      await claim(store, id, { worker: 'w2' });
      await assert.rejects(store.finish(nth(store, id, 1), { status: 'success', newMessages: ['late'] }), {
        code: 'LEASE_LOST',
      });
      await store.finish(nth(store, id, 2), { status: 'success', newMessages: ['in time'] });
      assert.deepEqual(await readHistory(store), ['in time']);
    },
  },
];
