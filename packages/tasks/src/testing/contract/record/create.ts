import assert from 'node:assert/strict';
import { type ContractCase, claim, create, record, TENANT, tryClaim } from '../../case.ts';

/** What is written down when a task is created. */
export const createCases: readonly ContractCase[] = [
  {
    title: 'a new task is init and keeps its tenant, agent and input',
    async run({ store }) {
      const { id } = await create(store, { input: { text: 'hi', n: [1, null] } });
      const { tenant, agent, inputs, status, epoch, position } = await record(store, id);
      assert.deepEqual(
        { tenant, agent, inputs, status, epoch, position },
        {
          tenant: TENANT,
          agent: 'assistant',
          inputs: [{ text: 'hi', n: [1, null] }],
          status: 'init',
          epoch: 0,
          position: 0,
        },
      );
    },
  },
  {
    title: 'a task keeps the trace context of what created it, and of what cancelled it',
    async run({ store }) {
      const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
      const stopped = '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00';
      for (const where of [{}, { conversation: 'c' }, { deadline: Date.now() + 3_600_000 }]) {
        const created = await create(store, { ...where, traceparent });
        assert.equal(created.traceparent, traceparent);
        const { task } = await claim(store, created.id);
        assert.equal(task.traceparent, traceparent);
        await store.cancel({ tenant: TENANT, id: created.id }, { traceparent: stopped });
        const { stop, traceparent: kept } = await record(store, created.id);
        assert.deepEqual([stop?.reason.traceparent, kept], [stopped, traceparent]);
      }
      assert.equal('traceparent' in (await create(store)), false);
      const wrong = ['', 'x', traceparent.toUpperCase(), `01${traceparent.slice(2)}`, `${traceparent}-more`];
      for (const one of wrong) await assert.rejects(create(store, { traceparent: one }), /traceparent: expected 00-/);
    },
  },
  {
    title: 'a task keeps who started it',
    async run({ store }) {
      for (const where of [{}, { conversation: 'c' }, { deadline: Date.now() + 3_600_000 }]) {
        const { id, startedBy } = await create(store, { ...where, startedBy: 'ann' });
        const { task } = await claim(store, id);
        const listed = (await store.list({ tenant: TENANT })).tasks.find((one) => one.id === id);
        const shown = [startedBy, task.startedBy, listed?.startedBy, (await record(store, id)).startedBy];
        assert.deepEqual(shown, ['ann', 'ann', 'ann', 'ann']);
        await store.cancel({ tenant: TENANT, id });
      }
      assert.equal('startedBy' in (await create(store)), false);
      await assert.rejects(create(store, { startedBy: '' }), /startedBy: expected a text/);
    },
  },
  {
    title: 'two tasks without a key are two tasks',
    async run({ store }) {
      assert.notEqual((await create(store)).id, (await create(store)).id);
    },
  },
  {
    title: 'a task created twice under one key exists once, and a repeat is told from another input',
    async run({ store }) {
      const wanted = { tenant: TENANT, agent: 'assistant', key: 'm1' };
      const task = await create(store, { key: 'm1', input: { one: 1, two: [2] } });
      const again = await store.create({ ...wanted, input: { two: [2], one: 1 } });
      assert.deepEqual(again, { result: 'duplicate', task, isSameInput: true });
      const other = await store.create({ ...wanted, input: { one: 1, two: [3] } });
      assert.deepEqual(other, { result: 'duplicate', task, isSameInput: false });
    },
  },
  {
    title: 'a task is found by its key, in its tenant and its conversation only',
    async run({ store }) {
      const { id } = await create(store, { key: 'm1' });
      const { id: said } = await create(store, { key: 'm1', conversation: 'c' });
      const found = async (rest: { tenant?: string; key?: string; conversation?: string }) =>
        (await store.find({ tenant: TENANT, key: 'm1', ...rest }))?.id;
      assert.deepEqual([await found({}), await found({ conversation: 'c' })], [id, said]);
      const others = [await found({ tenant: 'other' }), await found({ key: 'm2' }), await found({ conversation: 'd' })];
      assert.deepEqual(others, [undefined, undefined, undefined]);
      await assert.rejects(found({ key: '' }), /key/);
    },
  },
  {
    title: 'a key stays in use after its task has ended',
    async run({ store }) {
      const { id } = await create(store, { key: 'm1' });
      const { by } = await claim(store, id);
      await store.finish(by, { status: 'success', answer: 'done' });
      const again = await store.create({ tenant: TENANT, agent: 'assistant', input: 'x', key: 'm1' });
      assert.equal(again.result === 'duplicate' && again.task.outcome?.answer, 'done');
    },
  },
  {
    title: 'one key in two tenants names two tasks',
    async run({ store }) {
      assert.notEqual((await create(store, { key: 'k' })).id, (await create(store, { key: 'k', tenant: 'other' })).id);
    },
  },
  {
    title: 'one key in two conversations names two tasks',
    async run({ store }) {
      const a = await create(store, { key: 'k', conversation: 'a' });
      const b = await create(store, { key: 'k', conversation: 'b' });
      assert.notEqual(a.id, b.id);
    },
  },
  {
    title: 'changing an input after the creation does not change the task',
    async run({ store }) {
      const input = { list: ['a'] };
      const { id } = await create(store, { input });
      input.list.push('b');
      assert.deepEqual((await record(store, id)).inputs, [{ list: ['a'] }]);
    },
  },
  {
    title: 'changing a returned record does not change the task',
    async run({ store }) {
      const { id } = await create(store, { input: { list: ['a'] } });
      ((await record(store, id)).inputs as { list: string[] }[])[0]!.list.push('b');
      assert.deepEqual((await record(store, id)).inputs, [{ list: ['a'] }]);
    },
  },
  {
    title: 'text of any script and size is stored unchanged',
    async run({ store }) {
      const input = `ñ 漢字 🙂 \u0000 \\ " ${'x'.repeat(100_000)}`;
      const { id } = await create(store, { input });
      assert.equal((await record(store, id)).inputs[0], input);
    },
  },
  ...(['tenant', 'agent'] as const).map(
    (argument): ContractCase => ({
      title: `an empty ${argument} is refused by name`,
      async run({ store }) {
        await assert.rejects(create(store, { [argument]: '' }), new RegExp(argument));
      },
    }),
  ),
  {
    title: 'a lease that is not a time is refused by name',
    async run({ store }) {
      const { id } = await create(store);
      for (const leaseMs of [0, -1, Number.NaN]) await assert.rejects(tryClaim(store, id, { leaseMs }), /leaseMs/);
    },
  },
];
