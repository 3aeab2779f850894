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

/** Claims, leases and epochs. */
export const leaseCases: readonly ContractCase[] = [
  {
    title: 'a claim records the worker and the start time',
    async run({ store }) {
      const { id } = await create(store);
      const { task, orders, by } = await claim(store, id, { worker: 'w7' });
      assert.deepEqual([task.worker, task.epoch, task.attempts, task.status], ['w7', 1, 1, 'running']);
      assert.deepEqual([by.id, by.epoch, task.startedAt, task.stage], [id, 1, orders.now, 'held']);
    },
  },
  {
    title: 'a claim of a task that does not exist is unknown',
    async run({ store }) {
      assert.deepEqual(await tryClaim(store, 't-nothing'), { result: 'not-found' });
    },
  },
  {
    title: 'of two claims at once one succeeds, and the other returns when to try again',
    async run({ store }) {
      const { id } = await create(store);
      const claims = await Promise.all(['a', 'b', 'c', 'd'].map((worker) => tryClaim(store, id, { worker })));
      assert.deepEqual(claims.map(({ result }) => result).toSorted(), ['claimed', 'held', 'held', 'held']);
      for (const one of claims) if (one.result === 'held') assert.ok(one.until > 0);
    },
  },
  {
    title: 'even the session that holds a task cannot claim it again with another claim',
    async run({ store }) {
      const { id } = await create(store);
      const { by } = await claim(store, id);
      assert.equal((await tryClaim(store, id, { session: by.session })).result, 'held');
    },
  },
  {
    title: 'a session that ran out lets another worker claim, with a higher epoch',
    async run({ store, advance }) {
      const { id } = await create(store);
      await claim(store, id, { leaseMs: SHORT_MS });
      await expire({ store, advance }, SHORT_MS);
      const { task } = await claim(store, id, { worker: 'w2' });
      assert.deepEqual([task.epoch, task.attempts, task.crashes, task.worker, task.status], [3, 2, 1, 'w2', 'running']);
    },
  },
  {
    title: 'a lease is valid until its last moment, and a claim does not end it',
    async run({ store, advance }) {
      const { id } = await create(store);
      await claim(store, id, { leaseMs: SHORT_MS });
      await advance(SHORT_MS / 2);
      assert.equal((await store.sweep()).reclaimed, 0);
      await advance(10 * SHORT_MS);
      assert.equal((await tryClaim(store, id)).result, 'held');
    },
  },
  ...(['append', 'finish', 'load'] as const).map(
    (write): ContractCase => ({
      title: `a ${write} of an old claim is fenced and changes nothing`,
      async run({ store, advance }) {
        const { id } = await create(store);
        const { by } = await claim(store, id, { leaseMs: SHORT_MS });
        await expire({ store, advance }, SHORT_MS);
        await claim(store, id, { worker: 'w2' });
        const before = await record(store, id);
        const writes = {
          append: () => store.append(by, { after: 0, events: ['late'] }),
          finish: () => store.finish(by, { status: 'success' }),
          load: () => store.load(by),
        };
        await assertFenced(writes[write]());
        assert.deepEqual(await record(store, id), before);
        assert.deepEqual(await store.read({ tenant: TENANT, id }), []);
      },
    }),
  ),
  {
    title: 'a write counts only with epoch, session and claim together',
    async run({ store }) {
      const { by } = await bring(store, 'running');
      const wrong = [
        ...[0, 2, -1, 1.5].map((epoch) => ({ ...by, epoch })),
        { ...by, session: 'another' },
        { ...by, claim: 'another' },
      ];
      for (const one of wrong) await assertFenced(store.finish(one, { status: 'success' }));
      assert.equal((await record(store, by.id)).status, 'running');
    },
  },
  {
    title: 'a zombie whose task was ended by its successor is fenced',
    async run({ store, advance }) {
      const { id } = await create(store);
      await claim(store, id, { leaseMs: SHORT_MS });
      await expire({ store, advance }, SHORT_MS);
      await claim(store, id, { worker: 'w2' });
      await store.finish(nth(store, id, 2), { status: 'success', answer: 'two' });
      await assertFenced(store.finish(nth(store, id, 1), { status: 'failed' }));
      assert.equal((await record(store, id)).outcome?.answer, 'two');
    },
  },
  {
    title: 'a released task can be claimed at once, and the release costs no attempt',
    options: { maxAttempts: 1 },
    async run({ store }) {
      const { id } = await create(store);
      for (let i = 1; i <= 5; i++) {
        const { task, by } = await claim(store, id);
        assert.deepEqual([task.epoch, task.attempts], [2 * i - 1, 1]);
        assert.deepEqual(await store.release(by), { result: 'released' });
      }
    },
  },
  {
    title: 'a second release returns already',
    async run({ store }) {
      const { by } = await bring(store, 'running');
      await store.release(by);
      assert.deepEqual(await store.release(by), { result: 'unchanged' });
    },
  },
  {
    title: 'a worker that released a task is fenced',
    async run({ store }) {
      const { by } = await bring(store, 'running');
      await store.release(by);
      await assertFenced(store.append(by, { after: 0, events: ['late'] }));
      await assertFenced(store.finish(by, { status: 'success' }));
    },
  },
  {
    title: 'a released task that is being cancelled stays so, and is settled by the next',
    async run({ store }) {
      const { id, by } = await bring(store, 'cancelling');
      assert.deepEqual(await store.release(by), { result: 'released' });
      assert.equal((await record(store, id)).status, 'cancelling');
      const { task, by: next } = await claim(store, id);
      assert.equal(task.status, 'cancelling');
      assert.equal((await store.finish(next, { status: 'cancelled' })).status, 'cancelled');
    },
  },
  {
    title: 'a task being cancelled whose worker is gone is claimed to be settled, however often',
    options: { maxAttempts: 1 },
    async run({ store, advance }) {
      const { id } = await create(store);
      await claim(store, id, { leaseMs: SHORT_MS });
      await store.cancel({ tenant: TENANT, id }, { kind: 'user', by: 'ann' });
      for (const worker of ['w2', 'w3']) {
        await expire({ store, advance }, SHORT_MS);
        const { task, orders } = await claim(store, id, { worker, leaseMs: SHORT_MS });
        assert.deepEqual([task.status, orders.stop?.reason.by], ['cancelling', 'ann']);
      }
      assert.equal((await store.finish(nth(store, id, 3), { status: 'cancelled' })).status, 'cancelled');
    },
  },
  {
    title: 'a cancelled task that had started and has no worker is settled',
    async run({ store, advance }) {
      const { id } = await create(store);
      const { by } = await claim(store, id, { leaseMs: SHORT_MS });
      await store.append(by, { after: 0, events: ['begun'] });
      await expire({ store, advance }, SHORT_MS);
      const receipt = await store.cancel({ tenant: TENANT, id }, { by: 'ann' });
      assert.ok(receipt.result === 'accepted' && receipt.status === 'cancelling');
      const { task, orders } = await claim(store, id);
      assert.deepEqual([task.status, orders.stop?.reason.by], ['cancelling', 'ann']);
    },
  },
];
