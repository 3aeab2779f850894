import assert from 'node:assert/strict';
import { LIMITS } from '../../../ledger/rules/rules.ts';
import { bring, type ContractCase, claim, create, SHORT_MS, TENANT } from '../../case.ts';
import { createTakeRequest, take, taken } from '../../talk.ts';
import { AGENT, deliver, ENGINE, TICKET, takeBack, takeOffers, withOffers } from './offers.ts';

/** An agent whose tasks an engine delivers. */
export const engineCases: readonly ContractCase[] = [
  {
    title: 'workers take the tasks of an agent that an engine delivers only by its offers',
    async run({ store }) {
      await deliver(store);
      const [first, second] = [await create(store), await create(store)];
      const other = await create(store, { agent: 'writer' });
      assert.deepEqual(await taken(store, { agents: [AGENT, 'writer'] }), [other.id]);
      assert.deepEqual(
        await takeOffers(store, [{ ...TICKET, id: second.id }]).then(({ ids, results }) => [ids, results]),
        [[second.id], ['taken']],
      );
      assert.deepEqual((await takeOffers(store, [{ ...TICKET, id: second.id }])).results, ['refused']);
      assert.deepEqual((await takeOffers(store, [{ ...TICKET, tenant: 'other' }])).results, ['refused']);
      assert.deepEqual((await takeOffers(store, [{ ...TICKET, tenant: 'other', id: first.id }])).results, ['refused']);
      assert.deepEqual((await takeOffers(store, [TICKET])).ids, [first.id]);
      assert.deepEqual((await takeOffers(store, [TICKET, { ...TICKET, id: 'nothing' }])).results, [
        'refused',
        'refused',
      ]);
    },
  },
  {
    title: 'an offer without an id takes the first waiting task of its tenant, and says whether more wait',
    async run({ store, advance }) {
      await deliver(store);
      const tasks = [];
      for (const priority of [0, 5, 0]) {
        tasks.push(await create(store, { priority }));
        await advance(1);
      }
      const theirs = await create(store, { tenant: 'other' });
      const first = await takeOffers(store, [TICKET, { ...TICKET, tenant: 'other' }]);
      assert.deepEqual(first.ids.toSorted(), [tasks[1]!.id, theirs.id].toSorted());
      assert.deepEqual(first.results, ['more', 'taken']);
      const rest = await takeOffers(store, [TICKET, TICKET, TICKET]);
      assert.deepEqual(rest.ids, [tasks[0]!.id, tasks[2]!.id]);
      assert.deepEqual(rest.results, ['taken', 'taken', 'refused']);
    },
  },
  {
    title: 'offers for which a take has no room are repeated later',
    async run({ store }) {
      await deliver(store);
      for (let i = 0; i < 3; i++) await create(store);
      const request = { ...createTakeRequest(), limit: 2, offers: [TICKET, TICKET, TICKET] };
      const answer = await take(store, request);
      assert.equal(answer.tasks.length, 2);
      assert.deepEqual(answer.offers, ['more', 'more', 'later']);
      // Its response was lost.
      const again = await take(store, request);
      assert.deepEqual([again.isRepeat, again.tasks.length], [true, 2]);
      assert.deepEqual(again.offers, ['later', 'later', 'later']);
      assert.equal(again.lostOffers, undefined);
    },
  },
  {
    title: 'what becomes ready is reported as an offer to the process that made it ready',
    async run({ store, advance }) {
      await deliver(store);
      await withOffers(store, async (offered) => {
        const { id } = await create(store, { priority: 7 });
        assert.deepEqual(await offered(), [{ id, tenant: TENANT, agent: AGENT, priority: 7 }]);
        await create(store, { agent: 'writer' });
        assert.deepEqual(await offered(), []);
        const { by } = await claim(store, id);
        await store.release(by);
        assert.deepEqual(
          (await offered()).map((one) => one.id),
          [id],
        );
        const home = await create(store, { preferredWorker: 'w9' });
        assert.deepEqual(await offered(), []);
        await advance(LIMITS.preferredWorkerMs);
        await taken(store, { agents: [] });
        assert.deepEqual(
          (await offered()).map((one) => one.id),
          [home.id],
        );
        const { now } = await take(store);
        const later = await create(store, { notBefore: now + SHORT_MS });
        assert.deepEqual(await offered(), [
          { id: later.id, tenant: TENANT, agent: AGENT, priority: 0, startsAt: now + SHORT_MS },
        ]);
        await advance(SHORT_MS);
        assert.ok((await takeOffers(store, [{ ...TICKET, id: later.id }])).ids.includes(later.id));
      });
    },
  },
  {
    title: 'the next message of a conversation is offered when the one before it ends',
    async run({ store }) {
      await deliver(store);
      await withOffers(store, async (offered) => {
        const message = { tenant: TENANT, agent: AGENT, conversation: 'c1', input: 'hello' };
        const first = await store.create(message, { policy: 'queue' });
        const second = await store.create(message, { policy: 'queue' });
        assert.ok(first.result === 'created' && second.result === 'created');
        assert.deepEqual(
          (await offered()).map((one) => one.id),
          [first.task.id],
        );
        const [{ claim: by } = assert.fail()] = (await takeOffers(store, [TICKET])).tasks;
        await store.finish(by, { status: 'success' });
        assert.deepEqual(
          (await offered()).map((one) => one.id),
          [second.task.id],
        );
      });
    },
  },
  {
    title: 'lost offers are told to one worker at a time, and again after a long time',
    async run({ store, advance }) {
      await deliver(store);
      const { id } = await create(store);
      assert.deepEqual((await takeOffers(store, [])).lost, []);
      await advance(LIMITS.lostOfferMs);
      assert.equal((await take(store)).lostOffers, undefined);
      assert.deepEqual((await takeOffers(store, [])).lost, [id]);
      assert.deepEqual((await takeOffers(store, [])).lost, []);
      await advance(LIMITS.offerIntervalMs);
      assert.deepEqual((await takeOffers(store, [])).lost, [id]);
      await store.noteOffered([id, 'nothing']);
      await advance(LIMITS.repeatedOfferMs - SHORT_MS);
      assert.deepEqual((await takeOffers(store, [])).lost, []);
      await advance(SHORT_MS);
      assert.deepEqual((await takeOffers(store, [])).lost, [id]);
      await store.noteOffered([id]);
      // Becoming ready again clears the note.
      const [{ claim: by } = assert.fail()] = (await takeOffers(store, [TICKET])).tasks;
      await store.noteOffered([id]);
      await store.release(by);
      await advance(LIMITS.lostOfferMs);
      assert.deepEqual((await takeOffers(store, [])).lost, [id]);
    },
  },
  {
    title: 'an engine gets what waits for its agent, and workers get it back',
    async run({ store, advance }) {
      const ids: string[] = [];
      for (let i = 0; i < LIMITS.maxPromoted + 5; i++) ids.push((await create(store)).id);
      await deliver(store);
      assert.deepEqual(await taken(store), []);
      await advance(LIMITS.lostOfferMs);
      assert.deepEqual((await takeOffers(store, [])).lost.toSorted(), ids.toSorted());
      assert.deepEqual((await store.queues()).engines, { [AGENT]: ENGINE });
      assert.deepEqual(
        (await store.queues()).queues.map(({ agent, ready }) => [agent, ready]),
        [[AGENT, ids.length]],
      );
      await takeBack(store);
      await takeBack(store);
      assert.deepEqual((await takeOffers(store, [TICKET], { agents: [] })).results, ['refused']);
      const back = [...(await taken(store)), ...(await taken(store))];
      assert.deepEqual(back.toSorted(), ids.toSorted());
      assert.deepEqual((await store.queues()).engines, {});
    },
  },
  {
    title: 'only one engine can deliver an agent',
    async run({ store }) {
      await deliver(store);
      await deliver(store);
      assert.deepEqual(await store.setEngine(AGENT, 'another'), { result: 'refused', engine: ENGINE });
      await takeBack(store);
      assert.equal((await store.setEngine(AGENT, 'another')).result, 'set');
      await assert.rejects(store.setEngine('', ENGINE), /agent/);
      await assert.rejects(store.setEngine(AGENT, ''), /engine/);
    },
  },
  {
    title: 'what an engine lost until a given time is offered again',
    async run({ store, advance }) {
      await deliver(store);
      const { id } = await create(store);
      await advance(LIMITS.lostOfferMs);
      await store.noteOffered([id]);
      const { now } = await take(store);
      assert.equal((await store.setEngine(AGENT, ENGINE, { lostBefore: now - 1 })).result, 'set');
      assert.deepEqual((await takeOffers(store, [])).lost, []);
      await advance(LIMITS.offerIntervalMs);
      await store.setEngine(AGENT, ENGINE, { lostBefore: now });
      assert.deepEqual((await takeOffers(store, [])).lost, [id]);
    },
  },
  {
    title: 'any worker settles what is cancelled, and undoes it if it has the agent',
    async run({ store }) {
      await deliver(store);
      for (const undo of [false, true]) {
        const { ref, by } = await bring(store, 'running');
        await store.cancel(ref, undefined, { undo });
        await store.release(by);
        assert.deepEqual(await taken(store, { agents: undo ? [AGENT] : ['writer'] }), [ref.id]);
      }
    },
  },
];
