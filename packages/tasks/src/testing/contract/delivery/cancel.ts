import assert from 'node:assert/strict';
import type { TaskCommand } from '../../../task.ts';
import { bring, type ContractCase, claim, create, ordersFor, record, TENANT, tryClaim } from '../../case.ts';

/** Cancels, their levels and their receipts; commands. */
export const cancelCases: readonly ContractCase[] = [
  {
    title: 'a cancel before the start ends the task, which then cannot be claimed',
    async run({ store }) {
      const { id } = await create(store);
      const receipt = await store.cancel({ tenant: TENANT, id }, { kind: 'user', by: 'ann' });
      assert.deepEqual([receipt.result, 'status' in receipt && receipt.status], ['accepted', 'cancelled']);
      assert.deepEqual(await tryClaim(store, id, { worker: 'w1' }), { result: 'too-late', status: 'cancelled' });
      assert.deepEqual((await record(store, id)).outcome?.reason?.by, 'ann');
    },
  },
  {
    title: 'a reason is kept whole: kind, message, by, via and at',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      const reason = { kind: 'budget', message: 'too dear', by: 'ann', via: 'http', at: 123 };
      await store.cancel(ref, reason);
      assert.deepEqual((await ordersFor(store, by)).stop?.reason, reason);
      await store.finish(by, { status: 'cancelled', reason: { kind: 'user', at: 5 } });
      assert.deepEqual((await record(store, id)).outcome?.reason, reason);
    },
  },
  {
    title: 'a cancel without arguments has the kind user and the mode graceful',
    async run({ store }) {
      const { ref } = await bring(store, 'running');
      const receipt = await store.cancel(ref);
      assert.ok('reason' in receipt && receipt.reason.kind === 'user' && receipt.level === 'drain');
    },
  },
  ...(
    [
      ['graceful', 'drain', 12_000],
      ['now', 'abort', 2_000],
      ['kill', 'kill', 0],
      [{ drainMs: 5, abortMs: 7 }, 'drain', 12],
    ] as const
  ).map(
    ([mode, level, killMs]): ContractCase => ({
      title: `a cancel with ${JSON.stringify(mode)} starts at ${level} and pins its last level ${killMs} ms ahead`,
      async run({ store }) {
        const { ref, by } = await bring(store, 'running');
        const receipt = await store.cancel(ref, {}, { mode });
        const { stop, now } = await ordersFor(store, by);
        assert.ok(stop && 'killAt' in receipt && receipt.killAt === stop.killAt);
        assert.equal(stop.level, level);
        assert.ok(Math.abs(stop.killAt - now - killMs) <= 1_000);
      },
    }),
  ),
  {
    title: 'a second cancel that is not harder returns already, with the first reason',
    async run({ store }) {
      const { ref } = await bring(store, 'running');
      await store.cancel(ref, { by: 'first' });
      const second = await store.cancel(ref, { by: 'second' });
      assert.ok(second.result === 'unchanged' && second.reason.by === 'first');
    },
  },
  {
    title: 'a harder cancel escalates, keeps the first reason and shortens the deadlines',
    async run({ store }) {
      const { ref, by } = await bring(store, 'running');
      const first = await store.cancel(ref, { by: 'first' });
      const second = await store.cancel(ref, { by: 'second' }, { mode: 'now' });
      assert.ok(second.result === 'escalated' && second.reason.by === 'first' && second.level === 'abort');
      assert.ok('killAt' in first && second.killAt < first.killAt);
      assert.equal((await ordersFor(store, by)).stop?.level, 'abort');
    },
  },
  {
    title: 'a softer cancel never lowers the level',
    async run({ store }) {
      const { ref, by } = await bring(store, 'running');
      await store.cancel(ref, {}, { mode: 'kill' });
      assert.equal((await store.cancel(ref, {}, { mode: 'graceful' })).result, 'unchanged');
      assert.equal((await ordersFor(store, by)).stop?.level, 'kill');
    },
  },
  {
    title: 'a level counts as reached from its deadline',
    async run({ store, advance }) {
      const { ref } = await bring(store, 'running');
      await store.cancel(ref, {}, { mode: { drainMs: 100, abortMs: 50_000 } });
      await advance(100);
      const receipt = await store.cancel(ref, {}, { mode: { abortMs: 60_000 } });
      assert.ok(receipt.result === 'unchanged' && receipt.level === 'abort');
    },
  },
  {
    title: 'asking for undo later escalates, once',
    async run({ store }) {
      const { ref, by } = await bring(store, 'running');
      await store.cancel(ref, {}, { mode: 'kill' });
      assert.equal((await store.cancel(ref, {}, { mode: 'kill', undo: true })).result, 'escalated');
      assert.equal((await store.cancel(ref, {}, { mode: 'kill', undo: true })).result, 'unchanged');
      assert.equal((await ordersFor(store, by)).stop?.undo, true);
    },
  },
  {
    title: 'of many cancels at once exactly one is accepted',
    async run({ store }) {
      const { ref } = await bring(store, 'running');
      const receipts = await Promise.all(Array.from({ length: 20 }, (_, i) => store.cancel(ref, { by: `b${i}` })));
      assert.equal(receipts.filter(({ result }) => result === 'accepted').length, 1);
      const reasons = receipts.map((receipt) => ('reason' in receipt ? receipt.reason.by : undefined));
      assert.equal(new Set(reasons).size, 1);
    },
  },
  {
    title: 'after an accepted cancel a success becomes cancelled, with the result kept and complete',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      await store.cancel(ref, { by: 'ann' });
      const receipt = await store.finish(by, { status: 'success', answer: 'all done' });
      assert.deepEqual(receipt, { result: 'finished', status: 'cancelled' });
      const { outcome } = await record(store, id);
      assert.deepEqual(
        [outcome?.status, outcome?.answer, outcome?.isComplete, outcome?.reason?.by],
        ['cancelled', 'all done', true, 'ann'],
      );
    },
  },
  {
    title: 'a run that was interrupted is cancelled and not complete',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      await store.cancel(ref);
      await store.finish(by, { status: 'cancelled', answer: 'half' });
      assert.equal((await record(store, id)).outcome?.isComplete, false);
    },
  },
  {
    title: 'a run that stopped by itself is cancelled for its own reason',
    async run({ store }) {
      const { id, by } = await bring(store, 'running');
      const reason = { kind: 'deadline', at: 7 };
      await store.finish(by, { status: 'cancelled', reason });
      assert.deepEqual((await record(store, id)).outcome?.reason, reason);
    },
  },
  ...(['success', 'failed', 'cancelled'] as const).map(
    (status): ContractCase => ({
      title: `a cancel of a task that is ${status} is too late and says so`,
      async run({ store }) {
        const { ref } = await bring(store, status);
        assert.deepEqual(await store.cancel(ref, {}, { mode: 'kill' }), { result: 'too-late', status });
      },
    }),
  ),
  {
    title: 'a cancel of a task that does not exist is unknown',
    async run({ store }) {
      assert.deepEqual(await store.cancel({ tenant: TENANT, id: 't-nothing' }), { result: 'not-found' });
    },
  },
  {
    title: 'a cancel that races a finish is either accepted or too late, and the record agrees',
    async run({ store }) {
      for (let i = 0; i < 20; i++) {
        const { id, ref, by } = await bring(store, 'running');
        const finish = (): Promise<unknown> => store.finish(by, { status: 'success' });
        const cancel = () => store.cancel(ref);
        const [first, second] = i % 2 === 0 ? [cancel(), finish()] : [finish(), cancel()];
        const receipt = (i % 2 === 0 ? await first : await second) as Awaited<ReturnType<typeof cancel>>;
        await Promise.all([first, second]);
        const { status } = await record(store, id);
        if (receipt.result === 'too-late') assert.equal(status, receipt.status);
        else assert.deepEqual([receipt.result, status], ['accepted', 'cancelled']);
      }
    },
  },
  {
    title: 'commands are sent to the worker in order, repeatedly, until it confirms them',
    async run({ store }) {
      const { ref, by } = await bring(store, 'running');
      await store.send(ref, { type: 'cancel-call', callId: 'c1' });
      await store.send(ref, { type: 'cancel-call', callId: 'c2' });
      await store.send(ref, { type: 'steer', message: 'be brief' });
      const { commands } = await ordersFor(store, by);
      assert.deepEqual(
        commands.map(({ type, number }) => [type, number]),
        [
          ['cancel-call', 1],
          ['cancel-call', 2],
          ['steer', 3],
        ],
      );
      const left = await store.append(by, { after: 0, events: [], done: [1, 3] });
      assert.deepEqual(left.commands, [{ type: 'cancel-call', callId: 'c2', number: 2 }]);
      assert.deepEqual((await ordersFor(store, by)).commands, left.commands);
    },
  },
  {
    title: 'a command sent before the start waits for the worker',
    async run({ store }) {
      const { id } = await create(store);
      assert.deepEqual(await store.send({ tenant: TENANT, id }, { type: 'steer', message: 'hi' }), {
        result: 'accepted',
        number: 1,
      });
      assert.equal((await claim(store, id)).orders.commands.length, 1);
    },
  },
  {
    title: 'a command that was not confirmed goes to the next worker',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      await store.send(ref, { type: 'cancel-call', callId: 'c' });
      await store.release(by);
      assert.equal((await claim(store, id)).orders.commands[0]?.type, 'cancel-call');
    },
  },
  {
    title: 'a message sent from outside cannot name a task that it would end',
    async run({ store }) {
      const victim = await bring(store, 'init');
      const { ref, by } = await bring(store, 'running');
      const forged = { type: 'steer', message: 'x', task: victim.id } as const;
      await store.send(ref, forged);
      await store.append(by, { after: 0, events: [], done: [1] });
      assert.equal((await store.get(victim.ref))?.status, 'init');
    },
  },
  {
    title: 'numbers of commands never repeat',
    async run({ store }) {
      const { ref, by } = await bring(store, 'running');
      await store.send(ref, { type: 'steer', message: 'a' });
      await store.append(by, { after: 0, events: [], done: [1] });
      assert.deepEqual(await store.send(ref, { type: 'steer', message: 'b' }), { result: 'accepted', number: 2 });
    },
  },
  {
    title: 'commands beyond the limit of unconfirmed ones are refused',
    async run({ store }) {
      const { ref } = await bring(store, 'running');
      for (let i = 0; i < 100; i++) await store.send(ref, { type: 'steer', message: i });
      assert.deepEqual(await store.send(ref, { type: 'steer', message: 'one more' }), { result: 'full' });
    },
  },
  {
    title: 'a command that no worker would carry out is rejected and not stored',
    async run({ store }) {
      const { ref } = await bring(store, 'running');
      const approve = { type: 'approve', callId: 'c', decision: 'yes' } as unknown as TaskCommand;
      await assert.rejects(
        store.send(ref, approve),
        /^SettingsError: command\.type: expected 'cancel-call' or 'steer'/,
      );
      const nameless = { type: 'cancel-call' } as TaskCommand;
      await assert.rejects(store.send(ref, nameless), /^SettingsError: command\.callId: /);
      assert.deepEqual(await store.send(ref, { type: 'steer', message: 'a' }), { result: 'accepted', number: 1 });
    },
  },
  {
    title: 'a command to a task that does not exist is unknown',
    async run({ store }) {
      const receipt = await store.send({ tenant: TENANT, id: 't-nothing' }, { type: 'steer', message: 'x' });
      assert.deepEqual(receipt, { result: 'not-found' });
    },
  },
];
