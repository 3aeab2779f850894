import assert from 'node:assert/strict';
import type { TaskSummary } from '../../../task.ts';
import {
  assertFenced,
  bring,
  type CaseContext,
  type ContractCase,
  claim,
  create,
  expire,
  record,
  SHORT_MS,
  TENANT,
} from '../../case.ts';

/** The head of a task, as a list shows it. */
async function listed(store: CaseContext['store'], id: string): Promise<TaskSummary> {
  const { tasks } = await store.list({ tenant: TENANT });
  return tasks.find((task) => task.id === id) ?? assert.fail(`task ${id} is not listed`);
}

const LONG = 'word '.repeat(100);
/** Names of inputs, with the input and its title. */
const TITLES = {
  'a short text': ['hello', 'hello'],
  'a text of several lines': ['  one\n\ttwo\u2028three\u0000four ', 'one two three four'],
  'a text of any script': ['漢字 🙂 ñ', '漢字 🙂 ñ'],
  'a long text': [LONG, `${LONG.slice(0, 119)}…`],
  'a long text of wide characters': ['🙂'.repeat(200), `${'🙂'.repeat(59)}…`],
  'the message of a user': [{ role: 'user', content: [{ type: 'text', text: LONG }] }, `${LONG.slice(0, 119)}…`],
} as const;

const USED = { turns: 3, calls: 4, usage: { inputTokens: 1_234, outputTokens: 56, isComplete: false } };
const COUNTED = { turns: 1, calls: 0 };

/** What lists show of a task in addition to its status. */
export const headCases: readonly ContractCase[] = [
  ...Object.entries(TITLES).map(
    ([name, [input, title]]): ContractCase => ({
      title: `a list shows ${name} as a title, and so do all other reads`,
      async run({ store }) {
        for (const rest of [{}, { conversation: 'c' }, { key: 'k' }]) {
          const task = await create(store, { input, ...rest });
          const read = [task, await listed(store, task.id), await record(store, task.id)];
          assert.deepEqual(
            read.map((one) => one.title),
            [title, title, title],
          );
        }
      },
    }),
  ),
  {
    title: 'an input without text has no title',
    async run({ store }) {
      for (const input of [null, 7, ' \n', {}, [], { from: 'x'.repeat(100) }, { role: 'user', content: '' }]) {
        const task = await create(store, { input });
        for (const one of [task, await listed(store, task.id)]) assert.ok(!('title' in one), JSON.stringify(input));
      }
    },
  },
  {
    title: 'a worker gets a task with its title, which stays when the task ends',
    async run({ store }) {
      for (const input of ['short', LONG]) {
        const { id, title } = await create(store, { input });
        const taken = await claim(store, id);
        assert.equal(taken.task.title, title);
        await store.finish(taken.by, { status: 'success' });
        assert.equal((await listed(store, id)).title, title);
      }
    },
  },
  {
    title: 'a task that takes over a held message has the title of its own',
    async run({ store }) {
      const first = await create(store, { input: `first ${LONG}`, conversation: 'c', debounceMs: SHORT_MS });
      const second = await create(store, { input: 'second', conversation: 'c', debounceMs: SHORT_MS });
      assert.match((await listed(store, first.id)).title ?? '', /^first word/);
      assert.equal((await listed(store, second.id)).title, 'second');
      assert.equal((await record(store, second.id)).inputs.length, 2);
    },
  },
  {
    title: 'lists and workers see what a task did, as last written',
    async run({ store }) {
      const { id, by } = await bring(store, 'running');
      assert.ok(!('activity' in (await listed(store, id))));
      await store.append(by, { after: 0, events: ['a'], activity: USED });
      await store.append(by, { after: 1, events: ['b'] });
      assert.deepEqual([(await listed(store, id)).activity, (await record(store, id)).activity], [USED, USED]);
      await store.append(by, { after: 2, events: [], activity: COUNTED });
      assert.deepEqual((await listed(store, id)).activity, COUNTED);
    },
  },
  {
    title: 'a batch that arrives twice does not bring back what a later one changed',
    async run({ store }) {
      const { id, by } = await bring(store, 'running');
      const first = { after: 0, events: ['a'], activity: USED };
      await store.append(by, first);
      await store.append(by, first);
      assert.deepEqual((await listed(store, id)).activity, USED);
      await store.append(by, { after: 1, events: [], activity: COUNTED });
      await store.append(by, first);
      assert.deepEqual((await listed(store, id)).activity, COUNTED);
    },
  },
  {
    title: 'a batch that is refused changes no activity',
    options: { maxJournalBytes: 50 },
    async run({ store, advance }) {
      const { id } = await create(store);
      const { by } = await claim(store, id, { leaseMs: SHORT_MS });
      await store.append(by, { after: 0, events: ['a'], activity: COUNTED });
      const more = { ...COUNTED, turns: 99 };
      await assert.rejects(store.append(by, { after: 7, events: ['b'], activity: more }), { code: 'JOURNAL_GAP' });
      const long = 'b'.repeat(100);
      await assert.rejects(store.append(by, { after: 1, events: [long], activity: more }), { code: 'JOURNAL_FULL' });
      await expire({ store, advance }, SHORT_MS);
      await assertFenced(store.append(by, { after: 1, events: ['b'], activity: more }));
      const { by: next } = await claim(store, id);
      await assertFenced(store.append(by, { after: 1, events: ['b'], activity: more }));
      await store.finish(next, { status: 'success' });
      await assertFenced(store.append(next, { after: 1, events: ['b'], activity: more }));
      assert.deepEqual((await listed(store, id)).activity, COUNTED);
    },
  },
  {
    title: 'the next worker gets the counts of the last one, and goes on from them',
    async run({ store, advance }) {
      const { id } = await create(store);
      const { by } = await claim(store, id, { leaseMs: SHORT_MS });
      await store.append(by, { after: 0, events: ['a'], activity: USED });
      await expire({ store, advance }, SHORT_MS);
      const next = await claim(store, id);
      assert.deepEqual([next.task.activity, (await listed(store, id)).activity], [USED, USED]);
      await store.append(next.by, { after: 1, events: ['b'], activity: { ...USED, turns: 4 } });
      assert.deepEqual((await listed(store, id)).activity, { ...USED, turns: 4 });
    },
  },
  {
    title: 'an activity that is not made of counts is refused by name',
    async run({ store }) {
      const { id, by } = await bring(store, 'running');
      for (const turns of [-1, 0.5, Number.NaN, Infinity, '1' as never]) {
        await assert.rejects(store.append(by, { after: 0, events: [], activity: { ...COUNTED, turns } }), /turns/);
      }
      assert.ok(!('activity' in (await listed(store, id))));
    },
  },
];
