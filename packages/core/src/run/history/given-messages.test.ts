import { expect, test } from 'vitest';
import { readInput, readMessage, recordReply } from './given-messages.ts';

const image = { type: 'image', mediaType: 'image/png', data: 'AAAA' } as const;
const CONTENT = 'a string, or a list of { type: "text", text } and { type: "image", mediaType, data }';

test.each<[unknown, unknown]>([
  ['go', { role: 'user', content: 'go' }],
  [[{ type: 'text', text: 'go' }, image], { role: 'user', content: [{ type: 'text', text: 'go' }, image] }],
  [
    { role: 'user', content: 'go' },
    { role: 'user', content: 'go' },
  ],
])('%j is an input', (given, message) => {
  const read = readInput(given, 'input');
  expect(read).toStrictEqual(message);
  expect(Object.isFrozen(read)).toBe(true);
});

test.each<[unknown, string]>([
  [7, `input: expected ${CONTENT}, got 7`],
  [null, `input: expected ${CONTENT}, got null`],
  [{ role: 'assistant', content: 'x' }, "input.role: expected 'user'; an input is content or a user's message"],
  [{ role: 'user', content: 7 }, `input.content: expected ${CONTENT}, got 7`],
  [['x', 'y'], `input[0]: expected ${CONTENT}`],
  [[{ type: 'text', text: 'x' }, { type: 'text' }], `input[1]: expected ${CONTENT}`],
  [[{ type: 'image', data: 'A' }], `input[0]: expected ${CONTENT}`],
  [[{ type: 'image', mediaType: 'a/b' }], `input[0]: expected ${CONTENT}`],
  [[{ ...image, type: 'video' }], `input[0]: expected ${CONTENT}`],
])('%j is not a valid input', (given, message) => {
  expect(() => readInput(given, 'input')).toThrow(message);
});

const text = { type: 'text', text: 'x' };
const call = { type: 'call', callId: 'c', tool: 't', input: {} };

test.each<[unknown]>([
  [{ role: 'user', content: 'x' }],
  [{ role: 'tool', content: 'x', callId: 'c', tool: 't' }],
  [{ role: 'assistant', content: [] }],
  [{ role: 'assistant', content: [text, call, { type: 'thinking', text: 'x' }] }],
  [{ role: 'assistant', content: [{ type: 'thinking', text: 'x', signature: 's' }] }],
])('%j is a message of a history', (given) => {
  expect(readMessage(given, 'history[0]')).toStrictEqual(given);
});

test.each<[unknown, string]>([
  ['x', 'history[0]: expected a message, got "x"'],
  [{ role: 'system', content: 'x' }, "history[0].role: expected 'user', 'assistant' or 'tool', got \"system\""],
  [{ role: 'user', content: 7 }, 'history[0].content: expected a string'],
  [{ role: 'tool', content: 'x', tool: 't' }, 'history[0]: the result of a call needs a callId and a tool'],
  [{ role: 'tool', content: 'x', callId: 'c' }, 'history[0]: the result of a call needs a callId and a tool'],
  ...[
    'x',
    [null],
    [{ type: 'text' }],
    [{ type: 'other', text: 'x' }],
    [{ type: 'thinking', text: 'x', signature: 7 }],
    [{ type: 'thinking' }],
    [{ ...call, callId: 7 }],
    [{ ...call, tool: 7 }],
    [text, 'x'],
  ].map((content): [unknown, string] => [
    { role: 'assistant', content },
    'history[0].content: expected the parts of a reply',
  ]),
])('%j is not a message of a history', (given, message) => {
  expect(() => readMessage(given, 'history[0]')).toThrow(message);
});

test('a message that is in a record is not copied again', () => {
  const message = readMessage({ role: 'user', content: 'x' }, 'x');
  expect(readMessage(message, 'x')).toBe(message);
});

const reply = { role: 'assistant', content: [text], stopReason: 'stop' } as const;
const usage = { inputTokens: 1, outputTokens: 2, isComplete: true };

test.each<[object]>([[{}], [{ usage }], [{ provider: 'p', api: 'a', model: 'm' }]])(
  'a reply that also has %j is recorded unchanged',
  (more) => {
    expect(recordReply({ ...reply, ...more } as never)).toStrictEqual({ ...reply, ...more });
  },
);

test.each<[object]>([
  [{ role: 'user' }],
  [{ content: 'x' }],
  [{ content: [{ type: 'text' }] }],
  [{ stopReason: 7 }],
  [{ usage: { ...usage, inputTokens: Number.NaN } }],
  [{ usage: { ...usage, outputTokens: '2' } }],
  [{ provider: 7 }],
  [{ api: 7 }],
  [{ model: null }],
])('a reply with %j is invalid', (wrong) => {
  expect(() => recordReply({ ...reply, ...wrong } as never)).toThrow(
    "message: expected an assistant's message with its parts, stopReason and optional usage",
  );
});
