import assert from 'node:assert/strict';
import { bring, type CaseContext, type ContractCase, claim, create, expire, TENANT, tryClaim } from '../../case.ts';
import { ask, askAndPark, askMore, park, YES } from '../questions/asking.ts';
import { CONSUMER, DAY_MS, drain, finishOne, register, toText } from './feed-reading.ts';

/** What the feed tells of. */
export const feedCases: readonly ContractCase[] = [
  {
    title: 'the feed tells of each end once, with its agent, status and code, however it came about',
    async run(context) {
      const { store } = context;
      const reader = await register(store, ['task.ended']);
      const done = await bring(store, 'success');
      const failed = await create(store);
      await store.finish((await claim(store, failed.id)).by, {
        status: 'failed',
        error: { message: 'x', code: 'E_NO' },
      });
      const plain = await create(store, { conversation: 'c' });
      await store.finish((await claim(store, plain.id)).by, { status: 'failed', error: { message: '"code":"FAKE"' } });
      const unstarted = await create(store);
      await store.cancel({ tenant: TENANT, id: unstarted.id }, { kind: 'deadline', message: '"kind":"fake"' });
      const stopped = await bring(store, 'cancelled');
      const lost = await loseWorkers(context);
      assert.deepEqual(
        (await drain(store, reader)).map(toText).toSorted(),
        [
          `task.ended ${done.id} success`,
          `task.ended ${failed.id} failed E_NO`,
          `task.ended ${plain.id} failed`,
          `task.ended ${unstarted.id} cancelled deadline`,
          `task.ended ${stopped.id} cancelled user`,
          `task.ended ${lost} failed WORKERS_LOST`,
        ].toSorted(),
      );
      assert.deepEqual(await drain(store, reader), []);
    },
  },
  {
    title: 'a task that waited for days is told of like any other',
    async run({ store, advance }) {
      const reader = await register(store, ['task.ended']);
      const parked = await askAndPark(store);
      await advance(5 * DAY_MS);
      await store.feed.take(reader, { limit: 1 });
      for (let i = 0; i < 3; i++) await finishOne(store);
      assert.equal((await drain(store, reader)).length, 3);
      await advance(DAY_MS);
      await store.answer({ tenant: TENANT, id: parked.asked[0]! }, YES);
      await store.finish((await claim(store, parked.id)).by, { status: 'success' });
      assert.deepEqual(
        (await drain(store, reader)).map(({ task }) => task),
        [parked.id],
      );
    },
  },
  {
    title: 'the feed tells of nothing that no consumer wants, and of what came before one registered',
    async run({ store }) {
      await finishOne(store);
      const reader = await register(store, ['pause.started']);
      await finishOne(store);
      await store.pause({ agent: 'writer' }, true);
      await store.pause({ agent: 'writer' }, true);
      await store.pause({ tenant: TENANT }, true);
      await store.pause({ tenant: TENANT }, false);
      const events = await drain(store, reader);
      const shown = events.map(({ kind, tenant, agent = '' }) => [kind, tenant, agent]);
      assert.deepEqual(shown.map(String).toSorted(), ['pause.started,,writer', `pause.started,${TENANT},`]);
      assert.equal(await store.feed.register({ consumer: CONSUMER, kinds: ['task.ended'] }), false);
      const id = await finishOne(store);
      assert.deepEqual(
        (await drain(store, reader)).map(({ task }) => task),
        [id],
      );
    },
  },
  {
    title: 'the feed tells of questions in the order of their task',
    async run({ store, advance }) {
      const reader = await register(store, ['question.asked', 'question.answered', 'question.closed', 'task.ended']);
      const { id, by, asked, ref } = await ask(store, [{}, { expiresMs: 60_000 }]);
      await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
      await advance(60_000);
      await store.get(ref);
      const position = (await store.get(ref))!.position;
      await store.append(by, {
        after: position,
        events: ['done'],
        closes: [
          { id: asked[0]!, why: 'answered' },
          { id: asked[1]!, why: 'journaled' },
        ],
      });
      await askMore(store, by, [{}]);
      await park(store, by);
      await store.cancel(ref);
      await store.finish((await claim(store, id)).by, { status: 'cancelled' });
      assert.deepEqual((await drain(store, reader)).map(toText), [
        `question.asked ${id} .1`,
        `question.asked ${id} .2`,
        `question.answered ${id} .1`,
        `question.closed ${id} .2`,
        `question.asked ${id} .4`,
        `question.closed ${id} .4`,
        `task.ended ${id} cancelled user`,
      ]);
    },
  },
  {
    title: 'the feed tells of conversations that change, and nothing of what was erased',
    async run({ store }) {
      const reader = await register(store, ['conversation.changed', 'task.ended']);
      const { id } = await create(store, { conversation: 'c' });
      await store.finish((await claim(store, id)).by, { status: 'success' });
      const events = await drain(store, reader);
      assert.deepEqual(
        events.map(({ kind, conversation }) => [kind, conversation]),
        [
          ['conversation.changed', 'c'],
          ['task.ended', 'c'],
          ['conversation.changed', 'c'],
        ],
      );
      await finishOne(store);
      const other = await finishOne(store, 'other');
      await store.feed.forget({ tenant: TENANT });
      assert.deepEqual(
        (await drain(store, reader)).map(({ task }) => task),
        [other],
      );
    },
  },
];

/** A task whose workers crash until it fails. */
async function loseWorkers(context: CaseContext): Promise<string> {
  const { store, advance } = context;
  const { id } = await create(store);
  while ((await store.get({ tenant: TENANT, id }))?.endedAt === undefined) {
    await tryClaim(store, id, { leaseMs: 1_000 });
    await expire(context, 1_000);
    await advance(120_000);
  }
  return id;
}
