import assert from 'node:assert/strict';
import { LIMITS } from '../../../ledger/rules/rules.ts';
import { type ContractCase, create, expire, SHORT_MS, TENANT, tryClaim } from '../../case.ts';
import { createTakeRequest, take } from '../../talk.ts';
import { createSuspects } from './crash.ts';
import { AGENT, deliver, TICKET, takeOffers, withOffers } from './offers.ts';

/** Pauses, limits and suspects of an agent that an engine delivers. */
export const offerLimitCases: readonly ContractCase[] = [
  {
    title: 'offers keep pauses, and a resume offers again',
    async run({ store, advance }) {
      await deliver(store);
      const { id } = await create(store);
      for (const target of [{ agent: AGENT }, { tenant: TENANT }, { all: true } as const]) {
        await store.pause(target, true);
        for (const offer of [TICKET, { ...TICKET, id }])
          assert.deepEqual((await takeOffers(store, [offer])).results, ['refused']);
        await advance(LIMITS.lostOfferMs);
        await store.noteOffered([id]);
        await withOffers(store, async (offered) => {
          await store.pause(target, false);
          assert.deepEqual(
            (await offered()).map((one) => one.id),
            [id],
          );
        });
        assert.deepEqual((await takeOffers(store, [])).lost, [id]);
        await advance(LIMITS.offerIntervalMs);
      }
      assert.deepEqual((await takeOffers(store, [TICKET])).ids, [id]);
    },
  },
  {
    title: 'offers keep the limits of their agent and tenant, and an end offers the next task',
    options: { maxRunningPerTenant: 1, maxRunningPerAgent: 2 },
    async run({ store, advance }) {
      await deliver(store);
      const ids = [(await create(store)).id];
      await advance(1);
      ids.push((await create(store)).id);
      const first = await takeOffers(store, [TICKET, TICKET]);
      assert.deepEqual(first.ids, [ids[0]]);
      assert.notEqual(first.results[1], 'taken');
      assert.deepEqual((await takeOffers(store, [{ ...TICKET, id: ids[1]! }])).results, ['refused']);
      await withOffers(store, async (offered) => {
        await store.finish(first.tasks[0]!.claim, { status: 'success' });
        assert.deepEqual([...new Set((await offered()).map((one) => one.id))], [ids[1]]);
      });
      assert.deepEqual((await takeOffers(store, [TICKET])).ids, [ids[1]]);
    },
  },
  {
    title: 'a limit on ready tasks counts those that wait for an engine',
    options: { maxReady: 2 },
    async run({ store }) {
      await deliver(store);
      for (let i = 0; i < 2; i++) await create(store);
      const receipt = await store.create({ tenant: TENANT, agent: AGENT, input: 'hello' });
      assert.equal(receipt.result, 'full');
    },
  },
  {
    title: 'a session takes one offered suspect at a time, and the other is offered again',
    async run(context) {
      const { store, advance } = context;
      await deliver(store);
      const suspects = await createSuspects(context, 2);
      const plain = await create(store);
      await take(store, { agents: ['nothing'] });
      const own = { ...createTakeRequest(), offers: [TICKET, TICKET, TICKET] };
      const first = await take(store, own);
      const ids = first.tasks.map(({ task }) => task.id);
      assert.equal(ids.length, 2);
      assert.ok(ids.includes(plain.id));
      const other = suspects.find((id) => !ids.includes(id))!;
      await advance(LIMITS.offerIntervalMs);
      await store.noteOffered([other]);
      const second = await take(store, {
        ...own,
        takeNumber: 2,
        claim: 'second',
        offers: [TICKET, { ...TICKET, id: other }],
      });
      assert.deepEqual(second.offers, ['refused', 'refused']);
      await advance(LIMITS.lostOfferMs);
      assert.deepEqual((await takeOffers(store, [])).lost, [other]);
      assert.deepEqual((await takeOffers(store, [{ ...TICKET, id: other }])).ids, [other]);
    },
  },
  {
    title: 'a task whose worker is lost is offered again',
    async run(context) {
      const { store } = context;
      await deliver(store);
      const { id } = await create(store);
      await takeOffers(store, [TICKET], { leaseMs: SHORT_MS });
      await withOffers(store, async (offered) => {
        await expire(context, SHORT_MS);
        assert.deepEqual(
          (await offered()).map((one) => one.id),
          [id],
        );
      });
      assert.equal((await tryClaim(store, id)).result, 'claimed');
    },
  },
];
