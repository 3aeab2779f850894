import assert from 'node:assert/strict';
import { type ContractCase, claim, create, LEASE_MS, SHORT_MS, TENANT } from '../../case.ts';
import { take, taken } from './operate.ts';

/** What one worker or client does for all. */
export const fleetCases: readonly ContractCase[] = [
  {
    title: 'a task that waits past its deadline is ended by the sweep of any worker, also if nobody has its agent',
    async run({ store, advance }) {
      const deadline = (await store.queues()).now + SHORT_MS;
      const readStatus = async (id: string): Promise<string | undefined> =>
        (await store.get({ tenant: TENANT, id }))?.status;
      await taken(store, ['other']);
      await store.pause({ agent: 'paused' }, true);
      const ended = [
        await create(store, { agent: 'nobody', deadline }),
        await create(store, { agent: 'paused', deadline }),
        await create(store, { notBefore: deadline - 1, deadline }),
        await create(store, { conversation: 'held', debounceMs: LEASE_MS, deadline }),
        await create(store, { conversation: 'c', deadline }),
      ];
      const behind = await store.create(
        { tenant: TENANT, agent: 'writer', input: 1, conversation: 'c' },
        { policy: 'queue' },
      );
      const successor = behind.result === 'created' ? behind.task : assert.fail(behind.result);
      const left = [await create(store, { deadline: deadline + 10 * LEASE_MS }), successor];
      const { by: running } = await claim(store, (await create(store, { deadline })).id);
      await store.sweep();
      for (const { id } of [...ended, ...left]) assert.equal(await readStatus(id), 'init');
      await advance(LEASE_MS / 2);
      const asked = await take(store, ['other']);
      assert.equal(asked.result === 'taken' && asked.shouldSweep, true);
      assert.equal((await store.sweep({ limit: 2 })).hasMore, true);
      await store.sweep();
      for (const { id } of ended) {
        const { status, outcome } = (await store.get({ tenant: TENANT, id }))!;
        assert.deepEqual([status, outcome?.reason?.kind], ['cancelled', 'deadline']);
      }
      for (const { id } of left) assert.equal(await readStatus(id), 'init');
      assert.deepEqual([await readStatus(running.id), await taken(store, ['writer'])], ['running', [successor.id]]);
      assert.equal((await store.sweep()).hasMore, false);
    },
  },
  {
    title: 'a task that had begun and waits past its deadline is settled by any worker',
    async run({ store, advance }) {
      const deadline = (await store.queues()).now + SHORT_MS;
      const { by } = await claim(store, (await create(store, { deadline })).id);
      await store.append(by, { after: 0, events: ['said'] });
      await store.release(by);
      await advance(SHORT_MS);
      await store.sweep();
      assert.deepEqual(await taken(store, ['other']), [by.id]);
      const task = (await store.get({ tenant: TENANT, id: by.id }))!;
      assert.deepEqual([task.status, task.stop?.reason.kind], ['cancelling', 'deadline']);
    },
  },
  {
    title: 'what one client found out serves all until it is too old; then one of them finds it out again',
    async run({ store, advance }) {
      let calls = 0;
      const count = (): Promise<number> => Promise.resolve(++calls);
      const find = (): Promise<number | undefined> => store.findOnce(LEASE_MS, count);
      assert.deepEqual([await find(), await find(), calls], [1, 1, 1]);
      await advance(LEASE_MS);
      const found = await Promise.all(Array.from({ length: 10 }, find));
      assert.deepEqual([calls, found.filter((number) => number !== 1 && number !== 2)], [2, []]);
      for (const failing of [() => Promise.reject(new Error('down')), () => Promise.resolve(undefined)]) {
        await advance(LEASE_MS);
        await store.findOnce(LEASE_MS, failing).catch((error: unknown) => assert.match(String(error), /down/));
        assert.equal(await find(), 2);
      }
      await advance(LEASE_MS);
      assert.equal(await find(), 3);
      await assert.rejects(store.findOnce(0, count), /maxAgeMs/);
    },
  },
];
