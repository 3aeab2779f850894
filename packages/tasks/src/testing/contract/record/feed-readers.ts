import assert from 'node:assert/strict';
import { type ContractCase, LEASE_MS, TENANT } from '../../case.ts';
import { CONSUMER, DAY_MS, drain, finishOne, newReader, pages, register } from './feed-reading.ts';

/** How consumers read the feed. */
export const feedReaderCases: readonly ContractCase[] = [
  {
    title: 'no one is told of the ends of tasks that Whoa itself creates',
    async run({ store }) {
      const reader = await register(store, ['task.ended']);
      await finishOne(store, 'whoa.webhooks');
      const id = await finishOne(store);
      assert.deepEqual(
        (await drain(store, reader)).map(({ task }) => task),
        [id],
      );
    },
  },
  {
    title: 'what a reader of the feed did not move over comes again with the same ids, and then never',
    async run({ store }) {
      const reader = await register(store, ['task.ended']);
      await finishOne(store);
      const [first] = await pages(store, reader);
      const [again] = await pages(store, reader);
      assert.deepEqual(again!.events, first!.events);
      const { part, version, upTo } = first!;
      assert.deepEqual(await store.feed.move(reader, [{ part, version, upTo, adds: { ended: 1 } }]), [part]);
      // Its response was lost.
      assert.deepEqual(await store.feed.move(reader, [{ part, version, upTo, adds: { ended: 1 } }]), []);
      assert.deepEqual(await store.feed.totals(), { ended: 1 });
      assert.deepEqual(await pages(store, reader), []);
    },
  },
  {
    title: 'one reader has a part of the feed, until its lease ends or it leaves; the other is fenced',
    async run({ store, advance }) {
      const reader = await register(store, ['task.ended']);
      await finishOne(store);
      const [page] = await pages(store, reader);
      const other = newReader();
      const waits = await store.feed.take(other, { limit: 1 });
      assert.deepEqual(waits.result === 'taken' && [waits.pages, waits.holds, waits.heldUntil! > waits.now], [
        [],
        0,
        true,
      ]);
      await advance(LEASE_MS);
      const [theirs] = await pages(store, other);
      assert.deepEqual(theirs!.events, page!.events);
      const { part, version, upTo } = page!;
      assert.deepEqual(await store.feed.move(reader, [{ part, version, upTo, adds: { ended: 1 } }]), []);
      assert.deepEqual(await store.feed.totals(), {});
      await store.feed.leave(reader);
      await store.feed.leave(other);
      assert.equal((await drain(store, reader)).length, 1);
    },
  },
  {
    title: 'a reader of the feed goes through a long page in pieces, and each consumer has its own cursor',
    async run({ store }) {
      const readers = [await register(store, ['task.ended']), await register(store, ['task.ended'], 'others')];
      const ids: string[] = [];
      for (let i = 0; i < 7; i++) ids.push(await finishOne(store));
      for (const reader of readers)
        assert.deepEqual(
          (await drain(store, reader, 3)).map(({ task }) => task),
          ids,
        );
      const oldest = await store.feed.ages();
      assert.deepEqual(oldest, [{ consumer: 'others' }, { consumer: CONSUMER }]);
      const last = await finishOne(store);
      await drain(store, readers[0]!);
      const [others, own] = await store.feed.ages();
      assert.equal(own!.oldestAt, undefined);
      assert.equal(others!.oldestAt, (await store.get({ tenant: TENANT, id: last }))!.endedAt);
    },
  },
  {
    title: 'the feed loses nothing when it is purged, not even its newest event',
    async run({ store }) {
      const reader = await register(store, ['task.ended']);
      for (let i = 0; i < 3; i++) {
        const id = await finishOne(store);
        await store.feed.purge();
        assert.deepEqual(
          (await drain(store, reader)).map(({ task }) => task),
          [id],
        );
        await store.feed.purge();
      }
    },
  },
  {
    title: 'a consumer that is a week behind is told of the gap, and one that no one reads for is removed',
    async run({ store, advance }) {
      const reader = await register(store, ['task.ended']);
      await finishOne(store);
      await advance(6 * DAY_MS);
      await pages(store, reader);
      await store.feed.purge();
      await advance(DAY_MS + 1);
      await pages(store, reader);
      await store.feed.purge();
      const id = await finishOne(store);
      const found = await pages(store, reader);
      assert.ok(found.some(({ missedSince }) => missedSince !== undefined));
      assert.deepEqual(
        (await drain(store, reader)).map(({ task }) => task),
        [id],
      );
      assert.deepEqual(await pages(store, reader), []);
      await advance(7 * DAY_MS + 1);
      await store.feed.purge();
      assert.deepEqual(await store.feed.take(reader, { limit: 1 }), { result: 'gone' });
      assert.equal(await store.feed.register({ consumer: CONSUMER, kinds: ['task.ended'] }), true);
    },
  },
  {
    title: 'the process that reads a part is told of what is new, and those that wait that it is free',
    async run({ store }) {
      const told = Promise.withResolvers<readonly number[] | undefined>();
      const watching = await store.watch({ feed: CONSUMER }, (hint) => {
        if (hint.type === 'feed') told.resolve([hint.part]);
        if (hint.type === 'resync') told.resolve(undefined);
      });
      const reader = await register(store, ['task.ended']);
      await store.feed.take(reader, { limit: 1 });
      await finishOne(store);
      const parts = await told.promise;
      const taken = await store.feed.take(reader, { limit: 1, ...(parts && { parts }) });
      assert.equal(taken.result === 'taken' && taken.pages.length, 1);
      await watching[Symbol.asyncDispose]();
    },
  },
];
