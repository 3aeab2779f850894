import assert from 'node:assert/strict';
import type { Hint } from '../../../store.ts';
import {
  bring,
  type ContractCase,
  claim,
  create,
  expire,
  nth,
  ordersFor,
  record,
  SHORT_MS,
  TENANT,
} from '../../case.ts';

const events = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);

/** The journal: ordered, gapless, never twice. */
export const journalCases: readonly ContractCase[] = [
  {
    title: 'entries come back in order, with positions from 1, the epoch and the time',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      const { epoch } = by;
      const { now } = await store.append(by, { after: 0, events: ['a', { b: 1 }] });
      const { claimHash } = await record(store, id);
      assert.deepEqual(await store.read(ref), [
        { position: 1, epoch, at: now, event: 'a', claimHash, said: 1 },
        { position: 2, epoch, at: now, event: { b: 1 }, claimHash, said: 2 },
      ]);
      assert.equal((await record(store, id)).position, 2);
    },
  },
  {
    title: 'each entry keeps how much its claim had said, and which claim that was',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      const first = await record(store, id);
      await store.append(by, { after: 0, events: ['a', 'b'], said: [7, 9] });
      await store.append(by, { after: 2, events: ['c'], said: [20], replaces: [2], done: [] });
      await store.release(by);
      const second = await claim(store, id);
      assert.notEqual(second.task.claimHash, first.claimHash);
      await store.append(second.by, { after: 3, events: ['d'], said: [2] });
      await store.finish(second.by, { status: 'success' });
      assert.deepEqual(
        (await store.read(ref)).map(({ claimHash, said }) => [claimHash, said]),
        [
          [first.claimHash, 7],
          [first.claimHash, 20],
          [second.task.claimHash, 2],
        ],
      );
      assert.equal((await record(store, id)).claimHash, second.task.claimHash);
      assert.doesNotMatch(JSON.stringify([await store.read(ref), await record(store, id)]), new RegExp(by.claim));
    },
  },
  {
    title: 'a batch that arrives twice is written once',
    async run({ store }) {
      const { ref, by } = await bring(store, 'running');
      for (let i = 0; i < 3; i++) await store.append(by, { after: 0, events: ['a', 'b'] });
      assert.deepEqual(
        (await store.read(ref)).map(({ event }) => event),
        ['a', 'b'],
      );
    },
  },
  {
    title: 'a batch that leaves a gap is refused and nothing is written',
    async run({ store }) {
      const { ref, by } = await bring(store, 'running');
      await assert.rejects(store.append(by, { after: 5, events: ['x'] }), { code: 'JOURNAL_GAP' });
      assert.deepEqual(await store.read(ref), []);
    },
  },
  {
    title: 'an empty batch writes nothing and returns orders',
    async run({ store }) {
      const { ref, by } = await bring(store, 'running');
      await store.cancel(ref, { kind: 'user' });
      const { stop } = await store.append(by, { after: 0, events: [] });
      assert.equal(stop?.reason.kind, 'user');
      assert.deepEqual(await store.read(ref), []);
    },
  },
  {
    title: 'a reader continues where it stopped',
    async run({ store }) {
      const { ref, by } = await bring(store, 'running');
      await store.append(by, { after: 0, events: events(1, 25) });
      const seen: unknown[] = [];
      for (let after = 0; ; ) {
        const piece = await store.read(ref, { after, limit: 10 });
        if (piece.length === 0) break;
        seen.push(...piece.map(({ event }) => event));
        after = piece.at(-1)!.position;
      }
      assert.deepEqual(seen, events(1, 25));
    },
  },
  {
    title: 'a reader at the end gets nothing',
    async run({ store }) {
      const { ref, by } = await bring(store, 'running');
      await store.append(by, { after: 0, events: ['a'] });
      assert.deepEqual(await store.read(ref, { after: 1 }), []);
      assert.deepEqual(await store.read(ref, { after: 99 }), []);
    },
  },
  {
    title: 'the next worker appends where the last one stopped',
    async run({ store, advance }) {
      const { id } = await create(store);
      await claim(store, id, { leaseMs: SHORT_MS });
      await store.append(nth(store, id, 1), { after: 0, events: ['one'] });
      await expire({ store, advance }, SHORT_MS);
      const { task } = await claim(store, id, { worker: 'w2' });
      await store.append(nth(store, id, 2), { after: task.position, events: ['two'] });
      const journal = await store.read({ tenant: TENANT, id });
      assert.deepEqual(
        journal.map(({ epoch, event }) => [epoch, event]),
        [
          [1, 'one'],
          [3, 'two'],
        ],
      );
    },
  },
  {
    title: 'entries written while a task is being cancelled are stored',
    async run({ store }) {
      const { ref, by } = await bring(store, 'cancelling');
      await store.append(by, { after: 0, events: ['last words'] });
      await store.finish(by, { status: 'cancelled' });
      assert.deepEqual(
        (await store.read(ref)).map(({ event }) => event),
        ['last words'],
      );
    },
  },
  {
    title: 'a journal can be read after the end',
    async run({ store }) {
      const { ref, by } = await bring(store, 'running');
      await store.append(by, { after: 0, events: ['a'] });
      await store.finish(by, { status: 'success' });
      assert.equal((await store.read(ref)).length, 1);
    },
  },
  {
    title: 'the journals of two tasks are separate',
    async run({ store }) {
      const one = await bring(store, 'running');
      const other = await bring(store, 'running');
      await store.append(one.by, { after: 0, events: ['mine'] });
      assert.deepEqual(await store.read(other.ref), []);
    },
  },
  {
    title: 'a batch of a thousand events is written whole',
    async run({ store }) {
      const { ref, by } = await bring(store, 'running');
      await store.append(by, { after: 0, events: events(1, 1_000) });
      assert.equal((await store.read(ref, { after: 990 })).length, 10);
    },
  },
  {
    title: 'a worker learns who reads its task, immediately and with each answer, until the reader leaves',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      assert.deepEqual((await ordersFor(store, by)).readers, []);
      const hints = Promise.withResolvers<Hint>();
      const heard = await store.watch({ worker: 'w1' }, (hint) => hint.type === 'watched' && hints.resolve(hint));
      const watching = await store.watch({ ...ref, words: true }, () => {});
      const hint = (await hints.promise) as Hint & { readonly type: 'watched' };
      assert.equal(hint.id, id);
      assert.deepEqual((await ordersFor(store, by)).readers, [hint.reader]);
      await store.append(by, { after: 0, events: ['a'] });
      await store.release(by);
      assert.deepEqual((await claim(store, id)).orders.readers, [hint.reader]);
      await watching[Symbol.asyncDispose]();
      await heard[Symbol.asyncDispose]();
      assert.deepEqual((await ordersFor(store, nth(store, id, 2))).readers, []);
    },
  },
  {
    title: 'a reader sees what a worker shows, one of another tenant does not',
    needs: 'live words',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      const seen = Promise.withResolvers<Hint>();
      const other = await store.watch({ tenant: 'other', id, words: true }, () => assert.fail('seen by another'));
      const reader = await store.watch({ ...ref, words: true }, (hint) => hint.type === 'frame' && seen.resolve(hint));
      const { readers } = await ordersFor(store, by);
      assert.equal(readers.length, 1);
      const { claimHash = '' } = await record(store, id);
      const said = {
        kept: 0,
        position: 0,
        from: 0,
        to: 2,
        at: 1,
        events: [{ event: { type: 'text', text: 'hi' }, said: 2 }],
      };
      let next: Hint | undefined = { type: 'frame', ...ref, frame: { epoch: by.epoch, claimHash, ...said } };
      const hint = next;
      const take = (): Hint | undefined => {
        const taken = next;
        next = undefined;
        return taken;
      };
      store.show({ readers: () => readers, next: take });
      assert.deepEqual(await seen.promise, hint);
      for (const watching of [other, reader]) await watching[Symbol.asyncDispose]();
    },
  },
];
