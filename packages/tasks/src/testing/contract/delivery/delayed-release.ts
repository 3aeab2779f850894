import assert from 'node:assert/strict';
import {
  assertFenced,
  bring,
  type ContractCase,
  claim,
  create,
  expire,
  nth,
  record,
  SHORT_MS,
  TENANT,
  tryClaim,
} from '../../case.ts';
import { CONVERSATION, say, statuses, take, taken } from '../../talk.ts';

const DELAY_MS = 20_000;
const WAIT = { error: 'answered 529: "Overloaded" | \u0000 \ud800 漢', since: 1_700_000_000_000, attempts: 3 };
const ACTIVITY = { turns: 1, calls: 0 };

/** Claims that are handed back for a time: a task waits, without a worker, for something that only time brings. */
export const delayedReleaseCases: readonly ContractCase[] = [
  {
    title: 'a task that is released with a delay is neither taken nor claimed before, and costs no attempt',
    options: { maxAttempts: 1 },
    async run({ store, advance }) {
      const { id } = await create(store);
      for (let i = 1; i <= 4; i++) {
        const { task, by } = await claim(store, id);
        assert.deepEqual([task.epoch, task.attempts, task.crashes], [2 * i - 1, 1, 0]);
        assert.deepEqual(await store.release(by, { delayMs: DELAY_MS }), { result: 'released' });
        const { status, stage, stageAt, worker, attempts } = await record(store, id);
        assert.deepEqual([status, stage, worker, attempts], ['init', 'delayed', undefined, 0]);
        assert.deepEqual(await tryClaim(store, id), { result: 'waiting', until: stageAt });
        assert.deepEqual(await taken(store), []);
        await advance(DELAY_MS);
      }
      assert.deepEqual(await taken(store), [id]);
    },
  },
  {
    title: 'a take says when a task that was released with a delay becomes ready',
    async run({ store }) {
      const { id, by } = await bring(store, 'running');
      await store.release(by, { delayMs: DELAY_MS });
      const { nextReadyAt, now } = await take(store);
      assert.equal(nextReadyAt, (await record(store, id)).stageAt);
      assert.ok(nextReadyAt! > now && nextReadyAt! <= now + DELAY_MS);
    },
  },
  {
    title: 'a delayed release that is repeated changes nothing, and its worker is fenced',
    async run({ store, advance }) {
      const { id, by } = await bring(store, 'running');
      await store.release(by, { delayMs: DELAY_MS });
      const before = await record(store, id);
      await advance(SHORT_MS);
      assert.deepEqual(await store.release(by, { delayMs: DELAY_MS }), { result: 'unchanged' });
      assert.deepEqual(await store.release(by), { result: 'unchanged' });
      assert.deepEqual(await record(store, id), before);
      await assertFenced(store.append(by, { after: 0, events: ['late'] }));
    },
  },
  {
    title: 'a task that is being cancelled is released without a delay',
    async run({ store }) {
      const { id, by } = await bring(store, 'cancelling');
      assert.deepEqual(await store.release(by, { delayMs: DELAY_MS }), { result: 'released' });
      assert.deepEqual([(await record(store, id)).stage, await taken(store, { agents: [] })], ['ready', [id]]);
    },
  },
  {
    title: 'a cancel during the delay lets any worker settle the task at once',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      await store.append(by, { after: 0, events: ['begun'] });
      await store.release(by, { delayMs: DELAY_MS });
      const receipt = await store.cancel(ref);
      assert.deepEqual([receipt.result, 'status' in receipt && receipt.status], ['accepted', 'cancelling']);
      const [settling] = (await take(store, { agents: [] })).tasks;
      assert.deepEqual([settling?.task.id, settling?.task.status], [id, 'cancelling']);
      await store.finish(settling!.claim, { status: 'cancelled' });
      assert.equal((await store.cancel(ref)).result, 'too-late');
    },
  },
  {
    title: 'a command that comes during the delay waits with the task',
    async run({ store, advance }) {
      const { id, ref, by } = await bring(store, 'running');
      await store.release(by, { delayMs: DELAY_MS });
      assert.equal((await store.send(ref, { type: 'steer', message: 'hi' })).result, 'accepted');
      assert.deepEqual(await taken(store), []);
      await advance(DELAY_MS);
      assert.equal((await claim(store, id)).orders.commands.length, 1);
    },
  },
  ...[{ maxRunningPerAgent: 1 }, { maxRunningPerTenant: 1 }].map(
    (options): ContractCase => ({
      title: `a task that is released with a delay makes room for another (${Object.keys(options)[0]})`,
      options,
      async run({ store }) {
        await create(store);
        const [first] = (await take(store)).tasks;
        const second = await create(store);
        assert.deepEqual(await taken(store), []);
        await store.release(first!.claim, { delayMs: DELAY_MS });
        assert.deepEqual(await taken(store), [second.id]);
      },
    }),
  ),
  {
    title: 'a newer message acts on a task that is delayed as on one that runs',
    async run({ store, advance }) {
      const first = await say(store, 'one', 'replace');
      const { by } = await claim(store, first.id);
      await store.append(by, { after: 0, events: ['begun'] });
      await store.release(by, { delayMs: DELAY_MS });
      const second = await say(store, 'two', 'queue');
      assert.deepEqual(await statuses(store, [first, second]), ['init', 'init']);
      assert.equal((await store.conversation(CONVERSATION))?.current, first.id);
      const third = await say(store, 'three', 'replace');
      assert.deepEqual(await statuses(store, [first, second, third]), ['cancelling', 'cancelled', 'init']);
      await advance(DELAY_MS);
      assert.deepEqual(await taken(store), [first.id]);
    },
  },
  {
    title: 'the deadline of a task passes during the delay',
    async run({ store, advance }) {
      const { now } = await store.queues();
      const { id } = await create(store, { deadline: now + SHORT_MS });
      const { by } = await claim(store, id);
      await store.append(by, { after: 0, events: ['begun'] });
      await store.release(by, { delayMs: DELAY_MS });
      await advance(SHORT_MS);
      while ((await store.sweep()).hasMore);
      const { status, stage, stop } = await record(store, id);
      assert.deepEqual([status, stage, stop?.reason.kind], ['cancelling', 'ready', 'deadline']);
    },
  },
  {
    title: 'a late release is not delayed: it only takes the crash back',
    async run({ store, advance }) {
      const { id } = await create(store);
      await claim(store, id, { leaseMs: SHORT_MS });
      await expire({ store, advance }, SHORT_MS);
      assert.deepEqual(await store.release(nth(store, id, 1), { delayMs: DELAY_MS }), { result: 'unchanged' });
      const { stage, crashes } = await record(store, id);
      assert.deepEqual([stage, crashes], ['ready', 0]);
    },
  },
  {
    title: 'the record says why it waits until it is taken again, and never after its end',
    async run({ store, advance }) {
      const { id, ref, by } = await bring(store, 'running');
      const shown = async () => (await store.list({ tenant: TENANT })).tasks.find((one) => one.id === id)?.activity;
      await store.append(by, { after: 0, events: ['begun'], activity: { ...ACTIVITY, providerWait: WAIT } });
      assert.deepEqual(await shown(), ACTIVITY);
      await store.release(by, { delayMs: DELAY_MS });
      assert.deepEqual(
        [await shown(), (await store.get(ref))?.activity],
        Array(2).fill({ ...ACTIVITY, providerWait: WAIT }),
      );
      await advance(DELAY_MS);
      const next = await claim(store, id);
      assert.deepEqual([next.task.activity, await shown()], [ACTIVITY, ACTIVITY]);
      await store.finish(next.by, { status: 'success' });
      assert.deepEqual(await shown(), ACTIVITY);
    },
  },
  {
    title: 'a delay, and a reason to wait, that make no sense are refused by name',
    async run({ store }) {
      const { id, by } = await bring(store, 'running');
      for (const delayMs of [0, -1, Number.NaN, Infinity])
        await assert.rejects(store.release(by, { delayMs }), /delayMs/);
      for (const [field, value] of [
        ['since', -1],
        ['attempts', 0.5],
        ['error', 'x'.repeat(10_000)],
      ] as const) {
        const activity = { ...ACTIVITY, providerWait: { ...WAIT, [field]: value } };
        await assert.rejects(store.append(by, { after: 0, events: [], activity }), new RegExp(field));
      }
      assert.equal((await record(store, id)).stage, 'held');
    },
  },
];
