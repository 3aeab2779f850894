import assert from 'node:assert/strict';
import type { TaskStore } from '../../../store.ts';
import { bring, type ContractCase, claim, create, fresh, LEASE_MS, record, SHORT_MS, TENANT } from '../../case.ts';

const take = (store: TaskStore, worker: string, limit: number) =>
  store.take({
    session: fresh('session'),
    claim: fresh('claim'),
    takeNumber: 1,
    worker,
    agents: ['assistant', 'writer'],
    leaseMs: LEASE_MS,
    limit,
  });

/** What operators look at. */
export const overviewCases: readonly ContractCase[] = [
  {
    title: 'counts include the tasks of one tenant by status, and none of other tenants',
    async run({ store }) {
      const none = { init: 0, running: 0, cancelling: 0, success: 0, failed: 0, cancelled: 0 };
      assert.deepEqual((await store.counts({ tenant: TENANT })).statuses, none);
      for (const status of ['init', 'init', 'running', 'cancelling', 'success', 'failed', 'cancelled'] as const) {
        await bring(store, status);
      }
      await create(store, { tenant: 'other' });
      const { tenant, statuses, limit } = await store.counts({ tenant: TENANT });
      assert.deepEqual(statuses, { init: 2, running: 1, cancelling: 1, success: 1, failed: 1, cancelled: 1 });
      assert.equal(tenant, TENANT);
      assert.ok(limit >= 1_000);
      assert.deepEqual((await store.counts({ tenant: 'other' })).statuses, { ...none, init: 1 });
      await assert.rejects(store.counts({ tenant: '' }), /tenant/);
    },
  },
  {
    title: 'tenants are listed once each, in byte order, page by page',
    async run({ store }) {
      assert.deepEqual(await store.tenants(), { tenants: [] });
      const names = ['b', 'a', 'B', 'é', '\u{1f600}', '\uffee', 'a b', 'ab'];
      for (const tenant of names) {
        await create(store, { tenant });
        await create(store, { tenant, conversation: 'c' });
      }
      const expected = ['B', 'a', 'a b', 'ab', 'b', 'é', '\uffee', '\u{1f600}'];
      assert.deepEqual(await store.tenants(), { tenants: expected });
      const found: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = await store.tenants({ limit: 3, ...(cursor !== undefined && { cursor }) });
        found.push(...page.tenants);
        cursor = page.next;
        if (cursor === undefined) break;
      }
      assert.deepEqual(found, expected);
      await assert.rejects(store.tenants({ limit: 0 }), /limit/);
    },
  },
  {
    title: 'a tenant without stored tasks is not listed until it has one again',
    options: { retentionMs: SHORT_MS },
    async run({ store, advance }) {
      await create(store, { tenant: 'stays' });
      const { id } = await create(store, { tenant: 'goes' });
      await store.cancel({ tenant: 'goes', id });
      await advance(SHORT_MS + 1);
      // What is past its retention is removed a little at a time, when others are created.
      for (let i = 0; i < 200 && (await store.tenants()).tenants.includes('goes'); i++) {
        await create(store, { tenant: 'stays' });
      }
      assert.deepEqual((await store.tenants()).tenants, ['stays']);
      await create(store, { tenant: 'goes' });
      assert.deepEqual((await store.tenants()).tenants, ['goes', 'stays']);
    },
  },
  {
    title: 'workers are listed with what they hold and what they wait for',
    async run({ store }) {
      assert.deepEqual((await store.workers()).workers, []);
      const ids = [(await create(store)).id, (await create(store)).id];
      await take(store, 'busy', 2);
      await take(store, 'idle', 5);
      const { id } = await create(store, { agent: 'claimed' });
      await claim(store, id, { worker: 'claimer' });
      const { workers, hasMore, now } = await store.workers();
      assert.deepEqual([workers.map(({ worker }) => worker), hasMore], [['busy', 'claimer', 'idle'], false]);
      const [busy, claimer, idle] = workers;
      assert.deepEqual([busy!.holds, [...busy!.tasks].toSorted(), busy!.waitsFor], [2, ids.toSorted(), []]);
      assert.ok(Math.abs(busy!.expiresAt! - now - LEASE_MS) < LEASE_MS / 2);
      assert.deepEqual([claimer!.holds, claimer!.tasks], [1, [id]]);
      assert.deepEqual(idle, { worker: 'idle', holds: 0, tasks: [], waitsFor: ['assistant', 'writer'] });
      assert.equal((await store.workers({ limit: 1 })).hasMore, true);
      await assert.rejects(store.workers({ limit: 0 }), /limit/);
    },
  },
  {
    title: 'a deadline is kept with the task, in a conversation too',
    async run({ store }) {
      const { id, createdAt, deadline } = await create(store, { deadline: 4_000_000_000_000 });
      assert.equal(deadline, 4_000_000_000_000);
      assert.equal((await record(store, id)).deadline, deadline);
      const { task } = await claim(store, id);
      assert.equal(task.deadline, deadline);
      const message = await create(store, { deadline: createdAt + 1, conversation: 'c' });
      assert.equal((await record(store, message.id)).deadline, createdAt + 1);
      assert.equal('deadline' in (await record(store, (await create(store)).id)), false);
      await assert.rejects(create(store, { deadline: Number.NaN }), /deadline/);
      await assert.rejects(create(store, { deadline: 1, notBefore: 2 }), /deadline/);
    },
  },
];
