import assert from 'node:assert/strict';
import { SIZES } from '../../../ledger/rules/rules.ts';
import { bring, type ContractCase, claim, create, record } from '../../case.ts';
import { CONVERSATION, say } from '../../talk.ts';

/** What is handed in is bounded, in bytes of JSON. */
export const sizeCases: readonly ContractCase[] = [
  {
    title: 'an input or a command that is too large is refused by name, and leaves nothing behind',
    async run({ store }) {
      const large = 'ñ'.repeat(SIZES.inputBytes / 2);
      await assert.rejects(create(store, { input: large }), /^RangeError: input: \d+ bytes/u);
      const { ref } = await bring(store, 'running');
      await assert.rejects(store.send(ref, { type: 'steer', message: large }), /^RangeError: command: \d+ bytes/u);
      assert.equal((await store.list({ tenant: ref.tenant })).tasks.length, 1);
      const fits = await create(store, { input: large.slice(1) });
      assert.equal((await record(store, fits.id)).inputs[0], large.slice(1));
    },
  },
  {
    title: 'an outcome that is too large is cut, and the task still ends',
    async run({ store }) {
      const { by, ref } = await bring(store, 'running');
      const large = 'x'.repeat(SIZES.outcomeBytes);
      await store.finish(by, { status: 'success', answer: large, result: { large } });
      const { status, outcome } = await record(store, ref.id);
      assert.equal(status, 'success');
      assert.match(outcome?.answer ?? '', /^x+… \[\d+ of \d+ characters cut\]$/u);
      assert.deepEqual(outcome?.result, { cut: true, bytes: SIZES.outcomeBytes + '{"large":""}'.length });
    },
  },
  {
    title: 'a conversation whose history is too large takes no message until it is shorter',
    async run({ store }) {
      const first = await say(store, 'hello', 'queue');
      const waiting = await say(store, 'waits', 'queue');
      const messages = Array.from({ length: 16 }, () => 'x'.repeat(SIZES.historyBytes / 16));
      await store.finish((await claim(store, first.id)).by, { status: 'success', newMessages: messages });
      const receipt = await store.create({ ...CONVERSATION, agent: 'assistant', input: 'x' });
      assert.deepEqual(receipt, { result: 'full', what: 'history', limit: SIZES.historyBytes });
      await store.finish((await claim(store, waiting.id)).by, { status: 'success', history: ['in short'] });
      await say(store, 'again', 'queue');
    },
  },
];
