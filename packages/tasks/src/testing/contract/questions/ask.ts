import assert from 'node:assert/strict';
import { LIMITS } from '../../../ledger/rules/rules.ts';
import { bring, type ContractCase, claim, create, nth, record, TENANT } from '../../case.ts';
import { CONVERSATION, say } from '../../talk.ts';
import { ask, askMore, assertRefused, close, liveQuestions, NO, park, states, toNewQuestion, YES } from './asking.ts';

/** What tasks ask, and how their workers close it. */
export const askCases: readonly ContractCase[] = [
  {
    title: 'a task without questions shows none',
    async run({ store }) {
      const { id, by } = await bring(store, 'running');
      const orders = await store.append(by, { after: 0, events: ['one'] });
      assert.deepEqual([orders.questions, (await record(store, id)).questions], [undefined, undefined]);
      assert.equal((await record(store, id)).waiting, undefined);
      assert.deepEqual(await store.questions({ tenant: TENANT }), { questions: [] });
      assert.deepEqual(await store.answer({ tenant: TENANT, id: `${id}.1` }, YES), { result: 'not-found' });
    },
  },
  {
    title: 'a question is stored in the step that journals it',
    async run({ store }) {
      const { id, by, asked, ref } = await ask(store, [{ kind: 'client', callId: 'é\u0000 "x"', expiresMs: 5_000 }]);
      const { questions, waiting, position } = await record(store, id);
      const [{ askedAt, ...question }] = questions as [NonNullable<typeof questions>[number]];
      assert.deepEqual([waiting, position], [1, 1]);
      const given = { id: asked[0], kind: 'client', callId: 'é\u0000 "x"', shown: 'digest' };
      assert.deepEqual(question, { ...given, expiresAt: askedAt + 5_000 });
      assert.deepEqual(await liveQuestions(store, by), questions);
      assert.deepEqual((await store.questions({ tenant: TENANT })).questions, questions);
      assert.equal((await store.list({ tenant: TENANT })).tasks[0]?.waiting, 1);
      assert.equal((await store.read(ref)).length, 1);
    },
  },
  {
    title: 'a batch that arrives twice asks once',
    async run({ store }) {
      const { id } = await create(store);
      const { by } = await claim(store, id);
      const batch = { after: 0, events: ['asked'], asks: [toNewQuestion(id, 1)] };
      const first = await store.append(by, batch);
      assert.deepEqual((await store.append(by, batch)).questions, first.questions);
      assert.deepEqual(await states(store, id), ['open']);
    },
  },
  {
    title: 'nothing is asked of a task that is being stopped, and the batch is not written',
    async run({ store }) {
      const { id, ref, by } = await bring(store, 'running');
      await store.cancel(ref);
      const asks = [toNewQuestion(id, 1)];
      await assertRefused(store.append(by, { after: 0, events: ['asked'], asks }), 'stopping');
      const { position, questions } = await record(store, id);
      assert.deepEqual([position, questions], [0, undefined]);
      await store.append(by, { after: 0, events: ['something else'] });
    },
  },
  {
    title: `a task has at most ${LIMITS.maxOpenQuestions} open questions; answered ones do not count`,
    async run({ store }) {
      const all = Array.from({ length: LIMITS.maxOpenQuestions }, () => ({}));
      const { id, by, asked } = await ask(store, all);
      await assertRefused(askMore(store, by, [{}]), 'full');
      assert.equal((await record(store, id)).position, LIMITS.maxOpenQuestions);
      await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
      await askMore(store, by, [{}]);
      await assertRefused(askMore(store, by, [{}]), 'full');
      assert.equal((await record(store, id)).waiting, LIMITS.maxOpenQuestions);
    },
  },
  {
    title: 'nothing is asked while a message is unread, and the batch that reads it may ask',
    async run({ store }) {
      const { id, by, asked } = await ask(store, [{}], { task: await say(store, 'one', 'queue') });
      await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
      const { steered } = await say(store, 'two', 'steer');
      await store.send({ tenant: TENANT, id }, { type: 'steer', message: 'three' });
      assert.equal(steered, id);
      await assertRefused(askMore(store, by, [{}]), 'unread');
      const asks = [toNewQuestion(id, 2)];
      const outdated = { events: ['again'], asks, closes: [{ id: asked[0]!, why: 'outdated' as const }] };
      await assertRefused(store.append(by, { after: 1, ...outdated }), 'unread');
      assert.deepEqual([(await record(store, id)).position, await states(store, id)], [1, ['given']]);
      await assertRefused(store.append(by, { after: 1, done: [1], ...outdated }), 'unread');
      await store.append(by, { after: 1, done: [1, 2], ...outdated });
      assert.deepEqual(await states(store, id), ['outdated', 'open']);
      assert.equal(
        (await store.list({ ...CONVERSATION, status: 'cancelled' })).tasks[0]?.outcome?.reason?.kind,
        'steered',
      );
      assert.deepEqual(await park(store, by), { result: 'parked' });
    },
  },
  {
    title: 'other commands, and messages that wait for their turn, do not keep a task from asking',
    async run({ store }) {
      const { id, by } = await ask(store, [{}], { task: await say(store, 'one', 'queue') });
      await store.send({ tenant: TENANT, id }, { type: 'cancel-call', callId: 'none' });
      await say(store, 'two', 'queue');
      await askMore(store, by, [{}]);
      assert.deepEqual(await states(store, id), ['withdrawn', 'open']);
    },
  },
  {
    title: 'a message that the run cannot read is left to its own task, and keeps no one from asking',
    async run({ store }) {
      const { id } = await say(store, 'one', 'queue');
      const { by } = await claim(store, id);
      const { id: next } = await say(store, 'two', 'steer');
      await store.append(by, { after: 0, events: ['no message'], declined: [1] });
      await askMore(store, by, [{}]);
      assert.deepEqual(await park(store, by), { result: 'parked' });
      assert.deepEqual([(await record(store, next)).status, (await record(store, next)).stage], ['init', 'queued']);
      await store.cancel({ tenant: TENANT, id: next });
      assert.deepEqual((await record(store, id)).stage, 'parked');
    },
  },
  {
    title: 'a question is asked once, and its id is of its task',
    async run({ store }) {
      const { id, by } = await ask(store);
      const again = { after: 1, events: ['again'], asks: [toNewQuestion(id, 1)] };
      await assertRefused(store.append(by, again), 'changed');
      const other = { after: 1, events: ['other'], asks: [toNewQuestion('t-other', 2)] };
      await assert.rejects(store.append(by, other), TypeError);
      const twice = [toNewQuestion(id, 2), toNewQuestion(id, 2)];
      await assert.rejects(store.append(by, { after: 1, events: ['twice'], asks: twice }), TypeError);
      await assert.rejects(store.append(by, { after: 1, events: [], asks: [toNewQuestion(id, 2)] }), TypeError);
      assert.equal((await record(store, id)).position, 1);
    },
  },
  {
    title: 'the step that journals what became of an answer closes its question, once',
    async run({ store }) {
      const { id, by, asked } = await ask(store, [{}, {}]);
      await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
      await assertRefused(close(store, by, { answered: [asked[1]!] }), 'changed');
      await assertRefused(close(store, by, { journaled: [asked[0]!] }), 'changed');
      await assertRefused(close(store, by, { answered: [`${id}.none`] }), 'changed');
      await assertRefused(close(store, by, { answered: asked }), 'changed');
      const { questions } = await close(store, by, { answered: [asked[0]!] });
      assert.deepEqual(
        questions?.map((one) => one.id),
        [asked[1]],
      );
      assert.deepEqual(await states(store, id), ['answered', 'open']);
      await assertRefused(close(store, by, { answered: [asked[0]!] }), 'changed');
      const [first] = (await record(store, id)).questions!;
      assert.deepEqual([first?.answer?.value, first?.answer?.by], [YES.value, YES.by]);
    },
  },
  {
    title: 'an answered call does not start once its task is being stopped',
    async run({ store }) {
      const { id, ref, by, asked } = await ask(store);
      await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
      await store.cancel(ref);
      await assertRefused(close(store, by, { answered: asked }), 'stopping');
      assert.equal((await record(store, id)).position, 1);
      await store.finish(by, { status: 'cancelled' });
      assert.deepEqual(await states(store, id), ['ended']);
      const [question] = (await record(store, id)).questions!;
      assert.equal(question?.answer?.by, 'ada');
    },
  },
  {
    title: 'a question that is outdated is closed and asked again in one step, under a new id',
    async run({ store }) {
      const { id, by, asked } = await ask(store);
      await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
      const asks = [toNewQuestion(id, 2, { shown: 'another digest' })];
      const closes = [{ id: asked[0]!, why: 'outdated' as const }];
      const { questions } = await store.append(by, { after: 1, events: ['asked again'], asks, closes });
      assert.deepEqual(
        questions?.map((one) => [one.id, one.shown]),
        [[`${id}.2`, 'another digest']],
      );
      assert.deepEqual(await states(store, id), ['outdated', 'open']);
      assert.deepEqual(await store.answer({ tenant: TENANT, id: asked[0]! }, NO), {
        result: 'too-late',
        why: 'outdated',
      });
      assert.equal((await store.answer({ tenant: TENANT, id: `${id}.2` }, NO)).result, 'accepted');
    },
  },
  {
    title: 'only the holder of a task asks and closes',
    async run({ store }) {
      const { id, by, asked } = await ask(store);
      await store.answer({ tenant: TENANT, id: asked[0]! }, YES);
      await store.release(by);
      await claim(store, id);
      await assert.rejects(close(store, by, { answered: asked }), { code: 'LEASE_LOST' });
      await assert.rejects(askMore(store, by, [{}]), { code: 'LEASE_LOST' });
      await close(store, nth(store, id, 2), { answered: asked });
    },
  },
  {
    title: 'a batch that is too large asks nothing',
    options: { maxJournalBytes: 20 },
    async run({ store }) {
      const { id, by } = await bring(store, 'running');
      const asks = [toNewQuestion(id, 1)];
      const full = store.append(by, { after: 0, events: ['x'.repeat(30)], asks });
      await assert.rejects(full, { code: 'JOURNAL_FULL' });
      assert.deepEqual(await states(store, id), []);
    },
  },
  {
    title: 'open questions of a tenant are listed oldest first, in pages',
    async run({ store, advance }) {
      const ids: string[] = [];
      for (let i = 0; i < 3; i++) {
        const { asked } = await ask(store, [{}, {}]);
        ids.push(...asked);
        await advance(10);
      }
      await ask(store, [{}], { task: await create(store, { tenant: 'other' }) });
      const found: string[] = [];
      for (let cursor: string | undefined = '-1/'; cursor !== undefined; ) {
        const { questions, next } = await store.questions({ tenant: TENANT, limit: 4, cursor });
        found.push(...questions.map(({ id }) => id));
        cursor = next;
      }
      assert.deepEqual(found, ids);
      assert.equal((await store.questions({ tenant: 'other' })).questions.length, 1);
      await assert.rejects(store.questions({ tenant: TENANT, cursor: 'nonsense' }), TypeError);
    },
  },
  {
    title: 'at most 200 open questions are listed at a time',
    async run({ store }) {
      const all = Array.from({ length: LIMITS.maxOpenQuestions }, () => ({}));
      for (let i = 0; i < 7; i++) await ask(store, all);
      const { questions, next } = await store.questions({ tenant: TENANT, limit: 10_000 });
      assert.equal(questions.length, 200);
      const rest = await store.questions({ tenant: TENANT, ...(next !== undefined && { cursor: next }) });
      assert.deepEqual([rest.questions.length, rest.next], [7 * LIMITS.maxOpenQuestions - 200, undefined]);
    },
  },
];
