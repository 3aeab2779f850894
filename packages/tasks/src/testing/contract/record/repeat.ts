import assert from 'node:assert/strict';
import type { TaskStore } from '../../../store.ts';
import { type Brought, bring, type ContractCase, claim, create, nth, record, TENANT, tryClaim } from '../../case.ts';
import { CONVERSATION, say, statuses } from '../../talk.ts';
import { twice } from './nonces.ts';

const STEER = { type: 'steer', message: 'be brief' } as const;

interface Repeat {
  readonly status: 'init' | 'running';
  readonly ask: (store: TaskStore, task: Brought) => Promise<unknown>;
  readonly answers: readonly [string, string];
}

const REPEATS: Record<string, Repeat> = {
  'a claim': {
    status: 'init',
    ask: (store, { id }) => tryClaim(store, id, { session: 'one session', claim: 'one claim' }),
    answers: ['claimed', 'claimed'],
  },
  'a cancel before the start': {
    status: 'init',
    ask: (store, { ref }) => store.cancel(ref, { by: 'ann' }),
    answers: ['accepted', 'too-late'],
  },
  'a cancel': {
    status: 'running',
    ask: (store, { ref }) => store.cancel(ref, { by: 'ann' }),
    answers: ['accepted', 'unchanged'],
  },
  'a cancel with undo': {
    status: 'running',
    ask: (store, { ref }) => store.cancel(ref, { by: 'ann' }, { mode: 'kill', undo: true }),
    answers: ['accepted', 'unchanged'],
  },
  'an append': {
    status: 'running',
    ask: (store, { by }) => store.append(by, { after: 0, events: ['a', 'b'], done: [1] }),
    answers: ['orders', 'orders'],
  },
  'a release': {
    status: 'running',
    ask: (store, { by }) => store.release(by),
    answers: ['released', 'unchanged'],
  },
  'a delayed release': {
    status: 'running',
    ask: (store, { by }) => store.release(by, { delayMs: 5_000 }),
    answers: ['released', 'unchanged'],
  },
  'a finish': {
    status: 'running',
    ask: (store, { by }) => store.finish(by, { status: 'success', answer: 'done' }),
    answers: ['finished', 'unchanged'],
  },
};

/** Moves that need no nonce: the epoch, the position or the status tells that they have been made. */
const operationCases: readonly ContractCase[] = Object.entries(REPEATS).map(
  ([name, { status, ask, answers }]): ContractCase => ({
    title: `${name} that is repeated answers ${answers[1]} and changes nothing more`,
    async run({ store, advance }) {
      const task = await bring(store, status);
      await store.send(task.ref, STEER);
      const first = (await ask(store, task)) as { result?: string };
      const before = await record(store, task.id);
      const journal = await store.read(task.ref);
      await advance(1);
      const again = (await ask(store, task)) as { result?: string };
      assert.deepEqual([first.result ?? 'orders', again.result ?? 'orders'], answers);
      assert.deepEqual(await record(store, task.id), before);
      assert.deepEqual(await store.read(task.ref), journal);
    },
  }),
);

const conversationCases: readonly ContractCase[] = [
  {
    title: 'a repeated finish wakes no worker twice and does not change the history',
    async run({ store }) {
      const one = await say(store, 'one', 'replace');
      await claim(store, one.id);
      const [two, three] = [await say(store, 'two', 'queue'), await say(store, 'three', 'queue')];
      const finish = () => store.finish(nth(store, one.id, 1), { status: 'success', history: ['one'] });
      assert.equal((await finish()).successor, two.id);
      await claim(store, two.id);
      await store.finish(nth(store, two.id, 1), { status: 'success', history: ['one', 'two'] });
      assert.deepEqual(await finish(), { result: 'unchanged', status: 'success' });
      const { current, history } = (await store.conversation(CONVERSATION))!;
      assert.deepEqual([current, history], [three.id, ['one', 'two']]);
    },
  },
  {
    title: 'a release that is repeated after another worker took the task is fenced',
    async run({ store }) {
      const { id, by } = await bring(store, 'running');
      await store.release(by);
      await claim(store, id, { worker: 'w2' });
      const before = await record(store, id);
      await assert.rejects(store.release(by), { code: 'LEASE_LOST' });
      assert.deepEqual(await record(store, id), before);
    },
  },
  {
    title: 'a batch that is repeated after its steer was confirmed ends no other message',
    async run({ store }) {
      const one = await say(store, 'one', 'replace');
      await claim(store, one.id);
      const two = await say(store, 'two', 'steer');
      const three = await say(store, 'three', 'steer');
      await twice(() => store.append(nth(store, one.id, 1), { after: 0, events: ['heard two'], done: [1] }));
      assert.deepEqual(await statuses(store, [two, three]), ['cancelled', 'init']);
      assert.equal((await store.read({ tenant: TENANT, id: one.id })).length, 1);
      assert.equal((await create(store)).status, 'init');
    },
  },
];

export const repeatCases: readonly ContractCase[] = [...operationCases, ...conversationCases];
