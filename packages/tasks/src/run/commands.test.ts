import { createAgent, createAgentTool, sleep, type Tool } from '@whoa/core';
import { callTools, type Planner, reply } from '@whoa/core/model';
import { flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { answerCall } from '../../../../test/tasks/answer-call.ts';
import { deferred, readFirstId, scripted, setUp, TASK, tool } from '../../../../test/tasks/runner-set-up.ts';
import { PendingQuestions } from '../follow/pending-questions.ts';
import { createTaskApprovals } from './questions/approvals.ts';

test('a single call can be stopped from outside while the run continues', async () => {
  const started = deferred<string>();
  const slow = tool('slow', async (_input, { callId, token }) => {
    started.happen(callId);
    await sleep(1_000_000, { clock: token.clock, token });
    return 'never';
  });
  const planner = scripted(
    () => callTools([{ id: 'c1', tool: 'slow', input: {} }]),
    () => reply('went on'),
  );
  const { runner, store } = setUp({ planner, tools: [slow] });
  const running = runner.run(TASK);
  await started.promise;
  await store.send({ tenant: 'acme', id: await readFirstId(store) }, { type: 'cancel-call', callId: 'c1' });
  expect(await running).toMatchObject({ status: 'success', answer: 'went on' });
});

test('a message sent to a running task is delivered at the next boundary', async () => {
  const started = deferred();
  const release = deferred();
  const slow = tool('slow', async () => {
    started.happen();
    await release.promise;
    return 'ok';
  });
  const planner = scripted(
    () => callTools([{ id: 'c1', tool: 'slow', input: {} }]),
    (history) => reply(`heard ${JSON.stringify(history.at(-1))}`),
  );
  const { runner, store } = setUp({ planner, tools: [slow] });
  const running = runner.run(TASK);
  await started.promise;
  const ref = { tenant: 'acme', id: await readFirstId(store) };
  await store.send(ref, { type: 'steer', message: 'be brief' });
  await flushMicrotasks();
  release.happen();
  expect((await running).answer).toContain('be brief');
});

test('a call waits for an answer that comes through the store', async () => {
  const approvals = createTaskApprovals();
  const book = tool('book', () => 'booked', { effects: 'write' });
  const planner = scripted(
    () => callTools([{ id: 'c1', tool: 'book', input: {} }]),
    () => callTools([{ id: 'c2', tool: 'book', input: {} }]),
    (history) =>
      reply(
        history
          .filter(({ role }) => role === 'tool')
          .map((m) => (m as { content: string }).content)
          .join('; '),
      ),
  );
  const { runner, store } = setUp({ planner, tools: [book], approvals });
  const running = runner.run(TASK);
  await flushMicrotasks();
  const ref = { tenant: 'acme', id: await readFirstId(store) };
  expect(await answerCall(store, ref, { callId: 'c2', decision: 'yes' })).toEqual({ result: 'not-found' });
  await answerCall(store, ref, { callId: 'c1', decision: 'yes' });
  await flushMicrotasks();
  await answerCall(store, ref, { callId: 'c2', decision: 'no', why: 'too dear' });
  expect((await running).answer).toBe('booked; Not started: denied: too dear');
});

test.each([null, 5, { role: 'tool' }])('a run that gets %j continues as if nothing had been sent', async (message) => {
  const { promise: answered, happen: answer } = deferred<string>();
  const { runner, store } = setUp({ planner: { next: async () => reply(await answered) } });
  const running = runner.run({ ...TASK, conversation: 'c1' });
  await flushMicrotasks();
  const ref = { tenant: 'acme', id: await readFirstId(store) };
  const sent = await store.send(ref, { type: 'steer', message });
  const behind = await store.create({ ...TASK, conversation: 'c1', input: message }, { policy: 'steer' });
  await flushMicrotasks();
  answer('done');
  expect(await running).toMatchObject({ status: 'success', answer: 'done' });
  const refusals = (await store.read(ref)).filter(({ event }) => (event as { receipt?: string }).receipt === 'refused');
  expect(sent).toMatchObject({ result: 'accepted' });
  expect(refusals).toHaveLength(2);
  // The order that was sent as a separate task reports what is wrong with it.
  const { id } = (behind as { task: { id: string } }).task;
  expect(await runner.runExisting({ tenant: 'acme', id })).toMatchObject({ status: 'failed' });
});

test('a question of a sub-agent has its own id, and a yes to its parent’s call does not answer it', async () => {
  const approvals = createTaskApprovals();
  let booked = 0;
  const book = tool('book', () => `booked ${++booked}`, { effects: 'write' });
  const once = (name: string): Planner =>
    scripted(
      () => callTools([{ id: 'c1', tool: name, input: { task: 'book it' } }]),
      (history) => reply((history.at(-1) as { content: string }).content),
    );
  const helper = createAgent({ name: 'helper', planner: once('book'), tools: [book] });
  const tools = [createAgentTool(helper, { description: 'Helps' }) as Tool];
  const { runner, store } = setUp({ planner: once('helper'), tools, approvals });
  const running = runner.run(TASK);
  await flushMicrotasks();
  const ref = { tenant: 'acme', id: await readFirstId(store) };
  const pending = async () => {
    const questions = new PendingQuestions();
    for (const entry of await store.read(ref)) questions.note(entry);
    return questions.list.map(({ question }) => [question.callId, question.tool]);
  };
  expect(await pending()).toEqual([['c1', 'helper']]);
  await answerCall(store, ref, { callId: 'c1', decision: 'yes' });
  await expect.poll(() => pending()).toEqual([['c1/c1', 'helper › book']]);
  expect(booked).toBe(0);
  await answerCall(store, ref, { callId: 'c1/c1', decision: 'yes' });
  expect((await running).answer).toBe('booked 1');
  expect(await pending()).toEqual([]);
});
