import assert from 'node:assert/strict';
import { LIMITS } from '../../../ledger/rules/rules.ts';
import type { TaskStore } from '../../../store.ts';
import {
  assertFenced,
  type ContractCase,
  claim,
  create,
  fresh,
  nth,
  record,
  SHORT_MS,
  TENANT,
  tryClaim,
} from '../../case.ts';
import { CONVERSATION, createTakeRequest, say, take, taken } from '../../talk.ts';
import { crash, crashWith, createSuspects } from './crash.ts';

const CODE = 'WORKERS_LOST';

const readError = async (store: TaskStore, id: string) => (await record(store, id)).outcome?.error;

/** Which task is charged for a crash, and what takes the charge back. */
export const suspectCases: readonly ContractCase[] = [
  {
    title: 'a task fails at its next take after three crashes that were its own, and its last worker is fenced',
    async run(context) {
      const { store } = context;
      const { id } = await create(store);
      await crashWith(context, id, LIMITS.suspectAttempts + 3);
      assert.equal((await record(store, id)).status, 'init');
      assert.deepEqual(await taken(store), []);
      assert.equal((await readError(store, id))?.code, CODE);
      assert.match((await readError(store, id))!.message, /^its workers were lost 5 times: /);
      assert.deepEqual(await tryClaim(store, id), { result: 'too-late', status: 'failed' });
      await assertFenced(store.finish(nth(store, id, 5), { status: 'success' }));
      await assertFenced(store.release(nth(store, id, 5)));
    },
  },
  {
    title: 'a claim by id ends a task that was charged too often',
    options: { maxAttempts: 1 },
    async run(context) {
      const { store } = context;
      const { id } = await create(store);
      await crashWith(context, id, LIMITS.suspectAttempts + 1);
      assert.deepEqual(await tryClaim(store, id), { result: 'too-late', status: 'failed' });
      assert.equal((await readError(store, id))?.code, CODE);
    },
  },
  {
    title: 'a task that fails for its crashes leaves its conversation, and the next task starts',
    options: { maxAttempts: 1 },
    async run(context) {
      const { store } = context;
      const first = await say(store, 'one', 'queue');
      const next = await say(store, 'two', 'queue');
      await crashWith(context, first.id, LIMITS.suspectAttempts + 1);
      await taken(store);
      assert.equal((await readError(store, first.id))?.code, CODE);
      assert.equal((await store.conversation(CONVERSATION))?.current, next.id);
      assert.notEqual((await record(store, next.id)).stage, 'queued');
    },
  },
  {
    title: 'a task whose workers crashed twenty times fails, however much progress it made',
    async run(context) {
      const { store } = context;
      const { id } = await create(store);
      for (let i = 0; i < LIMITS.maxCrashes; i++) {
        assert.equal((await record(store, id)).status, 'init');
        const { by } = await claim(store, id, { leaseMs: SHORT_MS });
        await store.append(by, { after: i, events: ['on'], resetsAttempts: true });
        await crash(context);
      }
      const { status, crashes, outcome } = await record(store, id);
      assert.deepEqual([status, crashes, outcome?.error?.code], ['failed', LIMITS.maxCrashes, CODE]);
    },
  },
  {
    title: 'progress resets attempts and charges, but not the total number of crashes',
    options: { maxAttempts: 1 },
    async run(context) {
      const { store } = context;
      const { id } = await create(store);
      await crashWith(context, id, LIMITS.suspectAttempts);
      const { by } = await claim(store, id, { leaseMs: SHORT_MS });
      await store.append(by, { after: 0, events: ['on'], resetsAttempts: true });
      await crash(context);
      await crashWith(context, id, LIMITS.suspectAttempts);
      const { status, attempts, crashes } = await record(store, id);
      assert.deepEqual([status, attempts, crashes], ['init', 2, 5]);
      assert.deepEqual(await taken(store), [id]);
    },
  },
  {
    title: 'a take hands out one suspect at most, and everything else',
    async run(context) {
      const { store } = context;
      const suspects = await createSuspects(context, 5, { priority: 5 });
      const others = await Promise.all(Array.from({ length: 3 }, () => create(store)));
      const ids = await taken(store);
      assert.equal(ids.filter((id) => suspects.includes(id)).length, 1);
      for (const { id } of others) assert.ok(ids.includes(id));
      assert.equal(ids.length, 4);
    },
  },
  {
    title: 'a worker with one place takes suspects and other tasks in turn',
    async run(context) {
      const { store } = context;
      const suspects = await createSuspects(context, 3, { priority: 5 });
      const others = await Promise.all(Array.from({ length: 3 }, () => create(store)));
      const ids: string[] = [];
      const { session, claim: nonce } = createTakeRequest();
      for (let number = 1; number <= 6; number++) {
        const { tasks } = await take(store, { session, claim: `${nonce}-${number}`, takeNumber: number, limit: 1 });
        ids.push(tasks[0]!.task.id);
        await store.finish(tasks[0]!.claim, { status: 'success' });
      }
      assert.deepEqual(ids.toSorted(), [...suspects, ...others.map(({ id }) => id)].toSorted());
      assert.ok(others.some(({ id }) => ids.slice(0, 3).includes(id)));
      assert.ok(suspects.some((id) => ids.slice(0, 3).includes(id)));
    },
  },
  ...(['finish', 'release', 'progress'] as const).map(
    (act): ContractCase => ({
      title: `a session that holds a suspect gets the next one after a ${act}`,
      async run(context) {
        const { store } = context;
        await createSuspects(context, 2);
        const { session, claim: nonce } = createTakeRequest();
        const { tasks } = await take(store, { session, claim: nonce });
        assert.equal(tasks.length, 1);
        const [{ claim: by }] = tasks as [(typeof tasks)[0]];
        const again = { session, claim: `${nonce}-2`, takeNumber: 2 };
        assert.deepEqual(await taken(store, again), []);
        if (act === 'finish') await store.finish(by, { status: 'success' });
        if (act === 'release') await store.release(by);
        if (act === 'progress') await store.append(by, { after: 0, events: ['on'], resetsAttempts: true });
        const next = await taken(store, again);
        // A released task may come back: it needs no other crash to be a suspect.
        assert.ok(next.length === 1 && (act === 'release' || next[0] !== by.id));
      },
    }),
  ),
  {
    title: 'another session takes a suspect while the first holds one',
    async run(context) {
      const { store } = context;
      const suspects = await createSuspects(context, 2);
      const ids = [...(await taken(store)), ...(await taken(store))];
      assert.deepEqual(ids.toSorted(), suspects.toSorted());
      assert.deepEqual(await taken(store), []);
    },
  },
  {
    title: 'a claim of a suspect waits while its session holds another',
    async run(context) {
      const { store } = context;
      const [one, other] = await createSuspects(context, 2);
      const session = fresh('session');
      const { by, orders } = await claim(store, one!, { session });
      const answer = await tryClaim(store, other!, { session });
      assert.ok(answer.result === 'waiting' && answer.until! >= orders.now + LIMITS.suspectWaitMs);
      const plain = await create(store);
      await claim(store, plain.id, { session });
      await store.finish(by, { status: 'success' });
      await claim(store, other!, { session });
    },
  },
  {
    title: 'only the suspect of a session is charged for its crash',
    options: { maxAttempts: 1 },
    async run(context) {
      const { store } = context;
      const [suspect] = await createSuspects(context, 1);
      const neighbours = await Promise.all(Array.from({ length: 4 }, () => create(store)));
      assert.equal((await taken(store, { leaseMs: SHORT_MS })).length, 5);
      await crash(context);
      assert.equal((await taken(store, { leaseMs: SHORT_MS })).length, 4);
      assert.equal((await readError(store, suspect!))?.code, CODE);
      for (const { id } of neighbours) {
        const { status, attempts, crashes } = await record(store, id);
        assert.deepEqual([status, attempts, crashes], ['running', 2, 1]);
      }
    },
  },
  {
    title: 'a crash without a suspect charges no task',
    options: { maxAttempts: 1 },
    async run(context) {
      const { store } = context;
      const ids = await Promise.all(Array.from({ length: 4 }, async () => (await create(store)).id));
      for (let i = 0; i < LIMITS.suspectAttempts; i++) {
        assert.equal((await taken(store, { leaseMs: SHORT_MS })).length, 4);
        await crash(context);
      }
      // Suspects now, and not charged: each is handed out, in its own session. One at a time: takes that race may find less.
      const again: string[] = [];
      while (again.length < ids.length) again.push(...(await taken(store)));
      assert.deepEqual(again.toSorted(), ids.toSorted());
    },
  },
  {
    title: 'a suspect that made progress is not charged',
    options: { maxAttempts: 1 },
    async run(context) {
      const { store } = context;
      const [id] = await createSuspects(context, 1);
      const { by } = await claim(store, id!, { leaseMs: SHORT_MS });
      await store.append(by, { after: 0, events: ['on'], resetsAttempts: true });
      await crash(context);
      assert.deepEqual(await taken(store), [id]);
    },
  },
  {
    title: 'a suspect that is being cancelled is settled, and never fails for its crashes',
    options: { maxAttempts: 1 },
    async run(context) {
      const { store } = context;
      const [id] = await createSuspects(context, 1);
      await claim(store, id!, { leaseMs: SHORT_MS });
      await store.cancel({ tenant: TENANT, id: id! });
      for (let i = 0; i < 3; i++) {
        await crash(context);
        assert.deepEqual(await taken(store, { leaseMs: SHORT_MS }), [id]);
      }
      assert.equal((await record(store, id!)).status, 'cancelling');
    },
  },
  {
    title: 'tasks being cancelled do not take the place of a suspect',
    async run(context) {
      const { store } = context;
      const [one, other] = await createSuspects(context, 2);
      await claim(store, one!, { leaseMs: SHORT_MS });
      await store.cancel({ tenant: TENANT, id: one! });
      await crash(context);
      assert.deepEqual((await taken(store)).toSorted(), [one!, other!].toSorted());
    },
  },
];
