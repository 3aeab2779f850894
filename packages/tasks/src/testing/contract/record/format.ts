import assert from 'node:assert/strict';
import { FORMAT } from '../../../ledger/rules/format.ts';
import { bring, type ContractCase, create, record, TENANT, tryClaim } from '../../case.ts';

/** Another version may lay the data out in another way while processes of this one are connected. */
export const formatCases: readonly ContractCase[] = [
  {
    title: 'a client that is connected changes nothing once the data has another format',
    needs: 'another format',
    async run({ store, setFormat }) {
      const { id, ref, by } = await bring(store, 'running');
      const waiting = await create(store);
      const before = await record(store, id);
      const take = {
        session: 's',
        worker: 'w',
        leaseMs: 1_000,
        takeNumber: 1,
        claim: 'c',
        agents: ['assistant'],
        limit: 1,
      };
      const operations: Readonly<Record<string, () => Promise<unknown>>> = {
        create: () => create(store),
        'create in a conversation': () => create(store, { conversation: 'c' }),
        take: () => store.take(take),
        claim: () => tryClaim(store, waiting.id),
        heartbeat: () => store.heartbeat({ session: by.session, count: 1 }),
        append: () => store.append(by, { after: 0, events: ['x'] }),
        send: () => store.send(ref, { type: 'steer', message: 'x' }),
        cancel: () => store.cancel(ref),
        'cancel a conversation': () => store.cancel({ tenant: TENANT, conversation: 'c' }),
        release: () => store.release(by),
        finish: () => store.finish(by, { status: 'success' }),
        sweep: () => store.sweep(),
      };
      for (const format of [FORMAT + 1, FORMAT - 1]) {
        await setFormat(format);
        for (const [name, operation] of Object.entries(operations)) {
          await assert.rejects(
            operation,
            (error: unknown) => (error as { code?: string }).code === 'STORE_SETUP',
            name,
          );
        }
      }
      await setFormat(FORMAT);
      assert.deepEqual(await record(store, id), before);
      assert.equal((await store.finish(by, { status: 'success' })).status, 'success');
    },
  },
];
