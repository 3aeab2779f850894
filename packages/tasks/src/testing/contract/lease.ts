import assert from 'node:assert/strict';
import { shardOf } from '../../id.ts';
import { assertFenced, bring, type ContractCase, claim, create, LEASE_MS, record, SHORT_MS, TENANT } from '../case.ts';

/** Claims, leases and epochs. */
export const leaseCases: readonly ContractCase[] = [
  {
    title: 'a claim says who works on a task and since when',
    async run({ store }) {
      const { id } = await create(store);
      const { task, orders } = await claim(store, id, { worker: 'w7' });
      assert.deepEqual([task.worker, task.epoch, task.attempts, task.status], ['w7', 1, 1, 'running']);
      assert.equal(orders.leaseUntil, orders.now + LEASE_MS);
      assert.equal(task.startedAt, orders.now);
    },
  },
  {
    title: 'a claim of a task that does not exist is unknown',
    async run({ store }) {
      assert.deepEqual(await store.claim('t0-nothing', 'w1', LEASE_MS), { answer: 'unknown' });
    },
  },
  {
    title: 'of two claims at once one wins and the other learns until when',
    async run({ store }) {
      const { id } = await create(store);
      const claims = await Promise.all(['a', 'b', 'c', 'd'].map((worker) => store.claim(id, worker, LEASE_MS)));
      assert.deepEqual(claims.map(({ answer }) => answer).toSorted(), ['claimed', 'held', 'held', 'held']);
      const { leaseUntil } = await record(store, id);
      for (const one of claims) if (one.answer === 'held') assert.equal(one.until, leaseUntil);
    },
  },
  {
    title: 'not even the same worker can claim what it holds',
    async run({ store }) {
      const { id } = await create(store);
      await claim(store, id, { worker: 'w1' });
      assert.equal((await store.claim(id, 'w1', LEASE_MS)).answer, 'held');
    },
  },
  {
    title: 'an expired lease lets another worker claim, with a higher epoch',
    async run({ store, advance }) {
      const { id } = await create(store);
      await claim(store, id, { leaseMs: SHORT_MS });
      await advance(SHORT_MS);
      const { task } = await claim(store, id, { worker: 'w2' });
      assert.deepEqual([task.epoch, task.attempts, task.worker, task.status], [2, 2, 'w2', 'running']);
    },
  },
  {
    title: 'a lease holds until its last moment',
    async run({ store, advance }) {
      const { id } = await create(store);
      await claim(store, id, { leaseMs: SHORT_MS });
      await advance(SHORT_MS / 2);
      assert.equal((await store.claim(id, 'w2', LEASE_MS)).answer, 'held');
    },
  },
  {
    title: 'a renewal keeps others out',
    async run({ store, advance }) {
      const { id } = await create(store);
      await claim(store, id, { leaseMs: SHORT_MS });
      await store.renew(id, 1, LEASE_MS);
      await advance(SHORT_MS);
      assert.equal((await store.claim(id, 'w2', LEASE_MS)).answer, 'held');
    },
  },
  {
    title: 'a renewal never makes a lease shorter',
    async run({ store }) {
      const { id } = await create(store);
      const { orders } = await claim(store, id);
      assert.ok((await store.renew(id, 1, 1)).leaseUntil >= orders.leaseUntil);
    },
  },
  {
    title: 'an expired lease that nobody took can still be renewed',
    async run({ store, advance }) {
      const { id } = await create(store);
      await claim(store, id, { leaseMs: SHORT_MS });
      await advance(SHORT_MS);
      await store.renew(id, 1, LEASE_MS);
      assert.equal((await store.claim(id, 'w2', LEASE_MS)).answer, 'held');
    },
  },
  ...(['renew', 'append', 'release', 'finish'] as const).map(
    (write): ContractCase => ({
      title: `a ${write} of an old epoch is fenced and changes nothing`,
      async run({ store, advance }) {
        const { id } = await create(store);
        await claim(store, id, { leaseMs: SHORT_MS });
        await advance(SHORT_MS);
        await claim(store, id, { worker: 'w2' });
        const before = await record(store, id);
        const writes = {
          renew: () => store.renew(id, 1, LEASE_MS),
          append: () => store.append(id, 1, { after: 0, events: ['late'] }),
          release: () => store.release(id, 1),
          finish: () => store.finish(id, 1, { status: 'success' }),
        };
        await assertFenced(writes[write]());
        assert.deepEqual(await record(store, id), before);
        assert.deepEqual(await store.read({ tenant: TENANT, id }), []);
      },
    }),
  ),
  {
    title: 'an epoch that was never given out is fenced',
    async run({ store }) {
      const { id } = await bring(store, 'running');
      for (const epoch of [0, 2, -1, 1.5]) await assertFenced(store.finish(id, epoch, { status: 'success' }));
    },
  },
  {
    title: 'a zombie whose task was ended by its successor is fenced',
    async run({ store, advance }) {
      const { id } = await create(store);
      await claim(store, id, { leaseMs: SHORT_MS });
      await advance(SHORT_MS);
      await claim(store, id, { worker: 'w2' });
      await store.finish(id, 2, { status: 'success', answer: 'two' });
      await assertFenced(store.finish(id, 1, { status: 'failed' }));
      assert.equal((await record(store, id)).outcome?.answer, 'two');
    },
  },
  {
    title: 'a task whose workers keep dying fails, and the last of them is fenced',
    options: { attemptsMax: 2 },
    async run({ store, advance }) {
      const { id } = await create(store);
      for (const worker of ['w1', 'w2']) {
        await claim(store, id, { worker, leaseMs: SHORT_MS });
        await advance(SHORT_MS);
      }
      assert.deepEqual(await store.claim(id, 'w3', LEASE_MS), { answer: 'too-late', status: 'failed' });
      assert.equal((await record(store, id)).outcome?.error?.code, 'WORKERS_LOST');
      await assertFenced(store.finish(id, 2, { status: 'success' }));
    },
  },
  {
    title: 'a released task can be claimed at once and has lost no attempt',
    options: { attemptsMax: 1 },
    async run({ store }) {
      const { id } = await create(store);
      for (let epoch = 1; epoch <= 5; epoch++) {
        const { task } = await claim(store, id);
        assert.deepEqual([task.epoch, task.attempts], [epoch, 1]);
        assert.deepEqual(await store.release(id, epoch), { answer: 'released' });
      }
    },
  },
  {
    title: 'a release that arrives twice says so',
    async run({ store }) {
      const { id, epoch } = await bring(store, 'running');
      await store.release(id, epoch);
      assert.deepEqual(await store.release(id, epoch), { answer: 'already' });
    },
  },
  {
    title: 'the one who released a task is fenced',
    async run({ store }) {
      const { id, epoch } = await bring(store, 'running');
      await store.release(id, epoch);
      await assertFenced(store.append(id, epoch, { after: 0, events: ['late'] }));
      await assertFenced(store.finish(id, epoch, { status: 'success' }));
    },
  },
  {
    title: 'a task being cancelled whose worker is gone is claimed to be settled, however often',
    options: { attemptsMax: 1 },
    async run({ store, advance }) {
      const { id } = await create(store);
      await claim(store, id, { leaseMs: SHORT_MS });
      await store.cancel({ tenant: TENANT, id }, { kind: 'user', by: 'ann' });
      for (const worker of ['w2', 'w3']) {
        await advance(SHORT_MS);
        const { task, orders } = await claim(store, id, { worker, leaseMs: SHORT_MS });
        assert.deepEqual([task.status, orders.stop?.reason.by], ['cancelling', 'ann']);
      }
      assert.equal((await store.finish(id, 3, { status: 'cancelled' })).status, 'cancelled');
    },
  },
  {
    title: 'due names what nobody works on, and nothing else',
    async run({ store, advance }) {
      const free = await create(store);
      const running = await bring(store, 'running');
      await bring(store, 'success');
      const lost = await create(store);
      await claim(store, lost.id, { leaseMs: SHORT_MS });
      assert.deepEqual(await store.due(), [free.id]);
      await advance(SHORT_MS);
      assert.deepEqual(new Set(await store.due()), new Set([free.id, lost.id]));
      assert.ok(!(await store.due()).includes(running.id));
    },
  },
  {
    title: 'due leaves a task to the worker that created it for a while',
    async run({ store, advance }) {
      const { id } = await create(store, { worker: 'home' });
      assert.deepEqual(await store.due(), []);
      await advance(10_000);
      assert.deepEqual(await store.due(), [id]);
    },
  },
  {
    title: 'due names the longest overdue first and no more than asked for',
    async run({ store, advance }) {
      const ids: string[] = [];
      for (let i = 0; i < 4; i++) {
        ids.push((await create(store)).id);
        await advance(10);
      }
      assert.deepEqual(await store.due({ limit: 3 }), ids.slice(0, 3));
    },
  },
  {
    title: 'due can be asked about one shard',
    options: { shards: 4 },
    async run({ store }) {
      const ids: string[] = [];
      for (let i = 0; i < 20; i++) ids.push((await create(store)).id);
      const shards = await Promise.all([0, 1, 2, 3].map((shard) => store.due({ shard })));
      for (const [shard, due] of shards.entries()) assert.ok(due.every((id) => shardOf(id) === shard));
      assert.deepEqual(shards.flat().toSorted(), ids.toSorted());
    },
  },
];
