import assert from 'node:assert/strict';
import type { TaskStore } from '../../../store.ts';
import type { TaskRef } from '../../../task.ts';
import { bring, type ContractCase, claim, create, expire, nth, record, SHORT_MS, TENANT } from '../../case.ts';

const MAX_BYTES = 1_000;
/** An event of so many bytes as JSON. */
const ofBytes = (bytes: number): string => 'x'.repeat(bytes - 2);

const readPositions = async (store: TaskStore, ref: TaskRef): Promise<number[]> =>
  (await store.read(ref)).map(({ position }) => position);

/** No journal grows for ever: what a later entry makes needless goes, and what is too much is rejected. */
export const journalBoundCases: readonly ContractCase[] = [
  {
    title: 'a record says how large its journal is, in bytes of UTF-8',
    async run({ store }) {
      const { id, by } = await bring(store, 'running');
      assert.equal((await record(store, id)).journalBytes, 0);
      const events = ['ñ 漢 🙂', { text: 'a"b' }, null, [1, 2.5]];
      await store.append(by, { after: 0, events });
      const bytes = events.reduce<number>((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)), 0);
      assert.equal((await record(store, id)).journalBytes, bytes);
    },
  },
  {
    title: 'entries that a batch replaces are removed, and positions continue',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      await store.append(by, { after: 0, events: ['start', 'dra', 'ft', 'other'] });
      await store.append(by, { after: 4, events: ['draft'], replaces: [2, 3] });
      const journal = await store.read(ref);
      assert.deepEqual(
        journal.map(({ position, event }) => [position, event]),
        [
          [1, 'start'],
          [4, 'other'],
          [5, 'draft'],
        ],
      );
      const { position, journalBytes } = await record(store, id);
      assert.deepEqual([position, journalBytes], [5, JSON.stringify('start' + 'other' + 'draft').length + 4]);
    },
  },
  {
    title: 'a batch with replacements that arrives twice counts once',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      await store.append(by, { after: 0, events: ['a', 'b'] });
      for (let i = 0; i < 3; i++) await store.append(by, { after: 2, events: ['ab'], replaces: [1, 2] });
      assert.deepEqual(
        (await store.read(ref)).map(({ event }) => event),
        ['ab'],
      );
      assert.equal((await record(store, id)).journalBytes, 4);
    },
  },
  {
    title: 'a batch that arrives twice does not replace its own entries',
    async run({ store }) {
      const { by, id } = await bring(store, 'running');
      for (let i = 0; i < 2; i++) await store.append(by, { after: 0, events: ['a', 'b'], replaces: [1] });
      const { journalBytes, position } = await record(store, id);
      assert.deepEqual({ journalBytes, position }, { journalBytes: 6, position: 2 });
      assert.equal((await store.read({ tenant: TENANT, id })).length, 2);
    },
  },
  {
    title: 'an entry that a batch replaces twice counts once',
    async run({ store }) {
      const { id, by } = await bring(store, 'running');
      await store.append(by, { after: 0, events: ['long', 'x'] });
      await store.append(by, { after: 2, events: [], replaces: [1, 1] });
      assert.equal((await record(store, id)).journalBytes, 3);
    },
  },
  {
    title: 'replacing entries that do not exist changes nothing',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      await store.append(by, { after: 0, events: ['a'], replaces: [1, 7, 0] });
      await store.append(by, { after: 1, events: ['b'], replaces: [9] });
      await store.append(by, { after: 2, events: [], replaces: [1] });
      await store.append(by, { after: 2, events: ['c'], replaces: [1] });
      assert.deepEqual(await readPositions(store, ref), [2, 3]);
      assert.equal((await record(store, id)).journalBytes, 6);
    },
  },
  {
    title: 'a reader skips removed entries and misses none of the others',
    async run({ store }) {
      const { ref, by } = await bring(store, 'running');
      const events = Array.from({ length: 40 }, (_, i) => i + 1);
      await store.append(by, { after: 0, events });
      const replaces = events.filter((position) => position > 3 && position < 30 && position % 7 !== 0);
      await store.append(by, { after: 40, events: [41], replaces });
      const seen: number[] = [];
      for (let after = 0; ; ) {
        const piece = await store.read(ref, { after, limit: 4 });
        if (piece.length === 0) break;
        seen.push(...piece.map(({ event }) => event as number));
        after = piece.at(-1)!.position;
      }
      assert.deepEqual(
        seen,
        [...events, 41].filter((event) => !replaces.includes(event)),
      );
      assert.deepEqual(
        (await store.read(ref, { after: 10, limit: 2 })).map(({ position }) => position),
        [14, 21],
      );
    },
  },
  {
    title: 'a batch that would make a journal too large is refused, and nothing of it is written',
    options: { maxJournalBytes: MAX_BYTES },
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      assert.equal(store.maxJournalBytes, MAX_BYTES);
      await store.send(ref, { type: 'steer', message: 'x' });
      await store.append(by, { after: 0, events: [ofBytes(600)] });
      const before = await record(store, id);
      const batch = { after: 1, events: [ofBytes(100), ofBytes(301)], replaces: [9], done: [1] };
      await assert.rejects(store.append(by, batch), { code: 'JOURNAL_FULL', bytes: 600 });
      assert.deepEqual(await record(store, id), before);
      assert.deepEqual(await readPositions(store, ref), [1]);
      await store.append(by, { after: 1, events: [ofBytes(400)], done: [1] });
      assert.equal((await record(store, id)).journalBytes, MAX_BYTES);
    },
  },
  {
    title: 'a full journal accepts a batch that replaces enough, and orders are still returned',
    options: { maxJournalBytes: MAX_BYTES },
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      await store.append(by, { after: 0, events: [ofBytes(500), ofBytes(500)] });
      const refused = store.append(by, { after: 2, events: [ofBytes(501)], replaces: [1] });
      await assert.rejects(refused, { code: 'JOURNAL_FULL' });
      await store.cancel(ref, { by: 'ann' });
      const { stop } = await store.append(by, { after: 2, events: [] });
      assert.equal(stop?.reason.by, 'ann');
      await store.append(by, { after: 2, events: [ofBytes(500)], replaces: [1] });
      assert.deepEqual(await readPositions(store, ref), [2, 3]);
      await store.finish(by, { status: 'cancelled' });
      assert.equal((await record(store, id)).status, 'cancelled');
    },
  },
  {
    title: 'entries of one worker count for the next, which can replace them',
    options: { maxJournalBytes: MAX_BYTES },
    async run({ store, advance }) {
      const { id } = await create(store);
      const ref = { tenant: TENANT, id };
      await claim(store, id, { leaseMs: SHORT_MS });
      await store.append(nth(store, id, 1), { after: 0, events: [ofBytes(900)] });
      await expire({ store, advance }, SHORT_MS);
      const { task } = await claim(store, id, { worker: 'w2' });
      assert.equal(task.journalBytes, 900);
      await assert.rejects(store.append(nth(store, id, 2), { after: 1, events: [ofBytes(200)] }), {
        code: 'JOURNAL_FULL',
      });
      await store.append(nth(store, id, 2), { after: 1, events: [ofBytes(200)], replaces: [1] });
      assert.deepEqual(await readPositions(store, ref), [2]);
    },
  },
  {
    title: 'a worker that lost a task cannot remove anything from its journal',
    async run({ store, advance }) {
      const { id } = await create(store);
      await claim(store, id, { leaseMs: SHORT_MS });
      await store.append(nth(store, id, 1), { after: 0, events: ['a'] });
      await expire({ store, advance }, SHORT_MS);
      await claim(store, id, { worker: 'w2' });
      await assert.rejects(store.append(nth(store, id, 1), { after: 1, events: ['b'], replaces: [1] }), {
        code: 'LEASE_LOST',
      });
      assert.deepEqual(await readPositions(store, { tenant: TENANT, id }), [1]);
    },
  },
];
