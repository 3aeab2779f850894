import assert from 'node:assert/strict';
import { LIMITS } from '../../../ledger/rules/rules.ts';
import type { CreateReceipt } from '../../../store.ts';
import type { NewTask } from '../../../task.ts';
import { bring, type ContractCase, claim, nth, record, SHORT_MS, TENANT } from '../../case.ts';
import { CONVERSATION, say, statuses } from '../../talk.ts';

const WANTED: NewTask = { tenant: TENANT, agent: 'assistant', input: 'hello' };
const STEER = { type: 'steer', message: 'be brief' } as const;

/** Sends a request twice, like a client that lost the response. */
export async function twice<T>(ask: () => Promise<T>): Promise<readonly [T, T]> {
  return [await ask(), await ask()];
}

const created = (receipt: CreateReceipt) =>
  receipt.result === 'created' ? receipt : assert.fail(`expected a task, got ${receipt.result}`);

/** Requests that are repeated because their response was lost. */
export const nonceCases: readonly ContractCase[] = [
  {
    title: 'a task that is created again with the same nonce exists once, and the receipt is the same',
    async run({ store }) {
      const [first, again] = await twice(() => store.create(WANTED, { nonce: 'n1' }));
      assert.deepEqual(created(again), created(first));
      assert.equal((await store.list({ tenant: TENANT })).tasks.length, 1);
    },
  },
  {
    title: 'with another nonce it is another task',
    async run({ store }) {
      const one = created(await store.create(WANTED, { nonce: 'n1' }));
      const other = created(await store.create(WANTED, { nonce: 'n2' }));
      assert.notEqual(one.task.id, other.task.id);
    },
  },
  {
    title: 'one nonce in two tenants, or in two conversations, makes two tasks',
    async run({ store }) {
      const asked = [{}, { tenant: 'other' }, { conversation: 'a' }, { conversation: 'b' }];
      const receipts = await Promise.all(asked.map((rest) => store.create({ ...WANTED, ...rest }, { nonce: 'n' })));
      assert.equal(new Set(receipts.map((receipt) => created(receipt).task.id)).size, asked.length);
    },
  },
  {
    title: 'with a key, the nonce distinguishes the request that created the task from later ones',
    async run({ store }) {
      const wanted = { ...WANTED, key: 'k' };
      const [first, again] = await twice(() => store.create(wanted, { nonce: 'n1' }));
      assert.deepEqual(created(again), created(first));
      assert.equal((await store.create(wanted, { nonce: 'n2' })).result, 'duplicate');
      assert.equal((await store.create(wanted)).result, 'duplicate');
    },
  },
  {
    title: 'a creation that is repeated after the end of its task returns the ended task',
    async run({ store }) {
      const { id } = created(await store.create(WANTED, { nonce: 'n' })).task;
      await claim(store, id);
      await store.finish(nth(store, id, 1), { status: 'success', answer: 'done' });
      const again = created(await store.create(WANTED, { nonce: 'n' }));
      assert.deepEqual(again.task, await record(store, id));
      assert.equal(again.task.outcome?.answer, 'done');
    },
  },
  {
    title: 'a nonce is forgotten with its task',
    options: { retentionMs: SHORT_MS },
    async run({ store, advance }) {
      const { id } = created(await store.create(WANTED, { nonce: 'n' })).task;
      await store.send({ tenant: TENANT, id }, STEER, { nonce: 's' });
      await claim(store, id);
      await store.finish(nth(store, id, 1), { status: 'success' });
      await advance(2 * SHORT_MS);
      const again = created(await store.create(WANTED, { nonce: 'n' }));
      assert.deepEqual([again.task.status, again.task.epoch], ['init', 0]);
      assert.deepEqual(await store.send({ tenant: TENANT, id }, STEER, { nonce: 's' }), {
        result: 'accepted',
        number: 1,
      });
      assert.equal((await record(store, id)).commands.length, 1);
    },
  },
  {
    title: 'a message that is sent again supersedes nothing else, and returns what it superseded the first time',
    async run({ store }) {
      const one = await say(store, 'one', 'replace');
      await claim(store, one.id);
      const two = await say(store, 'two', 'queue');
      const ask = () => store.create({ ...WANTED, ...CONVERSATION, key: 'm3' }, { nonce: 'n' });
      const first = created(await ask());
      assert.deepEqual(new Set(first.superseded), new Set([one.id, two.id]));
      const four = await say(store, 'four', 'queue');
      const again = created(await ask());
      assert.deepEqual([again.task.id, again.superseded], [first.task.id, first.superseded]);
      assert.deepEqual(await statuses(store, [one, two, first.task, four]), [
        'cancelling',
        'cancelled',
        'init',
        'init',
      ]);
    },
  },
  {
    title: 'a superseded message that is sent again stays superseded',
    async run({ store }) {
      const ask = () => store.create({ ...WANTED, ...CONVERSATION }, { nonce: 'n' });
      const { id } = created(await ask()).task;
      const newer = await say(store, 'newer', 'replace');
      assert.deepEqual([created(await ask()).task.id, created(await ask()).task.status], [id, 'cancelled']);
      assert.equal((await store.conversation(CONVERSATION))?.current, newer.id);
    },
  },
  {
    title: 'a steering message is delivered once, however often it is sent',
    async run({ store }) {
      const one = await say(store, 'one', 'replace');
      await claim(store, one.id);
      const [first, again] = await twice(() =>
        store.create({ ...WANTED, ...CONVERSATION }, { policy: 'steer', nonce: 'n' }),
      );
      assert.equal(created(first).steered, one.id);
      assert.deepEqual(again, first);
      assert.equal((await record(store, one.id)).commands.length, 1);
    },
  },
  {
    title: 'a message that is held back is merged once, however often it is sent',
    async run({ store, advance }) {
      await say(store, 'one', { debounceMs: SHORT_MS });
      const ask = () => store.create({ ...WANTED, ...CONVERSATION, debounceMs: SHORT_MS }, { nonce: 'n' });
      const [first, again] = await twice(ask);
      assert.deepEqual(created(again), created(first));
      await advance(SHORT_MS);
      assert.deepEqual((await claim(store, created(first).task.id)).inputs, ['one', 'hello']);
    },
  },
  {
    title: 'a refused message leaves nothing behind: sent again, it is decided again',
    async run({ store }) {
      const one = await say(store, 'one', 'replace');
      await claim(store, one.id);
      const ask = () => store.create({ ...WANTED, ...CONVERSATION }, { policy: 'reject', nonce: 'n' });
      assert.deepEqual(await twice(ask), [{ result: 'rejected' }, { result: 'rejected' }]);
      await store.finish(nth(store, one.id, 1), { status: 'success' });
      assert.equal((await ask()).result, 'created');
    },
  },
  {
    title: 'a command that is sent again with the same nonce is stored once and keeps its number',
    async run({ store }) {
      const { id, ref } = await bring(store, 'running');
      const [first, again] = await twice(() => store.send(ref, STEER, { nonce: 'n' }));
      assert.deepEqual([first, again], [{ result: 'accepted', number: 1 }, first]);
      assert.deepEqual(await store.send(ref, STEER), { result: 'accepted', number: 2 });
      assert.equal((await record(store, id)).commands.length, 2);
    },
  },
  {
    title: 'a command that was carried out is not carried out again, also after the end of its task',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      const ask = () => store.send(ref, STEER, { nonce: 'n' });
      const first = await ask();
      await store.append(by, { after: 0, events: [], done: [1] });
      assert.deepEqual(await ask(), first);
      assert.deepEqual((await record(store, id)).commands, []);
      await store.cancel(ref);
      assert.deepEqual(await ask(), first);
      await store.finish(by, { status: 'cancelled' });
      const before = await record(store, id);
      assert.deepEqual(await ask(), first);
      assert.deepEqual(await record(store, id), before);
    },
  },
  {
    title: 'one nonce for two tasks is two commands',
    async run({ store }) {
      const [one, other] = [await bring(store, 'running'), await bring(store, 'running')];
      for (const { ref } of [one, other]) await store.send(ref, STEER, { nonce: 'n' });
      for (const { id } of [one, other]) assert.equal((await record(store, id)).commands.length, 1);
    },
  },
  {
    title: `a command is recognised until ${LIMITS.maxNonces} newer ones were sent to its task, and then forgotten`,
    async run({ store }) {
      const { ref, by } = await bring(store, 'running');
      const first = await store.send(ref, STEER, { nonce: 'first' });
      const sendMore = async (from: number, count: number): Promise<void> => {
        for (let number = from; number < from + count; number++) {
          await store.send(ref, STEER);
          await store.append(by, { after: 0, events: [], done: [number] });
        }
      };
      await sendMore(2, LIMITS.maxNonces - 1);
      assert.deepEqual(await store.send(ref, STEER, { nonce: 'first' }), first);
      await sendMore(LIMITS.maxNonces + 1, 1);
      const forgotten = await store.send(ref, STEER, { nonce: 'first' });
      assert.deepEqual(forgotten, { result: 'accepted', number: LIMITS.maxNonces + 2 });
    },
  },
  {
    title: 'a nonce that is not a string is refused by name',
    async run({ store }) {
      const { ref } = await bring(store, 'running');
      await assert.rejects(store.create(WANTED, { nonce: '' }), /nonce/);
      await assert.rejects(store.send(ref, STEER, { nonce: '' }), /nonce/);
    },
  },
];
