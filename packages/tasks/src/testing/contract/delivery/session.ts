import assert from 'node:assert/strict';
import type { TaskStore } from '../../../store.ts';
import {
  assertFenced,
  bring,
  type ContractCase,
  claim,
  create,
  expire,
  LEASE_MS,
  SHORT_MS,
  TENANT,
  tryClaim,
} from '../../case.ts';
import { take, taken } from '../../talk.ts';

const createHeartbeat = (session: string, count: number, rest: object = {}) => ({ session, count, ...rest });

/** How workers keep what they have, and how it is taken away. */
export const sessionCases: readonly ContractCase[] = [
  {
    title: 'a heartbeat renews everything that a session holds',
    async run({ store, advance }) {
      const { id } = await create(store);
      const { by } = await claim(store, id, { leaseMs: SHORT_MS });
      for (let i = 0; i < 8; i++) {
        await advance(SHORT_MS / 3);
        assert.equal((await store.heartbeat(createHeartbeat(by.session, 1))).result, 'alive');
        assert.equal((await store.sweep()).reclaimed, 0);
      }
      await store.finish(by, { status: 'success' });
    },
  },
  {
    title: 'a late heartbeat is accepted as long as nothing was taken away',
    async run({ store, advance }) {
      const { by } = await bring(store, 'running');
      await advance(5 * LEASE_MS);
      assert.equal((await store.heartbeat(createHeartbeat(by.session, 1))).result, 'alive');
      assert.equal((await store.sweep()).reclaimed, 0);
    },
  },
  {
    title: 'a heartbeat of a session that never held anything returns gone',
    async run({ store }) {
      assert.deepEqual(await store.heartbeat(createHeartbeat('nobody', 0)), { result: 'session-ended' });
    },
  },
  {
    title: 'an order is returned with every heartbeat until it is confirmed',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      await store.send(ref, { type: 'steer', message: 'be brief' });
      await store.cancel(ref, { by: 'ann' });
      const orders = await unconfirmed(store, by.session);
      assert.deepEqual([orders.length, orders[0]?.id, orders[0]?.stop?.reason.by], [1, id, 'ann']);
      assert.equal((await unconfirmed(store, by.session)).length, 1);
      const { orderNumber } = orders[0]!;
      const confirmed = [{ ...by, orderNumber }];
      const beat = await store.heartbeat(createHeartbeat(by.session, 1, { confirmed }));
      assert.deepEqual(beat.result === 'alive' && beat.orders, []);
      assert.deepEqual(await unconfirmed(store, by.session), []);
      await store.cancel(ref, {}, { mode: 'kill' });
      assert.equal((await unconfirmed(store, by.session))[0]?.stop?.level, 'kill');
    },
  },
  {
    title: 'only the current holder of a task can confirm, and only the latest order',
    async run({ store, advance }) {
      const { id } = await create(store);
      const ref = { tenant: TENANT, id };
      const { by: old } = await claim(store, id, { leaseMs: SHORT_MS });
      await store.cancel(ref);
      const [first] = await unconfirmed(store, old.session);
      await expire({ store, advance }, SHORT_MS);
      const { by, orders } = await claim(store, id);
      assert.ok(orders.stop !== undefined);
      const { orderNumber } = orders;
      for (const confirmed of [
        { ...old, orderNumber },
        { ...by, orderNumber: orderNumber - 1 },
        { ...by, claim: old.claim, orderNumber },
      ]) {
        await store.heartbeat(createHeartbeat(by.session, 1, { confirmed: [confirmed] }));
        assert.equal((await unconfirmed(store, by.session)).length, 1);
      }
      assert.ok(first !== undefined);
      await store.heartbeat(createHeartbeat(by.session, 1, { confirmed: [{ ...by, orderNumber }] }));
      assert.deepEqual(await unconfirmed(store, by.session), []);
    },
  },
  {
    title: 'a worker whose count differs is told to read what it holds',
    async run({ store }) {
      const { id, by } = await bring(store, 'running');
      const beat = await store.heartbeat(createHeartbeat(by.session, 2));
      assert.ok(beat.result === 'alive' && beat.shouldReconcile);
      const { epoch, claim: nonce } = by;
      assert.deepEqual(await store.held({ session: by.session }), [{ id, epoch, claim: nonce }]);
      await store.finish(by, { status: 'success' });
      assert.deepEqual(await store.held({ session: by.session }), []);
    },
  },
  {
    title: 'after an outage every session gets another lease',
    async run({ store, advance }) {
      const { by } = await bring(store, 'running');
      await advance(10 * LEASE_MS);
      const swept = await store.sweep();
      assert.deepEqual([swept.reclaimed, swept.hasMore], [0, false]);
      await advance(LEASE_MS / 2);
      assert.equal((await store.sweep()).reclaimed, 0);
      await advance(LEASE_MS / 2);
      assert.equal((await store.sweep()).reclaimed, 1);
      await assertFenced(store.append(by, { after: 0, events: [] }));
    },
  },
  {
    title: 'when the clock goes back, no session lasts longer than its lease',
    async run({ store, advance }) {
      const { by } = await bring(store, 'running');
      await advance(-10 * LEASE_MS);
      const reclaimed: number[] = [];
      // Visits are close enough for no outage.
      for (let i = 0; i < 5; i++) {
        reclaimed.push((await store.sweep()).reclaimed);
        await advance(LEASE_MS / 3);
      }
      assert.deepEqual(reclaimed, [0, 0, 0, 1, 0]);
      await assertFenced(store.append(by, { after: 0, events: [] }));
    },
  },
  {
    title: 'when the clock goes back, a sweep returns when the first session expires by the new time',
    async run({ store, advance }) {
      await bring(store, 'running');
      await advance(-10 * LEASE_MS);
      const { nextExpiryAt, now } = await store.sweep();
      assert.ok(nextExpiryAt !== undefined && nextExpiryAt <= now + LEASE_MS, `${nextExpiryAt! - now} ms`);
    },
  },
  {
    title: 'a take or a heartbeat reports expired sessions, to one worker at a time',
    async run({ store, advance }) {
      await create(store);
      await take(store, { leaseMs: SHORT_MS });
      const other = await bring(store, 'running');
      for (let i = 0; i < 5; i++) {
        await advance(SHORT_MS / 3);
        const { shouldSweep } = await take(store, { leaseMs: SHORT_MS });
        if (!shouldSweep) continue;
        assert.equal((await take(store, { leaseMs: SHORT_MS })).shouldSweep, false);
        assert.equal((await store.sweep()).reclaimed, 1);
        assert.equal((await store.heartbeat(createHeartbeat(other.by.session, 1))).result, 'alive');
        return;
      }
      assert.fail('no worker was asked to sweep');
    },
  },
  {
    title: 'claims, which report no expired sessions, do not keep others from being asked to sweep',
    async run({ store, advance }) {
      await create(store);
      await take(store, { leaseMs: SHORT_MS });
      const other = await bring(store, 'running');
      for (let i = 0; i < 5; i++) {
        await advance(SHORT_MS / 3);
        assert.equal((await tryClaim(store, other.by.id, { leaseMs: SHORT_MS })).result, 'held');
        if ((await take(store, { leaseMs: SHORT_MS })).shouldSweep) return;
      }
      assert.fail('no worker was asked to sweep');
    },
  },
  {
    title: 'a sweep frees at most the requested number, and ends the session with the first',
    async run({ store, advance }) {
      for (let i = 0; i < 3; i++) await create(store);
      const { tasks } = await take(store, { leaseMs: SHORT_MS });
      await advance(SHORT_MS);
      await store.sweep();
      await advance(SHORT_MS);
      const swept = await store.sweep({ limit: 2 });
      assert.deepEqual([swept.reclaimed, swept.hasMore], [2, true]);
      assert.deepEqual(await store.heartbeat(createHeartbeat(tasks[0]!.claim.session, 3)), { result: 'session-ended' });
      assert.deepEqual([(await store.sweep()).reclaimed, (await store.sweep()).hasMore], [1, false]);
      assert.equal((await taken(store)).length, 3);
    },
  },
];

async function unconfirmed(store: TaskStore, session: string) {
  const beat = await store.heartbeat(createHeartbeat(session, 1));
  return beat.result === 'alive' ? beat.orders : assert.fail('the session is gone');
}
