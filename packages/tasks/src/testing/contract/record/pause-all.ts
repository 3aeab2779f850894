import assert from 'node:assert/strict';
import { type ContractCase, claim, create, tryClaim } from '../../case.ts';
import { taken } from './operate.ts';

/** A pause of everything. */
export const pauseAllCases: readonly ContractCase[] = [
  {
    title:
      'nothing is delivered while all is paused, also of agents and tenants that come later; a resume of all ends only that',
    async run({ store }) {
      const earlier = await create(store);
      const parted = await claim(store, (await create(store)).id);
      await store.pause({ all: true }, true);
      await store.pause({ all: true }, true);
      await store.pause({ agent: 'writer' }, true);
      const { id } = await create(store, { agent: 'newest', tenant: 'new' });
      const writer = await create(store, { agent: 'writer', tenant: 'other' });
      const agents = ['assistant', 'writer', 'newest'];
      assert.deepEqual(await taken(store, agents), []);
      assert.equal((await tryClaim(store, id)).result, 'waiting');
      assert.deepEqual(new Set((await store.queues()).paused), new Set([{ all: true }, { agent: 'writer' }]));
      // What runs goes on, and a cancel passes.
      assert.equal((await store.cancel(parted.task)).result, 'accepted');
      await store.release(parted.by);
      assert.deepEqual(await taken(store, ['nothing']), [parted.task.id]);
      await store.pause({ all: true }, false);
      await store.pause({ all: true }, false);
      assert.deepEqual((await store.queues()).paused, [{ agent: 'writer' }]);
      assert.deepEqual((await taken(store, agents)).toSorted(), [earlier.id, id].toSorted());
      await store.pause({ agent: 'writer' }, false);
      assert.deepEqual(await taken(store, agents), [writer.id]);
    },
  },
];
