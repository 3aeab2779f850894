import { createMemoryStore } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { serve } from '../../../../test/server/served.ts';
import { claimFor } from '../../../../test/tasks/claimed.ts';

const TASK = { tenant: 'acme', agent: 'assistant', input: 'Book it', startedBy: 'ann' };

/** A server with tasks that ask, each one question. */
function setUp() {
  const store = createMemoryStore();
  const served = serve({ store });
  const ask = async (tenant = 'acme') => {
    const receipt = await store.create({ ...TASK, tenant });
    const { id } = (receipt as { task: { id: string } }).task;
    const claim = await claimFor(store, id, { worker: 'w' });
    const question = `${id}.q`;
    const asks = [{ id: question, callId: 'c', kind: 'approve' as const, shown: 'digest' }];
    await store.append(claim, { after: 0, events: ['asked'], asks });
    return { id, question, claim };
  };
  const closed = async (who: 'ann' | 'bob', query = '') => {
    const { json } = await served.ask(who, `GET /v1/questions/closed${query}`);
    return json as unknown as { questions: { id: string }[]; since?: number };
  };
  return { store, served, ask, closed };
}

test('closed questions are listed latest first: who answered what, and how each one closed', async () => {
  const { store, served, ask, closed } = setUp();
  expect(await closed('ann')).toEqual({ questions: [] });
  const [answered, cancelled, open, other] = [await ask(), await ask(), await ask(), await ask('other')];
  await served.ask('ann', `POST /v1/questions/${answered.question}`, { decision: 'no', why: 'too dear' });
  // Answered, and its worker has not acted on it.
  expect(await closed('ann')).toEqual({ questions: [] });
  const closes = [{ id: answered.question, why: 'answered' as const }];
  await store.append(answered.claim, { after: 1, events: ['closed'], closes });
  await store.cancel({ tenant: 'acme', id: cancelled.id });
  const page = await closed('ann');
  const task = { agent: 'assistant', title: 'Book it', startedBy: 'ann' };
  expect(page).toMatchObject({
    questions: [
      { id: cancelled.question, task: { ...task, id: cancelled.id }, closed: { why: 'cancelled' } },
      {
        id: answered.question,
        task: { ...task, id: answered.id },
        answer: { by: 'ann', value: { decision: 'no', why: 'too dear' } },
        closed: { why: 'answered' },
      },
    ],
  });
  expect(page.questions).toHaveLength(2);
  expect(page).not.toHaveProperty('since');
  expect((await closed('ann', '?limit=1')).questions).toHaveLength(1);
  expect(await served.ask('ann', 'GET /v1/questions/closed?limit=201')).toMatchObject({ status: 400 });
  await store.finish(other.claim, { status: 'success' });
  expect((await closed('bob')).questions).toMatchObject([{ id: other.question, closed: { why: 'ended' } }]);
  await store.finish(open.claim, { status: 'success' });
  expect((await closed('ann')).questions).toHaveLength(3);
});

test('a report over more tasks than are read shows from when it is complete', async () => {
  const { ask, closed, store } = setUp();
  for (let i = 0; i < 201; i++) await store.finish((await ask()).claim, { status: 'success' });
  const { questions, since } = await closed('ann');
  expect(questions).toHaveLength(200);
  const { tasks } = await store.list({ tenant: 'acme', limit: 200 });
  expect(since).toBe(tasks.at(-1)!.createdAt);
});
