import { type CallResult, createAgent, defineTool, type Message, type RunEvent } from '@whoa/core';
import { prepareMessages } from '@whoa/core/model';
import { createScriptedModel } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { anything } from '../../../../test/acp/process-tree.ts';
import { Journal } from './journal.ts';

/** Every call has exactly one result, and the other way round. */
function isValid(messages: readonly Message[]): boolean {
  const asked = messages.flatMap((message) =>
    message.role === 'assistant' ? message.content.flatMap((part) => (part.type === 'call' ? part.callId : [])) : [],
  );
  const answered = messages.flatMap((message) => (message.role === 'tool' ? message.callId : []));
  return JSON.stringify(asked.toSorted()) === JSON.stringify(answered.toSorted());
}

test('the stored history is valid whenever the process dies, and equals the run’s history at the end', async () => {
  const tool = defineTool({
    name: 'tool',
    description: '',
    effects: 'read',
    inputSchema: anything,
    execute: () => 'done',
  });
  const model = createScriptedModel([
    ['one two ', { call: 'tool' }, { call: 'tool' }, { call: 'nobody' }],
    ['three four'],
  ]);
  const journal = new Journal([], 'go');
  const views: (readonly Message[])[] = [];
  const run = createAgent({ name: 'a', model, tools: [tool] }).run('go', {
    hooks: {
      any: (event) => {
        journal.handle(event);
        views.push(journal.snapshotAt(0));
      },
    },
  });
  const outcome = await run.outcome;
  expect(views.length).toBeGreaterThan(10);
  expect(views.every(isValid)).toBe(true);
  expect(views.every((view) => prepareMessages(view).length > 0)).toBe(true);
  // Results are in the order of arrival; a model gets them in the order of the calls either way.
  expect(prepareMessages(journal.snapshotAt(0))).toEqual(prepareMessages(outcome.messages));
});

test('a call that was running is unknown, one that had not begun had no effect, and the words so far are kept', () => {
  const journal = new Journal([], 'go');
  const handle = (event: object): void => journal.handle({ runId: 'r', at: 0, ...event } as RunEvent);
  const call = (callId: string) => ({ type: 'call', callId, tool: 't', input: {} });
  handle({
    type: 'turn-end',
    turn: 1,
    message: { role: 'assistant', content: [call('a'), call('b')], stopReason: 'tool-use' },
  });
  handle({ type: 'call-start', callId: 'a', tool: 't', input: {} });
  const states = (messages: readonly Message[]) =>
    messages.flatMap((message) => (message.role === 'tool' ? [(message as CallResult).state] : []));
  expect(states(journal.snapshotAt(5))).toEqual(['unknown', 'not-started']);
  handle({ type: 'turn-start', turn: 2 });
  handle({ type: 'thinking', text: 'hm ' });
  handle({ type: 'text', text: 'half ' });
  handle({ type: 'text', text: 'a sen' });
  expect(journal.soFar.at(-1)).toEqual({
    role: 'assistant',
    stopReason: 'aborted',
    content: [
      { type: 'thinking', text: 'hm ' },
      { type: 'text', text: 'half a sen' },
    ],
  });
});

test('a call’s output so far is in the history if the process dies', () => {
  const journal = new Journal([], 'go');
  const message = { role: 'assistant', content: [{ type: 'call', callId: 'c', tool: 't', input: {} }] } as const;
  const about = { callId: 'c', tool: 't', at: 0 };
  journal.handle({
    type: 'turn-end',
    at: 0,
    turn: 1,
    message: { ...message, stopReason: 'tool-use' },
  } as unknown as RunEvent);
  journal.handle({ type: 'call-start', ...about, input: {} } as unknown as RunEvent);
  journal.handle({ type: 'call-update', ...about, partial: { content: 'one' } } as unknown as RunEvent);
  journal.handle({ type: 'call-update', ...about, partial: { content: 'one\ntwo' } } as unknown as RunEvent);
  expect(journal.snapshotAt(0).at(-1)).toMatchObject({
    state: 'unknown',
    content: expect.stringMatching(/^Outcome unknown.*\nSo far it had shown:\none\ntwo$/) as string,
  });
});

test('a history that was made shorter is kept so, and no message gets a name that another had', () => {
  const journal = new Journal([], 'go');
  const handle = (event: object): void => journal.handle({ runId: 'r', at: 0, ...event } as RunEvent);
  const names = [journal.inputId];
  const reply = (text: string): void => {
    names.push(journal.nextId);
    const message = { role: 'assistant', content: [{ type: 'text', text }], stopReason: 'stop' };
    handle({ type: 'turn-end', turn: names.length, message });
  };
  for (const text of ['one', 'two', 'three']) reply(text);
  const summary: Message = { role: 'user', content: 'In short: one, two, three.' };
  handle({ type: 'history-compacted', before: 4, after: 1, messages: [summary] });
  reply('four');
  expect(journal.soFar).toMatchObject([summary, { role: 'assistant' }]);
  const next = new Journal(journal.soFar, 'go on', { namedBefore: journal.named });
  names.push(next.inputId, next.nextId);
  expect(new Set(names).size).toBe(names.length);
});
