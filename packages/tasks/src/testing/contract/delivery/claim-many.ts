import assert from 'node:assert/strict';
import type { ClaimRequest, ClaimResult } from '../../../delivery/worker-store.ts';
import type { TaskStore } from '../../../store.ts';
import {
  bring,
  type ContractCase,
  claim,
  create,
  expire,
  fresh,
  LEASE_MS,
  record,
  SHORT_MS,
  TENANT,
} from '../../case.ts';
import { CONVERSATION, say } from '../../talk.ts';
import { crashWith, createSuspects } from './crash.ts';

const toRequest = (rest: Partial<ClaimRequest> = {}): ClaimRequest => ({
  worker: 'w1',
  leaseMs: LEASE_MS,
  session: fresh('session'),
  claim: fresh('claim'),
  ...rest,
});

const kinds = (answers: readonly ClaimResult[]): string[] => answers.map(({ result }) => result);

const createIds = async (store: TaskStore, count: number): Promise<string[]> =>
  (await Promise.all(Array.from({ length: count }, () => create(store)))).map(({ id }) => id);

/** Claims of several tasks by their ids, in one step. */
export const claimManyCases: readonly ContractCase[] = [
  {
    title: 'a claim of several tasks returns each of them, in order, with everything its work needs',
    async run({ store }) {
      const ids = await createIds(store, 5);
      const wanted = [...ids.slice(2), ...ids.slice(0, 2)];
      const request = toRequest();
      const answers = await store.claimMany(wanted, request);
      const tasks = answers.map((one) => (one.result === 'claimed' ? one : assert.fail(one.result)));
      assert.deepEqual(
        tasks.map((one) => one.claim),
        wanted.map((id) => ({ id, epoch: 1, session: request.session, claim: request.claim })),
      );
      for (const { task, load, orders } of tasks) {
        assert.deepEqual([task.status, task.stage, task.attempts], ['running', 'held', 1]);
        assert.deepEqual([load, orders.orderNumber], [{ inputs: ['hello'], history: [] }, 0]);
      }
      const { result } = await store.heartbeat({ session: request.session, count: 5 });
      assert.equal(result, 'alive');
      assert.equal((await store.finish(tasks[0]!.claim, { status: 'success' })).result, 'finished');
    },
  },
  {
    title: 'a claim of several tasks answers for each of them what a claim of it alone would',
    async run({ store }) {
      const { id: ready } = await create(store);
      const held = await bring(store, 'running');
      const ended = await bring(store, 'failed');
      const stopping = await create(store);
      const { by } = await claim(store, stopping.id);
      await store.append(by, { after: 0, events: ['begun'] });
      await store.cancel({ tenant: TENANT, id: stopping.id });
      await store.release(by);
      const current = await say(store, 'one', 'queue');
      const queued = await say(store, 'two', 'queue');
      const later = await create(store, { notBefore: current.createdAt + 60_000 });
      const home = await create(store, { preferredWorker: 'w9' });
      const paused = await create(store, { agent: 'paused' });
      await store.pause({ agent: 'paused' }, true);
      const all = [ready, 'none', held.id, ended.id, stopping.id, current.id, queued.id, later.id, home.id, paused.id];
      const answers = await store.claimMany(all, toRequest());
      assert.deepEqual(kinds(answers), [
        'claimed',
        'not-found',
        'held',
        'too-late',
        'claimed',
        'claimed',
        'waiting',
        'waiting',
        'claimed',
        'waiting',
      ]);
      assert.deepEqual(answers[3], { result: 'too-late', status: 'failed' });
      const stopped = answers[4] as Extract<ClaimResult, { result: 'claimed' }>;
      assert.deepEqual([stopped.task.status, stopped.orders.stop?.reason.kind], ['cancelling', 'user']);
      assert.deepEqual(answers[7], { result: 'waiting', until: later.notBefore });
      assert.ok((answers[2] as { until: number }).until >= later.createdAt + LEASE_MS - 1_000);
      assert.equal((await store.conversation(CONVERSATION))?.current, current.id);
    },
  },
  {
    title: 'a claim of several tasks whose response was lost can be repeated',
    async run({ store, advance }) {
      const ids = await createIds(store, 3);
      const request = toRequest();
      const first = await store.claimMany(ids, request);
      const before = await Promise.all(ids.map((id) => record(store, id)));
      await advance(1);
      const again = await store.claimMany(ids, request);
      const claims = (answers: readonly ClaimResult[]) =>
        answers.map((one) => (one.result === 'claimed' ? [one.claim, one.load] : one));
      assert.deepEqual(claims(again), claims(first));
      assert.deepEqual(await Promise.all(ids.map((id) => record(store, id))), before);
      const other = await store.claimMany(ids, { ...request, claim: fresh('claim') });
      assert.deepEqual(kinds(other), ['held', 'held', 'held']);
    },
  },
  {
    title: 'sessions that claim the same tasks at the same time share them',
    async run({ store }) {
      const ids = await createIds(store, 12);
      const asked = [ids, ids.toReversed(), ids, ids.toReversed()];
      const answers = await Promise.all(asked.map((some) => store.claimMany(some, toRequest())));
      for (const id of ids) {
        const got = answers.filter((some, i) => some[asked[i]!.indexOf(id)]!.result === 'claimed');
        assert.equal(got.length, 1);
      }
      assert.deepEqual(new Set(answers.flatMap(kinds)), new Set(['claimed', 'held']));
    },
  },
  {
    title: 'a claim of several tasks includes data up to its limit, of all of them together',
    async run({ store }) {
      const tasks = [await create(store, { input: 'x'.repeat(400) }), await create(store, { input: 'y'.repeat(400) })];
      const ids = tasks.map(({ id }) => id);
      const answers = await store.claimMany(ids, toRequest({ maxBytes: 600 }));
      const [first, second] = answers as Extract<ClaimResult, { result: 'claimed' }>[];
      assert.deepEqual([first!.load?.inputs, second!.load], [['x'.repeat(400)], undefined]);
      assert.deepEqual((await store.load(second!.claim)).inputs, ['y'.repeat(400)]);
    },
  },
  {
    title: 'a claim of several tasks gives a session one suspect at most, and ends one that was charged too often',
    options: { maxAttempts: 2 },
    async run(context) {
      const { store } = context;
      const { id: lost } = await create(store);
      await crashWith(context, lost, 4);
      const suspects = await createSuspects(context, 2);
      const { id } = await create(store);
      const answers = await store.claimMany([...suspects, id, lost], toRequest());
      assert.deepEqual(kinds(answers), ['claimed', 'waiting', 'claimed', 'waiting']);
      const [alone] = await store.claimMany([lost], toRequest());
      assert.deepEqual(alone, { result: 'too-late', status: 'failed' });
    },
  },
  {
    title: 'a claim of several tasks admits messages that are due, and claims the first of them',
    async run({ store, advance }) {
      const held = await say(store, 'one', { policy: 'queue', debounceMs: 1_000 });
      const early = await store.claimMany([held.id], toRequest());
      assert.deepEqual(kinds(early), ['waiting']);
      await advance(1_000);
      const { id } = await create(store);
      assert.deepEqual(kinds(await store.claimMany([held.id, id], toRequest())), ['claimed', 'claimed']);
    },
  },
  {
    title: 'a session that is over can no longer claim several tasks',
    async run({ store, advance }) {
      const request = toRequest({ leaseMs: SHORT_MS });
      await store.claimMany(await createIds(store, 1), request);
      await expire({ store, advance }, SHORT_MS);
      const ids = await createIds(store, 2);
      const answers = await store.claimMany(ids, { ...request, claim: fresh('claim') });
      assert.deepEqual(answers, [{ result: 'session-ended' }, { result: 'session-ended' }]);
      for (const id of ids) assert.equal((await record(store, id)).stage, 'ready');
    },
  },
  {
    title: 'a claim of several tasks accepts the same id twice, and no id at all',
    async run({ store }) {
      const [id] = (await createIds(store, 1)) as [string];
      assert.deepEqual(await store.claimMany([], toRequest()), []);
      const [one, other, none] = await store.claimMany([id, id, 'none'], toRequest());
      assert.deepEqual([one!.result, none!.result], ['claimed', 'not-found']);
      assert.deepEqual((other as typeof one & { claim: unknown }).claim, (one as { claim?: unknown }).claim);
      assert.equal((await record(store, id)).epoch, 1);
    },
  },
];
