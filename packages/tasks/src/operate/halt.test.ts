import { createVirtualWorld } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { createMemoryStore } from '../ledger/memory.ts';
import type { TaskStore } from '../store.ts';
import { claim, create, TENANT, tryClaim } from '../testing/case.ts';
import { askAndPark } from '../testing/contract/questions/asking.ts';
import { haltTasks } from './halt.ts';

test('a halt of all stops every tenant, names what does not end, and leaves what only waits', async () => {
  await using store = createMemoryStore();
  const { id } = await create(store);
  const deaf = await claim(store, (await create(store, { tenant: 'other', agent: 'writer' })).id);
  const parked = await askAndPark(store, [{}], { task: await create(store) });
  const receipt = await haltTasks(store, { all: true }, { waitMs: 0, reason: { kind: 'user', message: 'fire' } });
  expect(receipt).toMatchObject({ target: { all: true }, isQuiet: false, stopped: 2, left: 1, waiting: 1, others: 0 });
  expect(receipt.running).toMatchObject([{ id: deaf.task.id, tenant: 'other', agent: 'writer', status: 'cancelling' }]);
  expect(await store.get({ tenant: TENANT, id })).toMatchObject({
    status: 'cancelled',
    outcome: { reason: { message: 'fire' } },
  });
  expect(await store.get(parked.ref)).toMatchObject({ stage: 'parked' });
  const later = await create(store, { tenant: 'a-later-one' });
  expect(await tryClaim(store, later.id)).toMatchObject({ result: 'waiting' });
  await store.finish(deaf.by, { status: 'cancelled' });
  const again = await haltTasks(store, { all: true }, { waitMs: 0, parked: true });
  expect(again).toMatchObject({ stopped: 2, left: 1, waiting: 0 });
});

test('a halt sees a task that a worker took while it looked, and ends when its signal does', async () => {
  const world = createVirtualWorld();
  await using store = createMemoryStore({ world });
  const first = await create(store, { agent: 'writer' });
  let taken: Awaited<ReturnType<typeof claim>> | undefined;
  // A take whose transaction began before the pause was written.
  const late: TaskStore = {
    ...store,
    async tenants(page) {
      const answer = await store.tenants(page);
      if (taken !== undefined) return answer;
      await store.pause({ agent: 'writer' }, false);
      taken = await claim(store, first.id);
      await store.pause({ agent: 'writer' }, true);
      return answer;
    },
  };
  const receipt = await haltTasks(late, { agent: 'writer' }, { signal: AbortSignal.abort(), world });
  expect(receipt).toMatchObject({
    isQuiet: false,
    stopped: 1,
    left: 1,
    running: [{ id: first.id, status: 'cancelling' }],
  });
  const waits = haltTasks(store, { agent: 'writer' }, { world });
  await store.finish(taken!.by, { status: 'cancelled' });
  await world.clock.advance(1_000);
  expect(await waits).toMatchObject({ isQuiet: true, stopped: 0, left: 0 });
});
