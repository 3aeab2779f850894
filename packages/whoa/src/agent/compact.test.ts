import type { Message } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { createCompact } from './compact.ts';

const signal = new AbortController().signal;
const context = { signal, turn: 1, addUsage: () => {} };
const user = (content: string): Message => ({ role: 'user', content });
const call = (callId: string): Message => ({
  role: 'assistant',
  content: [{ type: 'call', callId, tool: 'bash', input: { command: `run ${callId}` } }],
  stopReason: 'tool-use',
});
const result = (callId: string, content: string): Message => ({
  role: 'tool',
  callId,
  tool: 'bash',
  state: 'finished',
  content,
  isError: false,
  endedAt: 1,
});

/** A run of many calls with a single user message, at the beginning. */
const LONG = [
  user('Fix it.'),
  ...Array.from({ length: 10 }, (_, i) => [call(`c${i}`), result(`c${i}`, 'x'.repeat(300))]).flat(),
];

test('a history that fits stays as it is, and the model is not asked', async () => {
  const model = createScriptedModel([]);
  expect(await createCompact(model, 2_000)(LONG, context)).toBe(LONG);
  expect(await createCompact(model)(LONG, context)).toBe(LONG);
});

test('the older part becomes a summary, and results stay with their calls', async () => {
  const model = createScriptedModel([['Nine were run.']]);
  const after = await createCompact(model, 1_500)(LONG, context);
  expect(after[0]).toMatchObject({
    role: 'user',
    content: expect.stringMatching(/summary[\s\S]*Nine were run\./) as string,
  });
  expect(after.slice(1)).toEqual(LONG.slice(-(after.length - 1)));
  expect(after[1]).toMatchObject({ role: 'assistant' });
  expect(after.length).toBeLessThan(8);
  const { messages } = model.requests[0]!;
  expect(messages).toHaveLength(1);
  expect(messages[0]!.content).toMatch(
    /User: Fix it\.[\s\S]*Calls bash: \{"command":"run c0"\}[\s\S]*Result of bash \(finished\): xxx/,
  );
  expect(await createCompact(model, 1_500)(after, context)).toBe(after);
});

test('a history is not compacted when its last message alone is too long, or when there is no summary', async () => {
  const model = createScriptedModel([[{ fail: new Error('gone') }]]);
  const history = [user('Hi.'), user('y'.repeat(9_000))];
  expect(await createCompact(model, 1_500)(history, context)).toBe(history);
  expect(model.requests).toHaveLength(0);
  expect(await createCompact(model, 1_500)(LONG, context)).toBe(LONG);
  expect(model.requests).toHaveLength(1);
});

test('an image counts as an image, whatever its bytes', async () => {
  const image: Message = {
    role: 'user',
    content: [{ type: 'image', mediaType: 'image/png', data: 'A'.repeat(1_000_000) }],
  };
  const history = [image, user('What is it?')];
  expect(await createCompact(createScriptedModel([]))(history, context)).toBe(history);
});
