import assert from 'node:assert/strict';
import { type ContractCase, create, TENANT } from '../../case.ts';
import { take, taken } from '../../talk.ts';

/** How much runs at the same time. */
export const limitCases: readonly ContractCase[] = [
  {
    title: 'the limit of running tasks of a tenant is kept, and an end lets the next one start',
    options: { maxRunningPerTenant: 2 },
    async run({ store }) {
      for (let i = 0; i < 4; i++) await create(store);
      const other = await create(store, { tenant: 'other' });
      const { tasks } = await take(store);
      assert.deepEqual(tasks.map(({ task }) => task.tenant).toSorted(), [TENANT, TENANT, 'other'].toSorted());
      assert.deepEqual(await taken(store), []);
      const mine = tasks.filter(({ task }) => task.id !== other.id);
      await store.finish(mine[0]!.claim, { status: 'success' });
      assert.equal((await taken(store)).length, 1);
      await store.release(mine[1]!.claim);
      assert.equal((await taken(store)).length, 1);
    },
  },
  {
    title: 'the limit of running tasks of an agent is kept, and an end lets the next one start',
    options: { maxRunningPerAgent: 2 },
    async run({ store }) {
      for (let i = 0; i < 3; i++) await create(store, { tenant: `t${i}` });
      const other = await create(store, { agent: 'other' });
      const first = await take(store);
      assert.equal(first.tasks.length, 2);
      assert.deepEqual(await taken(store, { agents: ['assistant', 'other'] }), [other.id]);
      await store.finish(first.tasks[0]!.claim, { status: 'success' });
      assert.equal((await taken(store)).length, 1);
    },
  },
  ...[{ maxRunningPerAgent: 2 }, { maxRunningPerTenant: 2 }].map(
    (options): ContractCase => ({
      title: `a queue is not listed when its last task is taken and the limit is reached (${Object.keys(options)[0]})`,
      options,
      async run({ store }) {
        for (let i = 0; i < 2; i++) await create(store);
        assert.equal((await take(store)).tasks.length, 2);
        assert.deepEqual((await store.queues()).queues, []);
      },
    }),
  ),
  {
    title: 'a cancelled task that no worker holds does not count as running, and is taken to be undone',
    options: { maxRunningPerTenant: 1 },
    async run({ store }) {
      const { id } = await create(store);
      const [held] = (await take(store)).tasks;
      await store.cancel({ tenant: TENANT, id }, {}, { undo: true });
      await store.release(held!.claim);
      assert.deepEqual(await taken(store), [id]);
      await create(store);
      assert.deepEqual(await taken(store), []);
    },
  },
  {
    title: 'tenants that were served until the limit of an agent was reached are behind the others',
    options: { maxRunningPerAgent: 2 },
    async run({ store }) {
      for (let i = 0; i < 6; i++) await create(store, { tenant: `t${i % 3}` });
      const served: string[] = [];
      for (let i = 0; i < 3; i++) {
        const { tasks } = await take(store);
        served.push(...tasks.map(({ task }) => task.tenant));
        for (const { claim } of tasks) await store.finish(claim, { status: 'success' });
      }
      assert.deepEqual(served, ['t0', 't1', 't2', 't0', 't1', 't2']);
    },
  },
  {
    title: 'tasks beyond the limit of waiting tasks of a tenant and agent are refused; others are not',
    options: { maxReady: 3 },
    async run({ store }) {
      for (let i = 0; i < 3; i++) await create(store);
      const full = await store.create({ tenant: TENANT, agent: 'assistant', input: 1 });
      assert.deepEqual(full, { result: 'full', what: 'tasks', limit: 3 });
      await create(store, { agent: 'other' });
      await create(store, { tenant: 'other' });
      await take(store, { limit: 1 });
      await create(store);
    },
  },
  {
    title: 'invalid options of a task are refused by name',
    async run({ store }) {
      await assert.rejects(create(store, { debounceMs: 10 }), /debounceMs/);
      await assert.rejects(create(store, { priority: 1.5 }), /priority/);
      await assert.rejects(create(store, { notBefore: Number.NaN }), /notBefore/);
      await assert.rejects(create(store, { agent: '*?any' }), /agent/);
      await assert.rejects(create(store, { input: 'x'.repeat(5 * 1024 * 1024) }), /input.*bytes/);
    },
  },
];
