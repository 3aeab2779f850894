import assert from 'node:assert/strict';
import { LIMITS } from '../../../ledger/rules/rules.ts';
import {
  assertFenced,
  type CaseContext,
  type ContractCase,
  claim,
  create,
  expire,
  nth,
  record,
  SHORT_MS,
  TENANT,
} from '../../case.ts';
import { taken } from '../../talk.ts';
import { crash } from './crash.ts';

const costs = async ({ store }: Pick<CaseContext, 'store'>, id: string): Promise<number[]> => {
  const { attempts, crashes } = await record(store, id);
  return [attempts, crashes];
};

/** A worker that seemed to be lost hands its task back: then nothing crashed. */
export const lateReleaseCases: readonly ContractCase[] = [
  {
    title: 'a late release takes the crash back, once',
    async run(context) {
      const { store } = context;
      const { id } = await create(store);
      const { by } = await claim(store, id, { leaseMs: SHORT_MS });
      await crash(context);
      assert.deepEqual(await costs(context, id), [1, 1]);
      for (let i = 0; i < 2; i++) {
        assert.deepEqual(await store.release(by), { result: 'unchanged' });
        assert.deepEqual(await costs(context, id), [0, 0]);
      }
      assert.deepEqual(await taken(store), [id]);
    },
  },
  {
    title: 'a late release does not disturb the next worker',
    async run(context) {
      const { store } = context;
      const { id } = await create(store);
      const { by } = await claim(store, id, { leaseMs: SHORT_MS });
      await crash(context);
      const { by: next } = await claim(store, id, { worker: 'w2' });
      assert.deepEqual(await store.release(by), { result: 'unchanged' });
      assert.deepEqual(await store.release(by), { result: 'unchanged' });
      const { attempts, crashes, epoch, worker, status } = await record(store, id);
      assert.deepEqual([attempts, crashes, epoch, worker, status], [1, 0, next.epoch, 'w2', 'running']);
      await assertFenced(store.append(by, { after: 0, events: ['late'] }));
      await store.finish(next, { status: 'success' });
    },
  },
  {
    title: 'a late release takes no attempt back that progress had reset',
    async run(context) {
      const { store } = context;
      const { id } = await create(store);
      const { by } = await claim(store, id, { leaseMs: SHORT_MS });
      await store.append(by, { after: 0, events: ['on'], resetsAttempts: true });
      await crash(context);
      await claim(store, id);
      await store.release(by);
      assert.deepEqual(await costs(context, id), [1, 0]);
    },
  },
  {
    title: 'only the claim that was taken away last takes its crash back',
    async run(context) {
      const { store } = context;
      const { id } = await create(store);
      for (let i = 0; i < 2; i++) {
        await claim(store, id, { leaseMs: SHORT_MS });
        await crash(context);
      }
      await assertFenced(store.release(nth(store, id, 1)));
      await assertFenced(store.release({ ...nth(store, id, 2), claim: 'another' }));
      assert.deepEqual(await costs(context, id), [2, 2]);
      await store.release(nth(store, id, 2));
      assert.deepEqual(await costs(context, id), [1, 1]);
    },
  },
  ...[false, true].map(
    (isTaken): ContractCase => ({
      title: `a late release removes the charge${isTaken ? ', even after the next take' : ''}`,
      options: { maxAttempts: 2 },
      async run(context) {
        const { store } = context;
        const { id } = await create(store);
        const limit = LIMITS.suspectAttempts + 1;
        for (let i = 0; i < limit; i++) {
          await claim(store, id, { leaseMs: SHORT_MS });
          await crash(context);
        }
        if (isTaken) await claim(store, id, { leaseMs: SHORT_MS });
        await store.release(nth(store, id, limit));
        if (!isTaken) await claim(store, id, { leaseMs: SHORT_MS });
        await crash(context);
        // With the charge that was removed, this one would be the second.
        assert.deepEqual(await taken(store), [id]);
      },
    }),
  ),
  {
    title: 'a late release ends the wait after a crash',
    async run(context) {
      const { store } = context;
      const { id } = await create(store);
      for (let i = 0; i < 2; i++) {
        await claim(store, id, { leaseMs: SHORT_MS });
        await expire(context, SHORT_MS);
      }
      assert.equal((await record(store, id)).stage, 'delayed');
      await store.release(nth(store, id, 2));
      assert.deepEqual(await taken(store), [id]);
    },
  },
  {
    title: 'a suspect that is handed back late is no longer one',
    async run(context) {
      const { store } = context;
      const ids = await Promise.all([0, 1].map(async () => (await create(store)).id));
      for (let i = 0; i < LIMITS.suspectAttempts; i++) {
        for (const id of ids) await claim(store, id, { leaseMs: SHORT_MS });
        await crash(context);
      }
      await store.release(nth(store, ids[0]!, LIMITS.suspectAttempts));
      assert.deepEqual((await taken(store)).toSorted(), ids.toSorted());
    },
  },
  {
    title: 'a late release of an ended task is fenced and changes nothing',
    async run(context) {
      const { store } = context;
      const { id } = await create(store);
      const { by } = await claim(store, id, { leaseMs: SHORT_MS });
      await crash(context);
      const { by: next } = await claim(store, id);
      await store.finish(next, { status: 'success' });
      const before = await record(store, id);
      await assertFenced(store.release(by));
      assert.deepEqual(await record(store, id), before);
    },
  },
  {
    title: 'a late release leaves a task that is being cancelled to be settled',
    async run(context) {
      const { store } = context;
      const { id } = await create(store);
      const { by } = await claim(store, id, { leaseMs: SHORT_MS });
      await store.cancel({ tenant: TENANT, id });
      await crash(context);
      assert.deepEqual(await store.release(by), { result: 'unchanged' });
      assert.equal((await record(store, id)).status, 'cancelling');
      assert.deepEqual(await taken(store), [id]);
    },
  },
];
