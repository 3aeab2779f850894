import assert from 'node:assert/strict';
import { bring, type ContractCase, claim, create, nth, record, TENANT, tryClaim, usingResource } from '../../case.ts';

/** Who sees what. */
export const visibilityCases: readonly ContractCase[] = [
  {
    title: 'another tenant sees nothing of a task: no record, no journal, no list, no conversation',
    async run({ store }) {
      const { id } = await create(store, { conversation: 'c' });
      await claim(store, id);
      await store.append(nth(store, id, 1), { after: 0, events: ['secret'] });
      const foreign = { tenant: 'other', id };
      assert.equal(await store.get(foreign), undefined);
      assert.deepEqual(await store.read(foreign), []);
      assert.deepEqual((await store.list({ tenant: 'other' })).tasks, []);
      assert.equal(await store.conversation({ tenant: 'other', conversation: 'c' }), undefined);
    },
  },
  {
    title: 'another tenant cannot cancel or command a task, or find out that it exists',
    async run({ store }) {
      const { id } = await bring(store, 'running');
      const [foreign, nothing] = [
        { tenant: 'other', id },
        { tenant: 'other', id: 't-nothing' },
      ];
      assert.deepEqual(await store.cancel(foreign), await store.cancel(nothing));
      const command = { type: 'cancel-call', callId: 'c' } as const;
      assert.deepEqual(await store.send(foreign, command), await store.send(nothing, command));
      const { status, commands } = await record(store, id);
      assert.deepEqual([status, commands], ['running', []]);
    },
  },
  {
    title: 'another tenant cannot cancel a conversation of the same name',
    async run({ store }) {
      const { id } = await create(store, { conversation: 'c' });
      await store.cancel({ tenant: 'other', conversation: 'c' });
      assert.equal((await record(store, id)).status, 'init');
    },
  },
  {
    title: 'a list returns the newest first, page by page, each once',
    async run({ store, advance }) {
      const ids: string[] = [];
      for (let i = 0; i < 7; i++) {
        ids.unshift((await create(store)).id);
        await advance(i % 2);
      }
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await store.list({ tenant: TENANT, limit: 3, ...(cursor !== undefined && { cursor }) });
        seen.push(...page.tasks.map(({ id }) => id));
        cursor = page.next;
      } while (cursor !== undefined);
      assert.deepEqual(seen.toSorted(), ids.toSorted());
      const times = await Promise.all(seen.map(async (id) => (await record(store, id)).createdAt));
      assert.deepEqual(
        times,
        times.toSorted((a, b) => b - a),
      );
    },
  },
  {
    title: 'tasks that were created at the same time are each listed once, with any page size',
    async run({ store }) {
      const created = await Promise.all(Array.from({ length: 120 }, () => create(store)));
      for (const filter of [{}, { status: 'init' }] as const) {
        const seen: string[] = [];
        for (let next: { cursor?: string } | undefined = {}; next !== undefined; ) {
          const page = await store.list({ tenant: TENANT, limit: 7, ...filter, ...next });
          seen.push(...page.tasks.map(({ id }) => id));
          next = page.next === undefined ? undefined : { cursor: page.next };
        }
        assert.deepEqual(seen.toSorted(), created.map(({ id }) => id).toSorted());
      }
    },
  },
  {
    title: 'a list can be filtered by status and by conversation',
    async run({ store }) {
      const running = await bring(store, 'running');
      const other = await create(store, { conversation: 'c' });
      const ids = async (filter: object) => (await store.list({ tenant: TENANT, ...filter })).tasks.map(({ id }) => id);
      assert.deepEqual(await ids({ status: 'running' }), [running.id]);
      assert.deepEqual(await ids({ conversation: 'c' }), [other.id]);
      assert.deepEqual(await ids({ conversation: 'c', status: 'running' }), []);
    },
  },
  {
    title: 'a list can be limited to the background tasks of a conversation, until they are removed',
    async run({ store }) {
      const [first, second] = [
        await create(store, { key: 'background/c/1' }),
        await create(store, { key: 'background/c/2' }),
      ];
      await create(store, { key: 'background/c/d/1' });
      await create(store, { key: 'background/c' });
      await create(store, { key: 'background/c/3', conversation: 'other' });
      await create(store, { key: 'background/c/1', tenant: 'other' });
      await create(store, { conversation: 'c' });
      const ids = async (filter: object) =>
        (await store.list({ tenant: TENANT, backgroundOf: 'c', ...filter })).tasks.map(({ id }) => id).toSorted();
      assert.deepEqual(await ids({}), [first.id, second.id].toSorted());
      await store.cancel({ tenant: TENANT, id: first.id });
      assert.deepEqual(await ids({ status: 'init' }), [second.id]);
      assert.equal((await ids({ limit: 1 })).length, 1);
      await store.remove({ tenant: TENANT, id: first.id });
      assert.deepEqual(await ids({}), [second.id]);
    },
  },
  {
    title: 'a limit that is not a count is refused by name',
    async run({ store }) {
      await assert.rejects(store.list({ tenant: TENANT, limit: 0 }), /limit/);
      await assert.rejects(store.sweep({ limit: -1 }), /limit/);
    },
  },
  {
    title: 'the record of an ended task never changes again',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'success');
      const before = await record(store, id);
      await store.cancel(ref, {}, { mode: 'kill' });
      await store.send(ref, { type: 'steer', message: 'x' });
      await tryClaim(store, id, { worker: 'w2' });
      await store.finish(by, { status: 'failed' });
      assert.deepEqual(await record(store, id), before);
    },
  },
  {
    title: 'a closed store refuses everything and can be closed again',
    async run({ store }) {
      await store[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await assert.rejects(create(store), { code: 'STORE_CLOSED' });
      await assert.rejects(store.get({ tenant: TENANT, id: 'x' }), { code: 'STORE_CLOSED' });
    },
  },
  {
    title: 'when two clients claim a task, one succeeds',
    needs: 'second client',
    async run({ store, openSecond }) {
      await usingResource(await openSecond(), async (second) => {
        for (let i = 0; i < 10; i++) {
          const { id } = await create(store);
          const claims = await Promise.all([
            tryClaim(store, id, { worker: 'a' }),
            tryClaim(second, id, { worker: 'b' }),
          ]);
          assert.deepEqual(claims.map(({ result }) => result).toSorted(), ['claimed', 'held']);
        }
      });
    },
  },
];
