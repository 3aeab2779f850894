import assert from 'node:assert';
import type { ModelMessage } from 'ai';
import { describe, expect, test } from 'vitest';
import { findRefusals } from '../testing/index.ts';
import { type CallLedger, type CallRecord, createCallLedger } from '../turn/call-ledger.ts';
import { closeOpenCalls } from './close-open-calls.ts';

const reason = { kind: 'user', at: 0 };
const user: ModelMessage = { role: 'user', content: 'Go' };
const call = (toolCallId: string, toolName = 'slow') =>
  ({ type: 'tool-call', toolCallId, toolName, input: {} }) as const;
const result = (toolCallId: string, value = 'ok') =>
  ({ type: 'tool-result', toolCallId, toolName: 'slow', output: { type: 'text', value } }) as const;
const assistant = (...content: ReturnType<typeof call>[]): ModelMessage => ({ role: 'assistant', content });
const tool = (...content: ReturnType<typeof result>[]): ModelMessage => ({ role: 'tool', content });

function write(calls: CallLedger, toolCallId: string, change: Partial<CallRecord>): void {
  calls.update(calls.begin({ toolCallId, tool: 'slow' }).callId, change);
}

/** What the three vendors would refuse about messages of the AI SDK. */
function refusalsIn(messages: readonly ModelMessage[]) {
  const parts = (message: ModelMessage) => message.content as unknown as Record<string, never>[];
  return findRefusals(
    messages.flatMap((message): Parameters<typeof findRefusals>[0] => {
      if (message.role === 'tool')
        return parts(message).map(({ toolCallId, toolName, output }) => ({
          role: 'tool',
          callId: toolCallId!,
          tool: toolName!,
          content: (output as unknown as { value: string }).value,
          isError: false,
        }));
      if (message.role !== 'assistant') return [{ role: 'user', content: message.content as string }];
      const content = parts(message).map(({ type, toolCallId, toolName, input, text }) =>
        type === 'text'
          ? ({ type: 'text', text: text! } as const)
          : ({ type: 'call', callId: toolCallId!, tool: toolName!, input } as const),
      );
      return [{ role: 'assistant', content }];
    }),
  );
}

/** What the model is told of call `a`, which has no result. */
function told(record?: Partial<CallRecord>, options: { isGuarded?: boolean } = {}): unknown {
  const calls = createCallLedger();
  if (options.isGuarded !== false) calls.addTool('slow');
  write(calls, 'earlier', { state: 'finished' });
  if (record !== undefined) write(calls, 'a', record);
  const closed = closeOpenCalls([user, assistant(call('a')), user], calls);
  expect(closed).toHaveLength(4);
  const [part] = closed[2]!.content as { toolCallId: string; output: unknown }[];
  expect(part?.toolCallId).toBe('a');
  return part?.output;
}

describe('a call without a result gets an accurate one', () => {
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
      { type: 'error-text', value: 'Interrupted (user) before it finished. It may have taken effect in part.' },
    ],
    [
      'it was interrupted and said something',
      { state: 'interrupted', reason, error: new Error('half written') },
      {
        type: 'error-text',
        value: 'Interrupted (user) before it finished, and reported: half written. It may have taken effect in part.',
      },
    ],
    [
      'it was not started',
      { state: 'not-started', reason },
      { type: 'error-text', value: 'Not started: cancelled (user). It had no effect.' },
    ],
    [
      'still finished later',
      { state: 'unknown', reason, late: { at: 1, state: 'finished', value: 'booked' } },
      { type: 'error-text', value: 'It was cancelled, but still finished later: booked' },
    ],
  ])('%s', (_, record, output) => {
    expect(told(record)).toEqual(output);
  });

  test.each<[string, Partial<CallRecord>]>([
    ['it was given up on', { state: 'unknown', reason }],
    ['it still runs', { state: 'running' }],
  ])('%s: the result is unknown', (_, record) => {
    expect(told(record)).toMatchObject({
      type: 'error-text',
      value: expect.stringMatching(/Outcome unknown/) as string,
    });
  });

  test('a guarded tool that was not seen to begin did not begin', () => {
    expect(told()).toMatchObject({ value: expect.stringMatching(/^Not started/) as string });
  });

  test('a ledger that is younger than the history does not know, and never claims to later', () => {
    const calls = createCallLedger();
    calls.addTool('slow');
    const history = [user, assistant(call('a'), call('b'))];
    const first = closeOpenCalls(history, calls);
    expect(JSON.stringify(first).match(/Outcome unknown/g)).toHaveLength(2);
    write(calls, 'later', { state: 'finished' });
    expect(closeOpenCalls(history, calls)).toEqual(first);
  });

  test.each<[string, unknown]>([
    ['no prototype', Object.create(null)],
    ['a message that is no text', Object.assign(new Error('x'), { message: { a: 1 } })],
    ['nothing that can be shown', { toJSON: () => assert.fail('no'), toString: () => assert.fail('no') }],
  ])('it failed with %s', (_, error) => {
    expect(told({ state: 'failed', error })).toMatchObject({ type: 'error-text', value: expect.any(String) as string });
  });

  test('without a guard, or without a ledger, the outcome is unknown', () => {
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
    write(calls, 'a', { state: 'unknown', reason });
    write(calls, 'b', { state: 'failed', error: new Error('boom') });
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

describe('an id that comes again', () => {
  const book = (at: number): ModelMessage => ({
    role: 'assistant',
    content: [{ type: 'tool-call', toolCallId: 'call_0', toolName: 'slow', input: { at } }],
  });
  const say = (content: string): ModelMessage => ({ role: 'user', content });
  const begin = (calls: CallLedger, messages: ModelMessage[], at: number): string =>
    calls.begin({ toolCallId: 'call_0', tool: 'slow', input: { at }, messages }).callId;
  const results = (messages: readonly ModelMessage[]) =>
    messages
      .filter(({ role }) => role === 'tool')
      .flatMap(({ content }) => content as unknown as { toolCallId: string; output: { value: string } }[])
      .map(({ toolCallId, output }) => [toolCallId, output.value]);

  test('never takes the result of another call', () => {
    const closed = closeOpenCalls([say('a'), book(1), tool(result('call_0', 'one')), book(2), say('b')]);
    expect(results(closed)).toEqual([
      ['call_0', 'one'],
      ['call_0-2', expect.stringMatching(/^Outcome unknown/)],
    ]);
    expect(JSON.stringify(closed[3])).toContain('call_0-2');
    expect(refusalsIn(closed)).toEqual([]);
  });

  test('a result belongs to the call before it, and a second one to no other', () => {
    const answers = [tool(result('call_0', 'two')), tool(result('call_0', 'again'))];
    const closed = closeOpenCalls([say('a'), book(1), say('b'), book(2), ...answers]);
    expect(results(closed)).toEqual([
      ['call_0', expect.stringMatching(/^Outcome unknown/)],
      ['call_0-2', 'two'],
    ]);
  });

  test('a result elsewhere belongs to neither of two open calls', () => {
    const closed = closeOpenCalls([say('a'), book(1), say('b'), book(2), say('c'), tool(result('call_0', 'whose?'))]);
    expect(JSON.stringify(closed)).not.toContain('whose?');
    expect(results(closed)).toHaveLength(2);
  });

  test('is known by where its call stands, also when both ask for the same', () => {
    const calls = createCallLedger();
    calls.addTool('slow');
    const first = [say('Book')];
    calls.update(begin(calls, first, 1), { state: 'finished', output: 'first' });
    const second = [...first, book(1), tool(result('call_0', 'first')), say('Book')];
    calls.update(begin(calls, second, 1), { state: 'finished', output: 'second' });
    const third = [...second, book(1), say('Book')];
    // The third was asked for and never began.
    expect(results(closeOpenCalls([...third, book(1)], calls))).toEqual([
      ['call_0', 'first'],
      ['call_0-2', 'second'],
      ['call_0-3', 'Not started: the run was stopped first. It had no effect.'],
    ]);
  });

  test('is known again after it was renamed', () => {
    const calls = createCallLedger();
    calls.addTool('slow');
    calls.update(begin(calls, [say('a')], 1), { state: 'finished', output: 'one' });
    const view = [say('a'), book(1), tool(result('call_0', 'one')), say('b')];
    const running = begin(calls, view, 2);
    const closed = closeOpenCalls([...view, book(2)], calls);
    expect(results(closed)[1]).toEqual(['call_0-2', expect.stringMatching(/still running/)]);
    calls.update(running, { state: 'unknown', reason, late: { at: 1, state: 'finished', value: 'two' } });
    expect(results(closeOpenCalls(closed, calls))[1]).toEqual([
      'call_0-2',
      'It was cancelled, but still finished later: two',
    ]);
  });

  test('a history that was shortened still finds what it asks for, and says so where it cannot', () => {
    const calls = createCallLedger();
    calls.addTool('slow');
    calls.update(begin(calls, [say('a')], 1), { state: 'finished', output: 'one' });
    const view = [say('a'), book(1), tool(result('call_0', 'one')), say('b')];
    calls.update(begin(calls, view, 2), { state: 'finished', output: 'two' });
    expect(results(closeOpenCalls([say('b'), book(2)], calls))).toEqual([['call_0', 'two']]);
    calls.update(begin(calls, [...view, book(2), say('b')], 2), { state: 'finished', output: 'three' });
    expect(results(closeOpenCalls([say('b'), book(2)], calls))).toEqual([
      ['call_0', expect.stringMatching(/^Outcome unknown: several calls/)],
    ]);
  });

  test('twice in one reply has two results', () => {
    const calls = createCallLedger();
    calls.addTool('slow');
    const view = [say('a')];
    calls.update(begin(calls, view, 1), { state: 'finished', output: 'one' });
    calls.update(begin(calls, view, 1), { state: 'finished', output: 'two' });
    const twice: ModelMessage = {
      role: 'assistant',
      content: [book(1), book(1)].flatMap(({ content }) => content as []),
    };
    expect(results(closeOpenCalls([say('a'), twice], calls))).toEqual([
      ['call_0', 'one'],
      ['call_0-2', 'two'],
    ]);
  });

  test('a turn that was asked for again takes its own result, not that of the first try', () => {
    const calls = createCallLedger();
    calls.addTool('slow');
    calls.update(begin(calls, [say('a')], 1), { state: 'finished', output: 'thrown away' });
    calls.update(begin(calls, [say('a')], 1), { state: 'finished', output: 'kept' });
    expect(results(closeOpenCalls([say('a'), book(1)], calls))).toEqual([['call_0', 'kept']]);
  });
});

describe('what providers refuse is replaced', () => {
  test.each(['', 'a b', 'functions.slow:0', 'x'.repeat(80), '💥'])('the id %j', (id) => {
    const closed = closeOpenCalls([user, assistant(call(id)), tool(result(id)), user]);
    expect(refusalsIn(closed)).toEqual([]);
    expect(JSON.stringify(closed)).toContain('"ok"');
  });

  test.each(['functions.slow <|x|>', '', 'x'.repeat(70)])('the tool name %j', (name) => {
    const closed = closeOpenCalls([user, assistant(call('a', name))]);
    expect(refusalsIn(closed)).toEqual([]);
  });

  test('half a character, wherever it stands', () => {
    const half = '😀'.slice(0, 1);
    const closed = closeOpenCalls<ModelMessage>([
      { role: 'user', content: half },
      {
        role: 'assistant',
        content: [
          { ...call('a'), input: { [half]: [half] } },
          { type: 'text', text: half },
        ],
      },
      tool(result('a', half)),
    ]);
    expect(JSON.stringify(closed)).not.toMatch(/\\ud83d/);
    expect(refusalsIn(closed)).toEqual([]);
  });

  test('the request for an approval goes with its call', () => {
    const [, asked] = closeOpenCalls<ModelMessage>([
      user,
      {
        role: 'assistant',
        content: [call('a b'), { type: 'tool-approval-request', approvalId: 'p', toolCallId: 'a b' }],
      },
    ]);
    expect(asked?.content).toMatchObject([{ toolCallId: 'a_b' }, { toolCallId: 'a_b' }]);
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

test('messages that contain themselves, or one thing many times, are walked once', () => {
  const own: Record<string, unknown> = { text: 'half \uD83D' };
  own['self'] = own['again'] = own;
  let twice: object = {};
  for (let depth = 0; depth < 60; depth++) twice = { one: twice, other: twice };
  const [closed] = closeOpenCalls([{ role: 'user', content: [own, twice, 'half \uD83D'] }]);
  expect((closed!.content as unknown[])[2]).toBe('half \uFFFD');
  expect((closed!.content as unknown[])[1]).toBe(twice);
});

test.each([null, 7, {}, [null], [{ role: 'assistant', content: [null] }]])(
  'what are no messages is refused in words: %#',
  (messages) => {
    expect(() => closeOpenCalls(messages as never)).toThrow(expect.objectContaining({ code: 'INVALID_SETTING' }));
  },
);

test('a call that failed with an unreadable error is described as text', () => {
  const calls = createCallLedger();
  const unreadable = Object.defineProperty(new Error('x'), 'message', { get: () => assert.fail('a trap') });
  write(calls, 'a', { state: 'failed', error: unreadable });
  write(calls, 'b', { state: 'interrupted', reason, error: Object.create(null) as unknown });
  const closed = closeOpenCalls([user, assistant(call('a'), call('b'))], calls);
  expect(JSON.stringify(closed.at(-1))).toContain('could not be read');
  expect(refusalsIn(closed)).toEqual([]);
});
