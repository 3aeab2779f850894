import type { ModelMessage } from 'ai';
import { describe, expect, test } from 'vitest';
import { type CallRecord, createCallLedger } from './call-ledger.ts';
import { closeOpenCalls } from './close-open-calls.ts';

const reason = { kind: 'user', at: 0 };
const user: ModelMessage = { role: 'user', content: 'Go' };
const call = (toolCallId: string, toolName = 'slow') =>
  ({ type: 'tool-call', toolCallId, toolName, input: {} }) as const;
const result = (toolCallId: string, value = 'ok') =>
  ({ type: 'tool-result', toolCallId, toolName: 'slow', output: { type: 'text', value } }) as const;
const assistant = (...content: ReturnType<typeof call>[]): ModelMessage => ({ role: 'assistant', content });
const tool = (...content: ReturnType<typeof result>[]): ModelMessage => ({ role: 'tool', content });

/** What the model is told of call `a`, which has no result. */
function told(record?: Partial<CallRecord>, options: { isGuarded?: boolean } = {}): unknown {
  const calls = createCallLedger();
  if (options.isGuarded !== false) calls.addTool('slow');
  if (record !== undefined) calls.write({ callId: 'a', tool: 'slow', state: 'running', ...record });
  const closed = closeOpenCalls([user, assistant(call('a')), user], calls);
  expect(closed).toHaveLength(4);
  const [part] = closed[2]!.content as { toolCallId: string; output: unknown }[];
  expect(part?.toolCallId).toBe('a');
  return part?.output;
}

describe('a call without a result is told of truthfully', () => {
  test.each<[string, Partial<CallRecord>, unknown]>([
    [
      'it finished, its loop forgot it',
      { state: 'finished', output: 'the result' },
      { type: 'text', value: 'the result' },
    ],
    ['it finished with data', { state: 'finished', output: { at: 10 } }, { type: 'json', value: { at: 10 } }],
    ['it finished with nothing', { state: 'finished' }, { type: 'json', value: null }],
    ['it failed', { state: 'failed', error: new Error('boom') }, { type: 'error-text', value: 'boom' }],
    [
      'it was interrupted',
      { state: 'interrupted', reason },
      { type: 'error-text', value: 'Interrupted (user) before it finished.' },
    ],
    [
      'it was not started',
      { state: 'not-started', reason },
      { type: 'error-text', value: 'Not started: cancelled (user). It had no effect.' },
    ],
    [
      'it finished later all the same',
      { state: 'unknown', reason, late: { at: 1, state: 'finished', value: 'booked' } },
      { type: 'error-text', value: 'It was cancelled, but it finished later all the same: booked' },
    ],
  ])('%s', (_, record, output) => {
    expect(told(record)).toEqual(output);
  });

  test.each<[string, Partial<CallRecord>]>([
    ['it was given up on', { state: 'unknown', reason }],
    ['it still runs', { state: 'running' }],
  ])('%s: nobody knows', (_, record) => {
    expect(told(record)).toMatchObject({
      type: 'error-text',
      value: expect.stringMatching(/Outcome unknown/) as string,
    });
  });

  test('a guarded tool that nobody saw begin did not begin', () => {
    expect(told()).toMatchObject({ value: expect.stringMatching(/^Not started/) as string });
  });

  test('of a tool without a guard, and without a ledger, nobody knows', () => {
    expect(told(undefined, { isGuarded: false })).toMatchObject({
      value: expect.stringMatching(/^Outcome unknown/) as string,
    });
    expect(JSON.stringify(closeOpenCalls([user, assistant(call('a'))]))).toMatch(/Outcome unknown/);
  });
});

describe('results', () => {
  test('that answer no call are dropped', () => {
    expect(closeOpenCalls([user, tool(result('x')), user])).toEqual([user, user]);
    expect(closeOpenCalls([user, assistant(call('a')), tool(result('a'), result('x'))])).toEqual([
      user,
      assistant(call('a')),
      tool(result('a')),
    ]);
  });

  test('that come twice are kept once', () => {
    const messages = [user, assistant(call('a')), tool(result('a', 'first')), tool(result('a', 'second'))];
    expect(closeOpenCalls(messages)).toEqual(messages.slice(0, 3));
  });

  test('that stand in the wrong place are moved to their call', () => {
    expect(closeOpenCalls([user, assistant(call('a')), user, tool(result('a')), user])).toEqual([
      user,
      assistant(call('a')),
      tool(result('a')),
      user,
      user,
    ]);
  });

  test('before their call they answer nothing', () => {
    const closed = closeOpenCalls([user, tool(result('a')), assistant(call('a'))]);
    expect(closed.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
    expect(JSON.stringify(closed[2])).toMatch(/Outcome unknown/);
  });

  test('that hide how a stopped call ended say it; others stay', () => {
    const calls = createCallLedger();
    calls.write({ callId: 'a', tool: 'slow', state: 'unknown', reason });
    calls.write({ callId: 'b', tool: 'slow', state: 'failed', error: new Error('boom') });
    const masked = (toolCallId: string) => ({
      ...result(toolCallId),
      output: { type: 'error-text' as const, value: 'An error occurred.' },
    });
    const messages: ModelMessage[] = [
      user,
      assistant(call('a'), call('b')),
      { role: 'tool', content: [masked('a'), masked('b')] },
    ];
    const closed = closeOpenCalls(messages, calls);
    const [a, b] = closed[2]!.content as ReturnType<typeof masked>[];
    expect(a?.output.value).toMatch(/^Outcome unknown/);
    expect(b).toEqual(masked('b'));
    const again = closeOpenCalls(closed, calls);
    for (const [index, message] of again.entries()) expect(message).toBe(closed[index]);
  });

  test('missing ones join those that are there', () => {
    const [, , results] = closeOpenCalls([user, assistant(call('a'), call('b')), tool(result('a')), user]);
    expect((results!.content as { toolCallId: string }[]).map(({ toolCallId }) => toolCallId)).toEqual(['a', 'b']);
  });
});

test('a valid history comes back as it was', () => {
  const messages = [
    user,
    assistant(call('a')),
    tool(result('a')),
    { role: 'assistant', content: 'Done' } as const,
    user,
  ];
  const closed = closeOpenCalls(messages);
  expect(closed).toEqual(messages);
  for (const [index, message] of closed.entries()) expect(message).toBe(messages[index]);
});

test('closing twice changes nothing more', () => {
  const once = closeOpenCalls([user, assistant(call('a')), user]);
  expect(closeOpenCalls(once)).toEqual(once);
});

test('calls that a provider runs itself, and calls with an answered approval, are left alone', () => {
  const provided: ModelMessage[] = [
    user,
    { role: 'assistant', content: [{ ...call('a'), providerExecuted: true }] },
    user,
  ];
  expect(closeOpenCalls(provided)).toEqual(provided);
  const approved: ModelMessage[] = [
    user,
    { role: 'assistant', content: [call('a'), { type: 'tool-approval-request', approvalId: 'p', toolCallId: 'a' }] },
    { role: 'tool', content: [{ type: 'tool-approval-response', approvalId: 'p', approved: true }] },
  ];
  expect(closeOpenCalls(approved)).toEqual(approved);
});
