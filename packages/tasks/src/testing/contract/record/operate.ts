import assert from 'node:assert/strict';
import type { TakeResult } from '../../../delivery/worker-store.ts';
import type { TaskStore } from '../../../store.ts';
import { bring, type ContractCase, claim, create, fresh, LEASE_MS, SHORT_MS, TENANT, tryClaim } from '../../case.ts';

export const take = (store: TaskStore, agents: readonly string[] = ['assistant']): Promise<TakeResult> =>
  store.take({
    session: fresh('session'),
    claim: fresh('claim'),
    takeNumber: 1,
    worker: fresh('worker'),
    agents,
    leaseMs: LEASE_MS,
    limit: 10,
  });

export const taken = async (store: TaskStore, agents?: readonly string[]): Promise<readonly string[]> => {
  const answer = await take(store, agents);
  return answer.result === 'taken' ? answer.tasks.map(({ task }) => task.id) : assert.fail(answer.result);
};

const TARGETS = [{ agent: 'assistant' }, { tenant: TENANT }, { all: true }] as const;

/** Pausing: nothing starts, everything else continues. */
const pauseCases: readonly ContractCase[] = [
  {
    title: 'nothing of a paused agent or tenant is delivered until it is resumed',
    async run({ store }) {
      for (const target of [{ agent: 'assistant' }, { tenant: TENANT }]) {
        await store.pause(target, true);
        await store.pause(target, true);
        const { id } = await create(store);
        const other = await create(store, { agent: 'writer', tenant: 'other' });
        assert.deepEqual(await taken(store, ['assistant', 'writer']), [other.id]);
        assert.deepEqual(await taken(store), []);
        assert.equal((await tryClaim(store, id)).result, 'waiting');
        assert.deepEqual((await store.queues()).paused, [target]);
        await store.pause(target, false);
        await store.pause(target, false);
        assert.deepEqual((await store.queues()).paused, []);
        assert.deepEqual(await taken(store), [id]);
      }
    },
  },
  {
    title: 'a pause or a limit never delays a cancel with undo: a worker that has the agent gets the task',
    options: { maxRunningPerTenant: 1, maxRunningPerAgent: 1 },
    async run({ store }) {
      await claim(store, (await create(store)).id);
      for (const target of TARGETS) {
        for (const byId of [false, true]) {
          const { task, by } = await claim(store, (await create(store)).id);
          await store.append(by, { after: 0, events: ['begun'] });
          await store.release(by);
          await store.pause(target, true);
          await store.cancel({ tenant: TENANT, id: task.id }, {}, { undo: true });
          assert.deepEqual(await taken(store, ['writer']), []);
          if (byId) await claim(store, task.id);
          else assert.deepEqual(await taken(store), [task.id]);
          await store.pause(target, false);
        }
      }
    },
  },
  {
    title: 'a task of a paused tenant that runs goes on, ends, and is stopped as always',
    async run({ store }) {
      const ended = await claim(store, (await create(store)).id);
      const stopped = await claim(store, (await create(store)).id);
      const { id: unstarted } = await create(store);
      await store.pause({ tenant: TENANT }, true);
      assert.equal((await store.finish(ended.by, { status: 'success' })).result, 'finished');
      assert.equal((await store.cancel({ tenant: TENANT, id: stopped.task.id })).result, 'accepted');
      assert.equal((await store.release(stopped.by)).result, 'released');
      // Only has to be settled: any worker does that.
      assert.deepEqual(await taken(store, ['writer']), [stopped.task.id]);
      await store.cancel({ tenant: TENANT, id: unstarted });
      assert.equal((await store.get({ tenant: TENANT, id: unstarted }))?.status, 'cancelled');
    },
  },
  {
    title: 'a worker that waits is notified when what it serves is resumed',
    async run({ store }) {
      for (const target of TARGETS) {
        await store.pause(target, true);
        const { id } = await create(store);
        const worker = fresh('worker');
        const rung = Promise.withResolvers<void>();
        const watch = await store.watch({ worker }, ({ type }) => {
          if (type === 'ready' || type === 'resync') rung.resolve();
        });
        const session = fresh('session');
        const asked = { session, worker, agents: ['assistant'], leaseMs: LEASE_MS, limit: 1 };
        await store.take({ ...asked, claim: fresh('claim'), takeNumber: 1 });
        await store.pause(target, false);
        await rung.promise;
        await watch[Symbol.asyncDispose]();
        assert.deepEqual(await taken(store), [id]);
      }
    },
  },
  {
    title: 'a target that is no name is refused',
    async run({ store }) {
      await assert.rejects(store.pause({ agent: '' }, true), /agent/);
      await assert.rejects(store.pause({} as { tenant: string }, true), /tenant/);
      await assert.rejects(store.pause({ agent: 'a' }, 'yes' as unknown as boolean), /isPaused/);
    },
  },
];

/** What waits: queues and conversations. */
const queueCases: readonly ContractCase[] = [
  {
    title: 'queues are listed with how many tasks are ready and since when, page by page',
    async run({ store, advance }) {
      assert.deepEqual((await store.queues()).queues, []);
      const first = await create(store, { priority: -5 });
      await advance(SHORT_MS);
      await create(store, { priority: 7 });
      await create(store, { agent: 'writer' });
      await create(store, { agent: 'assistant', tenant: 'ot:her' });
      await create(store, { agent: 'a:1', notBefore: first.createdAt + 1e9 });
      const found = [];
      for (let cursor: string | undefined; ; ) {
        const page = await store.queues({ limit: 1, ...(cursor !== undefined && { cursor }) });
        found.push(...page.queues);
        cursor = page.next;
        if (cursor === undefined) break;
      }
      const shown = found.map(({ agent, tenant, ready }) => `${agent} ${tenant} ${ready}`).toSorted();
      assert.deepEqual(shown, [`assistant ${TENANT} 2`, 'assistant ot:her 1', `writer ${TENANT} 1`]);
      const { oldestReadyAt } = found.find(({ agent, tenant }) => agent === 'assistant' && tenant === TENANT)!;
      assert.equal(oldestReadyAt, first.createdAt);
      assert.ok((await store.queues()).now >= oldestReadyAt + SHORT_MS);
      await assert.rejects(store.queues({ limit: 0 }), /limit/);
      await assert.rejects(store.queues({ cursor: 'nonsense' }), /cursor/);
    },
  },
  {
    title: 'a page of queues has at most 100 entries, and only the first has what is not in pages',
    async run({ store }) {
      const count = 110;
      await Promise.all(Array.from({ length: count }, (_, i) => create(store, { tenant: `t${i}` })));
      await store.pause({ agent: 'assistant' }, true);
      await claim(store, (await create(store, { agent: 'writer' })).id);
      const first = await store.queues({ limit: 1_000 });
      assert.deepEqual([first.queues.length, first.running, first.paused.length], [100, { writer: 1 }, 1]);
      const second = await store.queues({ limit: 1_000, cursor: first.next! });
      assert.deepEqual([second.queues.length, second.running, second.paused, second.next], [10, {}, [], undefined]);
      assert.equal(new Set([...first.queues, ...second.queues].map(({ tenant }) => tenant)).size, count);
      assert.equal((await store.tenants({ limit: 1_000 })).tenants.length, count + 1);
    },
  },
  {
    title: 'the workers that wait for the agents of a page are counted',
    async run({ store }) {
      for (let i = 0; i < 2; i++) await take(store, ['assistant', 'writer']);
      await store.pause({ agent: 'assistant' }, true);
      await create(store);
      await create(store, { agent: 'other' });
      // The first task woke up one of them.
      const { waiting } = await store.queues();
      assert.deepEqual([waiting['assistant'], waiting['other'] ?? 0], [1, 0]);
    },
  },
  {
    title: 'the running tasks of each agent are counted',
    async run({ store }) {
      assert.deepEqual((await store.queues()).running, {});
      const { by } = await claim(store, (await create(store)).id);
      await claim(store, (await create(store, { tenant: 'other' })).id);
      await claim(store, (await create(store, { agent: 'writer' })).id);
      assert.deepEqual((await store.queues()).running, { assistant: 2, writer: 1 });
      await store.finish(by, { status: 'success' });
      assert.deepEqual((await store.queues()).running, { assistant: 1, writer: 1 });
    },
  },
  {
    title: 'a queue that was emptied by takes, claims or cancels is not listed, and is again when a task is ready',
    async run({ store }) {
      const queues = async (): Promise<number> => (await store.queues()).queues.length;
      const { id } = await create(store);
      await store.cancel({ tenant: TENANT, id });
      assert.equal(await queues(), 0);
      await create(store);
      await taken(store);
      assert.equal(await queues(), 0);
      const { by } = await claim(store, (await create(store)).id);
      assert.equal(await queues(), 0);
      await store.release(by);
      assert.equal(await queues(), 1);
    },
  },
  {
    title: 'conversations of a tenant are listed in byte order, page by page, as long as they are kept',
    options: { conversationRetentionMs: SHORT_MS },
    async run({ store, advance }) {
      for (const conversation of ['b', 'a', 'é', 'B']) await create(store, { conversation });
      await create(store, { conversation: 'x', tenant: 'other' });
      const first = await store.conversations({ tenant: TENANT, limit: 3 });
      assert.deepEqual(first, { conversations: ['B', 'a', 'b'], next: 'b' });
      const rest = await store.conversations({ tenant: TENANT, limit: 3, cursor: first.next! });
      assert.deepEqual(rest, { conversations: ['é'] });
      for (const conversation of ['b', 'é', 'B']) await store.cancel({ tenant: TENANT, conversation });
      await advance(SHORT_MS + 1);
      // What is past its retention is removed a little at a time, when others are created.
      const names = async (): Promise<readonly string[]> =>
        (await store.conversations({ tenant: TENANT })).conversations;
      for (let i = 0; i < 200 && (await names()).length > 1; i++) {
        await create(store, { tenant: 'other', conversation: `new ${i}` });
      }
      assert.deepEqual(await names(), ['a']);
    },
  },
];

/** Removing, and how long records are kept. */
const removeCases: readonly ContractCase[] = [
  {
    title: 'only an ended task is removed, with its journal, and only by its tenant',
    async run({ store }) {
      const { task, by } = await claim(store, (await create(store, { key: 'once' })).id);
      const ref = { tenant: TENANT, id: task.id };
      await store.append(by, { after: 0, events: [{ type: 'note' }] });
      assert.deepEqual(await store.remove(ref), { result: 'live' });
      await store.finish(by, { status: 'success' });
      assert.deepEqual(await store.remove({ ...ref, tenant: 'other' }), { result: 'not-found' });
      assert.deepEqual(await store.remove(ref), { result: 'removed' });
      assert.deepEqual(await store.remove(ref), { result: 'not-found' });
      assert.equal(await store.get(ref), undefined);
      assert.deepEqual(await store.read(ref), []);
      assert.deepEqual((await store.list({ tenant: TENANT })).tasks, []);
      assert.equal((await store.counts({ tenant: TENANT })).statuses.success, 0);
      assert.deepEqual((await store.tenants()).tenants, []);
      // The name is free again.
      assert.equal((await create(store, { key: 'once' })).position, 0);
    },
  },
  {
    title: 'only an idle conversation is removed, with its history',
    async run({ store }) {
      const ref = { tenant: TENANT, conversation: 'c' };
      const { by } = await claim(store, (await create(store, { conversation: 'c' })).id);
      assert.deepEqual(await store.remove(ref), { result: 'live' });
      await store.finish(by, { status: 'success', newMessages: ['hello'] });
      assert.deepEqual(await store.remove({ ...ref, tenant: 'other' }), { result: 'not-found' });
      assert.deepEqual(await store.remove(ref), { result: 'removed' });
      assert.equal(await store.conversation(ref), undefined);
      assert.deepEqual((await store.conversations({ tenant: TENANT })).conversations, []);
      assert.deepEqual(await store.remove(ref), { result: 'not-found' });
      const { history } = await claim(store, (await create(store, { conversation: 'c' })).id);
      assert.deepEqual(history, []);
    },
  },
  {
    title: 'the inputs that a newer message took over stay when the older task is removed',
    async run({ store, advance }) {
      const older = await create(store, { conversation: 'c', input: 1, debounceMs: SHORT_MS });
      const newer = await create(store, { conversation: 'c', input: 2, debounceMs: SHORT_MS });
      assert.deepEqual(await store.remove({ tenant: TENANT, id: older.id }), { result: 'removed' });
      await advance(SHORT_MS + 1);
      const { inputs } = await claim(store, newer.id);
      assert.deepEqual(inputs, [1, 2]);
    },
  },
  {
    title: 'the store holds how long records are kept: a client that gives nothing follows it, a later one changes it',
    needs: 'second client',
    options: { retentionMs: SHORT_MS },
    async run({ store, openSecond, advance }) {
      // Connects, and so makes the store hold it.
      await store.tenants();
      const second = await openSecond();
      const { id } = await bring(second, 'success');
      await advance(SHORT_MS + 1);
      assert.equal(await second.get({ tenant: TENANT, id }), undefined);
      await second[Symbol.asyncDispose]();
    },
  },
];

/** What operators do. */
export const operateCases: readonly ContractCase[] = [...pauseCases, ...queueCases, ...removeCases];
