import { expect, test } from 'vitest';
import { type Call, readCalls } from './call.ts';

test('calls are copied as they are', () => {
  const call: Call = { id: 'a', tool: 't', input: { x: 1 }, dependsOn: ['b', 'c'], exclusive: [] };
  const [copy] = readCalls([call]);
  expect(copy).toStrictEqual(call);
  expect(copy).not.toBe(call);
});

test.each<[string, unknown, string]>([
  ['no list', 7, 'calls: expected a list of calls, got 7'],
  ['no id', [{ tool: 't', input: {} }], 'calls[0]: expected a call: { id, tool, input }'],
  ['no tool', [{ id: 'a', input: {} }], 'calls[0]: expected a call'],
  ['one text for what it needs', [{ id: 'a', tool: 't', dependsOn: 'b' }], 'calls[0]: expected a call'],
  ['more than texts in what it needs', [{ id: 'a', tool: 't', dependsOn: ['b', 7] }], 'calls[0]: expected a call'],
  ['keys that are no texts', [{ id: 'a', tool: 't', exclusive: [7] }], 'calls[0]: expected a call'],
  ['a second that is none', [{ id: 'a', tool: 't' }, { id: 'b' }], 'calls[1]: expected a call'],
])('calls with %s are rejected by name', (_, calls, message) => {
  expect(() => readCalls(calls as never)).toThrow(message);
});
