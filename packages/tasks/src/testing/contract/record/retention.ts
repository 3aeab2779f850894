import assert from 'node:assert/strict';
import type { TaskStore } from '../../../store.ts';
import {
  bring,
  type CaseContext,
  type ContractCase,
  claim,
  create,
  fresh,
  nth,
  record,
  SHORT_MS,
  TENANT,
  usingResource,
} from '../../case.ts';

const LEASE_MS = 8 * SHORT_MS;

/** Takes as an idle worker does. Returns whether it is asked to sweep. */
async function isAskedToSweep(store: TaskStore): Promise<boolean> {
  const about = { session: fresh('session'), claim: fresh('claim'), worker: 'idle', leaseMs: LEASE_MS };
  const answer = await store.take({ ...about, takeNumber: 1, agents: ['none'], limit: 1 });
  return answer.result === 'taken' && answer.shouldSweep;
}

/** Sweeps as often as the store asks for. */
async function sweepAll(store: TaskStore): Promise<number> {
  for (let steps = 1; ; steps++) if (!(await store.sweep()).hasMore) return steps;
}

/** A second client that gives the store another retention. */
async function withRetention(
  { openSecond }: Pick<CaseContext, 'openSecond'>,
  retentionMs: number,
  work: (second: TaskStore) => Promise<void>,
): Promise<void> {
  await usingResource(await openSecond({ retentionMs }), work);
}

async function endMany(store: TaskStore, count: number): Promise<void> {
  const created = await Promise.all(Array.from({ length: count }, () => create(store)));
  for (const { id } of created) await store.cancel({ tenant: TENANT, id });
}

async function shown(store: TaskStore): Promise<{ readonly listed: number; readonly counted: number }> {
  const { statuses } = await store.counts({ tenant: TENANT });
  const { tasks } = await store.list({ tenant: TENANT, limit: 1_000 });
  return { listed: tasks.length, counted: Object.values(statuses).reduce((sum, count) => sum + count, 0) };
}

/** How long records are kept. Only tenants with stored tasks are listed, so their names show what was removed. */
export const retentionCases: readonly ContractCase[] = [
  {
    title: 'an ended task is forgotten after its retention, with its journal and its key',
    options: { retentionMs: SHORT_MS },
    async run({ store, advance }) {
      const { id } = await create(store, { key: 'k' });
      const ref = { tenant: TENANT, id };
      await claim(store, id);
      await store.append(nth(store, id, 1), { after: 0, events: ['x'] });
      await store.finish(nth(store, id, 1), { status: 'success' });
      await advance(SHORT_MS / 2);
      assert.equal((await store.get(ref))?.status, 'success');
      await advance(SHORT_MS);
      assert.equal(await store.get(ref), undefined);
      assert.deepEqual(await store.read(ref), []);
      assert.deepEqual((await store.list({ tenant: TENANT })).tasks, []);
      assert.deepEqual(await store.cancel(ref), { result: 'not-found' });
      const again = await create(store, { key: 'k' });
      assert.deepEqual([again.id, again.status, again.position], [id, 'init', 0]);
      assert.deepEqual(await store.read(ref), []);
    },
  },
  {
    title: 'a task that has not ended is never forgotten',
    options: { retentionMs: SHORT_MS },
    async run({ store, advance }) {
      const { id } = await create(store);
      await advance(10 * SHORT_MS);
      await create(store);
      assert.equal((await record(store, id)).status, 'init');
    },
  },
  {
    title: 'a history outlives its tasks, and is forgotten after a retention of its own',
    options: { retentionMs: SHORT_MS, conversationRetentionMs: 10 * SHORT_MS },
    async run({ store, advance }) {
      const { id } = await create(store, { conversation: 'c' });
      await claim(store, id);
      await store.finish(nth(store, id, 1), { status: 'success', history: ['said'] });
      await advance(2 * SHORT_MS);
      await create(store);
      assert.deepEqual((await store.conversation({ tenant: TENANT, conversation: 'c' }))?.history, ['said']);
      await advance(20 * SHORT_MS);
      await create(store);
      assert.equal(await store.conversation({ tenant: TENANT, conversation: 'c' }), undefined);
    },
  },
  {
    title: 'counts and lists agree about tasks past their retention, whether or not they have been removed',
    options: { retentionMs: SHORT_MS },
    async run({ store, advance }) {
      for (const status of ['success', 'failed', 'cancelled', 'init'] as const) await bring(store, status);
      assert.deepEqual(await shown(store), { listed: 4, counted: 4 });
      await advance(SHORT_MS / 2);
      await bring(store, 'success');
      await advance(SHORT_MS / 2 + 1);
      assert.deepEqual(await shown(store), { listed: 2, counted: 2 });
    },
  },
  {
    title: 'an idle worker is asked to sweep when ended tasks are past their retention, and the sweep removes them',
    options: { retentionMs: SHORT_MS },
    async run({ store, advance }) {
      assert.equal(await isAskedToSweep(store), false);
      const { id } = await bring(store, 'success');
      await advance(SHORT_MS + 1);
      assert.equal(await isAskedToSweep(store), true);
      assert.equal(await isAskedToSweep(store), false);
      assert.deepEqual((await store.tenants()).tenants, [TENANT]);
      await sweepAll(store);
      assert.deepEqual((await store.tenants()).tenants, []);
      await advance(10 * SHORT_MS);
      assert.equal(await isAskedToSweep(store), false);
      assert.equal((await create(store, { key: id })).status, 'init');
    },
  },
  {
    title: 'one sweep removes a bounded number of tasks, and returns whether there are more',
    options: { retentionMs: SHORT_MS },
    async run({ store, advance }) {
      await endMany(store, 25);
      await advance(SHORT_MS + 1);
      assert.equal((await store.sweep({ limit: 10 })).hasMore, true);
      assert.deepEqual((await store.tenants()).tenants, [TENANT]);
      assert.ok((await sweepAll(store)) < 5);
      assert.deepEqual((await store.tenants()).tenants, []);
    },
  },
  {
    title: 'a shorter retention applies to tasks that ended before, and the next sweeps remove them',
    options: { retentionMs: 1_000 * SHORT_MS },
    needs: 'second client',
    async run({ store, advance, openSecond }) {
      assert.equal(await isAskedToSweep(store), false);
      await endMany(store, 25);
      await advance(SHORT_MS + 1);
      await withRetention({ openSecond }, SHORT_MS, async (second) => {
        assert.deepEqual(await shown(second), { listed: 0, counted: 0 });
        assert.equal(await isAskedToSweep(second), true);
        await bring(second, 'success');
        await sweepAll(second);
        // A client that connected before has the longer retention, so it shows everything that is stored.
        assert.deepEqual(await shown(store), { listed: 1, counted: 1 });
      });
    },
  },
  {
    title: 'a longer retention applies to tasks that ended before',
    options: { retentionMs: SHORT_MS },
    needs: 'second client',
    async run({ store, advance, openSecond }) {
      const { id } = await bring(store, 'success');
      await withRetention({ openSecond }, 100 * SHORT_MS, async (second) => {
        await advance(2 * SHORT_MS);
        await sweepAll(second);
        assert.equal(await isAskedToSweep(second), false);
        assert.equal((await record(second, id)).status, 'success');
        assert.deepEqual(await shown(second), { listed: 1, counted: 1 });
      });
    },
  },
  {
    title: 'a key can be used again each time its task was removed, and leaves nothing behind',
    options: { retentionMs: SHORT_MS },
    async run({ store, advance }) {
      for (let i = 0; i < 3; i++) {
        const { id } = await create(store, { key: 'k' });
        await store.cancel({ tenant: TENANT, id });
        if (i === 1) assert.deepEqual(await store.remove({ tenant: TENANT, id }), { result: 'removed' });
        else await advance(SHORT_MS + 1);
      }
      await sweepAll(store);
      assert.deepEqual((await store.tenants()).tenants, []);
      assert.deepEqual(await shown(store), { listed: 0, counted: 0 });
    },
  },
];
