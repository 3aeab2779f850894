import assert from 'node:assert/strict';
import { LIMITS } from '../../../ledger/rules/rules.ts';
import {
  type ContractCase,
  claim,
  create,
  expire,
  fresh,
  LEASE_MS,
  record,
  SHORT_MS,
  TENANT,
  tryClaim,
} from '../../case.ts';
import { createTakeRequest, take, taken } from '../../talk.ts';

/** How tasks reach workers: takes, and what is taken first. */
export const takeCases: readonly ContractCase[] = [
  {
    title: 'a take returns ready tasks, once, with everything their work needs',
    async run({ store }) {
      const ids = [(await create(store, { input: 'one' })).id, (await create(store, { input: 'two' })).id];
      const { tasks, isRepeat } = await take(store);
      assert.deepEqual([tasks.map(({ task }) => task.id).toSorted(), isRepeat], [ids.toSorted(), false]);
      const [first] = tasks;
      assert.deepEqual([first!.task.status, first!.task.stage, first!.task.attempts], ['running', 'held', 1]);
      assert.deepEqual(first!.load, { inputs: [first!.task.id === ids[0] ? 'one' : 'two'], history: [] });
      assert.deepEqual(await taken(store), []);
    },
  },
  {
    title: 'data that is too large to be returned by a take is loaded separately',
    async run({ store }) {
      await create(store, { input: 'x'.repeat(1_000) });
      const [task] = (await take(store, { maxBytes: 100 })).tasks;
      assert.equal(task!.load, undefined);
      assert.deepEqual((await store.load(task!.claim)).inputs, ['x'.repeat(1_000)]);
    },
  },
  {
    title: 'a repeated take leaves out tasks that its session has claimed by id since',
    async run({ store }) {
      const [one, other] = [await create(store), await create(store)];
      const request = createTakeRequest();
      const { tasks } = await take(store, request);
      await store.release(tasks.find(({ task }) => task.id === one.id)!.claim);
      const again = await tryClaim(store, one.id, { session: request.session });
      assert.equal(again.result, 'claimed');
      assert.deepEqual(await taken(store, request), [other.id]);
    },
  },
  {
    title: 'the same number again repeats the tasks that are still held, with the same claims',
    async run({ store }) {
      for (let i = 0; i < 3; i++) await create(store);
      const request = { ...createTakeRequest(), limit: 2 };
      const first = await take(store, request);
      await store.finish(first.tasks[0]!.claim, { status: 'success' });
      const again = await take(store, { ...request, claim: fresh('claim') });
      assert.ok(again.isRepeat);
      assert.deepEqual(
        again.tasks.map((one) => one.claim),
        first.tasks.slice(1).map((one) => one.claim),
      );
      assert.equal((await take(store, { ...request, takeNumber: 2 })).tasks.length, 1);
    },
  },
  {
    title: 'a number before the last is stale, one too far ahead is gone, and so is a session the store does not know',
    async run({ store }) {
      const request = createTakeRequest();
      for (let number = 1; number <= 2; number++) {
        await create(store);
        assert.equal((await take(store, { ...request, takeNumber: number })).tasks.length, 1);
      }
      assert.deepEqual(await store.take(request), { result: 'stale' });
      assert.deepEqual(await store.take({ ...request, takeNumber: 4 }), { result: 'session-ended' });
      assert.deepEqual(await store.take({ ...createTakeRequest(), takeNumber: 2 }), { result: 'session-ended' });
    },
  },
  {
    title: 'a take that found nothing keeps its number',
    async run({ store }) {
      const request = createTakeRequest();
      assert.deepEqual((await take(store, request)).tasks, []);
      await create(store);
      assert.equal((await take(store, request)).tasks.length, 1);
    },
  },
  {
    title: 'a session that is over can no longer take, claim or send a heartbeat',
    async run({ store, advance }) {
      await create(store);
      const request = { ...createTakeRequest(), leaseMs: SHORT_MS };
      await take(store, request);
      await expire({ store, advance }, SHORT_MS);
      const { id } = await create(store);
      assert.deepEqual(await store.take({ ...request, takeNumber: 2 }), { result: 'session-ended' });
      assert.deepEqual(await store.heartbeat({ session: request.session, count: 1 }), {
        result: 'session-ended',
      });
      assert.deepEqual(await tryClaim(store, id, { session: request.session }), { result: 'session-ended' });
    },
  },
  {
    title: 'a worker gets only tasks of its agents',
    async run({ store }) {
      const [one, other] = [await create(store), await create(store, { agent: 'other' })];
      assert.deepEqual(await taken(store, { agents: ['other'] }), [other.id]);
      assert.deepEqual(await taken(store, { agents: ['assistant', 'third'] }), [one.id]);
    },
  },
  {
    title: 'a task that only has to be settled goes to any worker, even without agents, unless calls must be undone',
    async run({ store, advance }) {
      for (const undo of [false, true]) {
        const { id } = await create(store);
        const { by } = await claim(store, id, { leaseMs: SHORT_MS });
        await store.append(by, { after: 0, events: ['begun'] });
        await store.cancel({ tenant: TENANT, id }, {}, { undo });
        await expire({ store, advance }, SHORT_MS);
        assert.deepEqual(await taken(store, { agents: [] }), undo ? [] : [id]);
      }
    },
  },
  {
    title: 'a task that is being stopped is taken before all others',
    async run({ store }) {
      for (const undo of [false, true]) {
        const { id } = await create(store, { tenant: 'z', priority: -100 });
        const { by } = await claim(store, id);
        for (const tenant of ['a', 'b', 'z']) await create(store, { tenant });
        await store.cancel({ tenant: 'z', id }, {}, { undo });
        await store.release(by);
        assert.deepEqual(await taken(store, { limit: 1 }), [id]);
      }
    },
  },
  {
    title: 'a task is reserved for its preferred worker for a while',
    async run({ store, advance }) {
      const { id, createdAt } = await create(store, { preferredWorker: 'home' });
      const { tasks, nextReadyAt } = await take(store);
      assert.deepEqual([tasks, nextReadyAt], [[], createdAt + LIMITS.preferredWorkerMs]);
      await advance(LIMITS.preferredWorkerMs);
      assert.deepEqual(await taken(store), [id]);
    },
  },
  {
    title: 'a task is not taken or claimed before its start time, which the take returns',
    async run({ store, advance }) {
      const { createdAt } = await create(store, { agent: 'other' });
      const notBefore = createdAt + LEASE_MS;
      const { id } = await create(store, { notBefore });
      assert.deepEqual([(await take(store)).nextReadyAt, (await record(store, id)).stage], [notBefore, 'delayed']);
      assert.deepEqual(await tryClaim(store, id), { result: 'waiting', until: notBefore });
      await advance(LEASE_MS);
      assert.deepEqual(await taken(store), [id]);
    },
  },
  {
    title: 'a cancel of a task before its start time ends it',
    async run({ store, advance }) {
      const { id, createdAt } = await create(store);
      const later = await create(store, { notBefore: createdAt + SHORT_MS });
      for (const one of [id, later.id]) await store.cancel({ tenant: TENANT, id: one });
      await advance(SHORT_MS);
      assert.deepEqual(await taken(store), []);
    },
  },
  {
    title: 'tasks with a higher priority are taken first, then those that waited longest',
    async run({ store, advance }) {
      const ids: string[] = [];
      for (const priority of [0, 5, 0, -1, 5]) {
        ids.push((await create(store, { priority })).id);
        await advance(1);
      }
      const order: string[] = [];
      for (let i = 0; i < ids.length; i++) order.push(...(await taken(store, { limit: 1 })));
      assert.deepEqual(
        order,
        [1, 4, 0, 2, 3].map((i) => ids[i]),
      );
    },
  },
  {
    title: 'tenants take turns, however many tasks one of them has waiting',
    async run({ store }) {
      for (let i = 0; i < 20; i++) await create(store);
      for (let i = 0; i < 3; i++) await create(store, { tenant: 'other' });
      const tenants: string[] = [];
      for (let i = 0; i < 3; i++) {
        tenants.push(...(await take(store, { limit: 2 })).tasks.map(({ task }) => task.tenant));
      }
      assert.deepEqual([...new Set(tenants)].toSorted(), [TENANT, 'other'].toSorted());
      assert.equal(tenants.filter((tenant) => tenant === 'other').length, 3);
    },
  },
  {
    title: 'two workers that take at the same time get different tasks',
    async run({ store }) {
      for (let i = 0; i < 20; i++) await create(store);
      const takes = await Promise.all(Array.from({ length: 4 }, () => taken(store, { limit: 5 })));
      assert.equal(new Set(takes.flat()).size, 20);
    },
  },
];
