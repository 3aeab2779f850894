import assert from 'node:assert/strict';
import { LIMITS } from '../../../ledger/rules/rules.ts';
import type { TaskStore } from '../../../store.ts';
import { type ContractCase, claim, create, expire, SHORT_MS, TENANT, tryClaim, usingResource } from '../../case.ts';
import { take, taken } from '../../talk.ts';
import { createSuspects } from './crash.ts';

/** How suspects wait, and who sees them. */
export const suspectQueueCases: readonly ContractCase[] = [
  {
    title: 'tasks that crashed together wait for different times before they are tried again',
    async run(context) {
      const { store } = context;
      for (let i = 0; i < 20; i++) await create(store);
      for (let i = 0; i < 2; i++) {
        assert.equal((await taken(store, { leaseMs: SHORT_MS })).length, 20);
        await expire(context, SHORT_MS);
      }
      const { tasks } = await store.list({ tenant: TENANT });
      assert.ok(tasks.every(({ stage }) => stage === 'delayed'));
      const times = tasks.map(({ stageAt }) => stageAt!);
      assert.ok(new Set(times).size > 2);
      assert.ok(Math.max(...times) - Math.min(...times) < LIMITS.crashBackoffMs);
      await context.advance(2 * LIMITS.crashBackoffMs);
      assert.equal((await taken(store)).length, 1);
    },
  },
  {
    title: 'suspects keep the pauses and limits of their agent and tenant',
    options: { maxRunningPerTenant: 1, maxRunningPerAgent: 2 },
    async run(context) {
      const { store } = context;
      const [id] = await createSuspects(context, 1);
      for (const target of [{ agent: 'assistant' }, { tenant: TENANT }, { all: true } as const]) {
        await store.pause(target, true);
        assert.deepEqual(await taken(store), []);
        assert.equal((await tryClaim(store, id!)).result, 'waiting');
        await store.pause(target, false);
        const [one] = (await take(store)).tasks;
        assert.equal(one?.task.id, id);
        await store.release(one!.claim);
      }
      const other = await claim(store, (await create(store)).id);
      assert.deepEqual(await taken(store), []);
      await store.finish(other.by, { status: 'success' });
      const others = await Promise.all(
        ['a', 'b'].map(async (tenant) => claim(store, (await create(store, { tenant })).id)),
      );
      assert.deepEqual(await taken(store), []);
      await store.finish(others[0]!.by, { status: 'success' });
      assert.deepEqual(await taken(store), [id]);
    },
  },
  {
    title: 'suspects are listed in the queue of their agent',
    async run(context) {
      const { store } = context;
      await createSuspects(context, 2);
      await create(store);
      await create(store, { agent: 'writer' });
      // After a crash they wait: a take makes them ready.
      assert.deepEqual(await listQueues(store), [`assistant ${TENANT} 1`, `writer ${TENANT} 1`]);
      await taken(store, { agents: ['nothing'] });
      assert.deepEqual(await listQueues(store), [`assistant ${TENANT} 3`, `writer ${TENANT} 1`]);
      for (let i = 0; i < 3; i++) await taken(store, { agents: ['assistant', 'writer'] });
      assert.deepEqual(await listQueues(store), []);
    },
  },
  {
    title: 'a worker that waits for an agent is notified of its suspects',
    async run(context) {
      const { store } = context;
      const [id] = await createSuspects(context, 1);
      const { by } = await claim(store, id!);
      const rung = Promise.withResolvers<string>();
      const watching = store.watch({ worker: 'w9' }, (hint) => {
        if (hint.type === 'ready') rung.resolve(hint.agent);
        if (hint.type === 'resync') rung.resolve('assistant');
      });
      await usingResource(await watching, async () => {
        assert.deepEqual(await taken(store, { worker: 'w9' }), []);
        await store.release(by);
        assert.equal(await rung.promise, 'assistant');
      });
    },
  },
];

/** Reads all pages of queues, one by one. */
async function listQueues(store: TaskStore): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await store.queues({ limit: 1, ...(cursor !== undefined && { cursor }) });
    found.push(...page.queues.map(({ agent, tenant, ready }) => `${agent} ${tenant} ${ready}`));
    cursor = page.next;
    if (cursor === undefined) return found.toSorted();
  }
}
