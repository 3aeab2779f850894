import assert from 'node:assert';
import type { ModelMessage } from 'ai';
import { describe, expect, test } from 'vitest';
import { findRefusals } from '../testing/index.ts';
import { type CallRecord, type CallRecords, createCallRecords } from '../turn/call-records.ts';
import { findApprovedCall, toTrace } from '../turn/call-sites.ts';
import { closeOpenCalls, closeTurn } from './close-open-calls.ts';

const reason = { kind: 'user', at: 0 };
const user: ModelMessage = { role: 'user', content: 'Go' };
const call = (toolCallId: string, toolName = 'slow') =>
  ({ type: 'tool-call', toolCallId, toolName, input: {} }) as const;
const result = (toolCallId: string, value = 'ok') =>
  ({ type: 'tool-result', toolCallId, toolName: 'slow', output: { type: 'text', value } }) as const;
const assistant = (...content: ReturnType<typeof call>[]): ModelMessage => ({ role: 'assistant', content });
const tool = (...content: ReturnType<typeof result>[]): ModelMessage => ({ role: 'tool', content });

function write(calls: CallRecords, toolCallId: string, change: Partial<CallRecord>): void {
  calls.update(calls.begin({ toolCallId, tool: 'slow' }).callId, change);
}

/** The errors that the three vendors would report for messages of the AI SDK. */
function findWireRefusals(messages: readonly ModelMessage[]) {
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

/** What the model sees for call `a`, which has no result. */
function told(record?: Partial<CallRecord>, options: { isGuarded?: boolean } = {}): unknown {
  const calls = createCallRecords();
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

  test('records that are younger than the history do not know, and never claim to later', () => {
    const calls = createCallRecords();
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
  ])('a call that failed with %s is closed with that error', (_, error) => {
    expect(told({ state: 'failed', error })).toMatchObject({ type: 'error-text', value: expect.any(String) as string });
  });

  test('without a guard, or without records, the outcome is unknown', () => {
    expect(told(undefined, { isGuarded: false })).toMatchObject({
      value: expect.stringMatching(/^Outcome unknown/) as string,
    });
    expect(JSON.stringify(closeOpenCalls([user, assistant(call('a'))]))).toMatch(/Outcome unknown/);
  });
});

describe('results', () => {
  test('results that answer no call are dropped', () => {
    expect(closeOpenCalls([user, tool(result('x')), user])).toEqual([user, user]);
    expect(closeOpenCalls([user, assistant(call('a')), tool(result('a'), result('x'))])).toEqual([
      user,
      assistant(call('a')),
      tool(result('a')),
    ]);
  });

  test('duplicate results are kept once', () => {
    const messages = [user, assistant(call('a')), tool(result('a', 'first')), tool(result('a', 'second'))];
    expect(closeOpenCalls(messages)).toEqual(messages.slice(0, 3));
  });

  test('misplaced results are moved to their call', () => {
    expect(closeOpenCalls([user, assistant(call('a')), user, tool(result('a')), user])).toEqual([
      user,
      assistant(call('a')),
      tool(result('a')),
      user,
      user,
    ]);
  });

  test('results before their call are dropped', () => {
    const closed = closeOpenCalls([user, tool(result('a')), assistant(call('a'))]);
    expect(closed.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
    expect(JSON.stringify(closed[2])).toMatch(/Outcome unknown/);
  });

  test('results that hide how a stopped call ended are corrected; others stay', () => {
    const calls = createCallRecords();
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

  test('results of a call that was running report how it ended since', () => {
    const calls = createCallRecords();
    const { callId } = calls.begin({ toolCallId: 'a', tool: 'slow' });
    const stored = closeOpenCalls([user, assistant(call('a')), user], calls);
    expect(JSON.stringify(stored)).toMatch(/still running/);
    calls.update(callId, { state: 'finished', output: 'the result' });
    expect(closeOpenCalls(stored, calls)[2]!.content).toMatchObject([
      { output: { type: 'text', value: 'the result' } },
    ]);
    calls.update(callId, { state: 'failed', error: new Error('boom') });
    expect(closeOpenCalls(stored, calls)[2]!.content).toMatchObject([{ output: { value: 'boom' } }]);
  });

  test('missing results join the existing ones', () => {
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
  const begin = (calls: CallRecords, messages: ModelMessage[], at: number): string =>
    calls.begin({ toolCallId: 'call_0', tool: 'slow', input: { at }, messages }).callId;
  const results = (messages: readonly ModelMessage[]) =>
    messages
      .filter(({ role }) => role === 'tool')
      .flatMap(({ content }) => content as unknown as { toolCallId: string; output: { value: string } }[])
      .map(({ toolCallId, output }) => [toolCallId, output.value]);

  test('a repeated id never takes the result of another call', () => {
    const closed = closeOpenCalls([say('a'), book(1), tool(result('call_0', 'one')), book(2), say('b')]);
    expect(results(closed)).toEqual([
      ['call_0', 'one'],
      ['call_0-2', expect.stringMatching(/^Outcome unknown/)],
    ]);
    expect(JSON.stringify(closed[3])).toContain('call_0-2');
    expect(findWireRefusals(closed)).toEqual([]);
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

  test('a repeated id is known by the position of its call, even when both ask for the same', () => {
    const calls = createCallRecords();
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

  test('a repeated id is known again after it was renamed', () => {
    const calls = createCallRecords();
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

  test('closing a shortened history still finds its results, and reports missing ones', () => {
    const calls = createCallRecords();
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

  test('an id that is used twice in one reply has two results', () => {
    const calls = createCallRecords();
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
    const calls = createCallRecords();
    calls.addTool('slow');
    calls.update(begin(calls, [say('a')], 1), { state: 'finished', output: 'thrown away' });
    calls.update(begin(calls, [say('a')], 1), { state: 'finished', output: 'kept' });
    expect(results(closeOpenCalls([say('a'), book(1)], calls))).toEqual([['call_0', 'kept']]);
  });
});

describe('what providers refuse is replaced', () => {
  test.each(['', 'a b', 'functions.slow:0', 'x'.repeat(80), '💥'])('the id %j', (id) => {
    const closed = closeOpenCalls([user, assistant(call(id)), tool(result(id)), user]);
    expect(findWireRefusals(closed)).toEqual([]);
    expect(JSON.stringify(closed)).toContain('"ok"');
  });

  test.each(['functions.slow <|x|>', '', 'x'.repeat(70)])('the tool name %j', (name) => {
    const closed = closeOpenCalls([user, assistant(call('a', name))]);
    expect(findWireRefusals(closed)).toEqual([]);
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
    expect(findWireRefusals(closed)).toEqual([]);
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

describe('a call that a provider runs itself', () => {
  const search = (toolCallId = 's') => ({ ...call(toolCallId, 'web_search'), providerExecuted: true }) as const;
  const found = {
    type: 'tool-result',
    toolCallId: 's',
    toolName: 'web_search',
    output: { type: 'json', value: [] },
  } as const;
  const text = { type: 'text', text: 'Searching.' } as const;
  const thought = (itemId?: string) =>
    ({
      type: 'reasoning',
      text: 'Hm.',
      providerOptions: itemId ? { openai: { itemId } } : { anthropic: { signature: 'x' } },
    }) as const;
  const says = (
    ...content: Extract<ModelMessage, { role: 'assistant' }>['content'][number & keyof []][]
  ): ModelMessage => ({ role: 'assistant', content }) as ModelMessage;

  test.each<[string, ModelMessage[]]>([
    ['is answered', [says(text, search(), found), user]],
    ['is answered in a later reply', [says(search(), call('a')), tool(result('a')), says(found, text), user]],
    ['may still be answered', [says(text, search())]],
    ['waits for a local call', [says(search(), call('a')), tool(result('a'))]],
    ['comes after thinking', [says(thought(), search(), found), user]],
  ])('a call of the provider stays if it %s', (_, messages) => {
    const closed = closeOpenCalls(messages);
    expect(closed).toEqual(messages);
    for (const [index, message] of closed.entries()) expect(message).toBe(messages[index]);
  });

  test('a provider call is dropped from a reply that was cut off before its result, with the thinking before it', () => {
    expect(closeOpenCalls([user, says(text, search()), user])).toEqual([user, says(text), user]);
    expect(closeOpenCalls([user, says(text, thought(), search()), user])).toEqual([user, says(text), user]);
    expect(closeOpenCalls([user, says(thought('rs_1'), search(), search('t')), user])).toEqual([user, user]);
    expect(closeOpenCalls([user, says(search(), call('a')), tool(result('a')), user])).toEqual([
      user,
      says(call('a')),
      tool(result('a')),
      user,
    ]);
  });

  test('an OpenAI call is dropped with its thinking if nothing follows them', () => {
    expect(closeOpenCalls([user, says(text, thought('rs_1'), search(), found), user])).toEqual([
      user,
      says(text),
      user,
    ]);
    const whole = [user, says(thought('rs_1'), search(), found, text), user];
    expect(closeOpenCalls(whole)).toEqual(whole);
  });

  test('a provider call is dropped with its question and its answer', () => {
    const asked = { type: 'tool-approval-request', approvalId: 'p', toolCallId: 's' } as const;
    const yes = { type: 'tool-approval-response', approvalId: 'p', approved: true, providerExecuted: true } as const;
    const answered: ModelMessage[] = [user, says(text, search(), asked), { role: 'tool', content: [yes] }];
    expect(closeOpenCalls(answered)).toEqual(answered);
    expect(closeOpenCalls([...answered, user])).toEqual([user, says(text), user]);
  });
});

test('a reply that was cut off before its first word is dropped', () => {
  const blank = (providerOptions: object): ModelMessage => ({
    role: 'assistant',
    content: [{ type: 'text', text: '', providerOptions } as never],
  });
  expect(closeOpenCalls([user, blank({ openai: { itemId: 'msg_1' } }), user])).toEqual([user, user]);
  const signed = [user, blank({ google: { thoughtSignature: 'x' } }), user];
  expect(closeOpenCalls(signed)).toEqual(signed);
  const thinking: ModelMessage = { role: 'assistant', content: [{ type: 'reasoning', text: 'Hm.' }] };
  expect(closeOpenCalls([user, thinking, user])).toEqual([user, user]);
  expect(closeOpenCalls([user, thinking])).toEqual([user, thinking]);
});

describe('a call that needs an approval', () => {
  const request = (approvalId: string, toolCallId: string) =>
    ({ type: 'tool-approval-request', approvalId, toolCallId }) as const;
  const ask = (...ids: string[]): ModelMessage => ({
    role: 'assistant',
    content: [...ids.map((id) => call(id)), ...ids.map((id) => request(`p-${id}`, id))],
  });
  const answer = (id: string, approved = true, reason?: string): ModelMessage => ({
    role: 'tool',
    content: [{ type: 'tool-approval-response', approvalId: `p-${id}`, approved, ...(reason && { reason }) }],
  });
  /** The record of a guarded tool whose call its loop runs. */
  const run = (calls: CallRecords, history: ModelMessage[], state: Partial<CallRecord>, id = 'a') => {
    const site = findApprovedCall(history, { toolCallId: id, tool: 'slow', input: undefined });
    assert(site !== undefined);
    const { callId } = calls.begin({ toolCallId: id, tool: 'slow', trace: toTrace(site) });
    return calls.update(callId, state);
  };
  const guarded = (): CallRecords => {
    const calls = createCallRecords();
    calls.addTool('slow');
    return calls;
  };
  const outputs = (messages: readonly ModelMessage[]): unknown[] =>
    messages
      .flatMap(({ role, content }) => (role === 'tool' ? content : []))
      .flatMap((part) => (part.type === 'tool-result' ? [part.output] : []));
  const finished = { state: 'finished', output: 'paid' } as const;

  test.each([true, false])('a call stays open while the last message holds its answer: %s', (approved) => {
    const history = [user, ask('a'), answer('a', approved)];
    expect(closeOpenCalls(history)).toEqual(history);
    expect(closeOpenCalls(history, guarded())).toEqual(history);
    const younger = guarded();
    write(younger, 'a', finished);
    expect(closeOpenCalls(history, younger)).toEqual(history);
  });

  test.each<[string, ModelMessage[]]>([
    ['sent again', []],
    ['continued', [user]],
    ['continued after a reply', [{ role: 'assistant', content: 'Fine' }, user]],
  ])('a call that was run is closed with its result in a history that is %s', (_, more) => {
    const calls = guarded();
    const history = [user, ask('a'), answer('a')];
    run(calls, history, finished);
    const closed = closeOpenCalls([...history, ...more], calls);
    expect(outputs(closed)).toEqual([{ type: 'text', value: 'paid' }]);
    expect(closed.slice(3)).toEqual(more);
    expect(closed[2]!.content).toHaveLength(2);
  });

  test.each<[Partial<CallRecord>, RegExp]>([
    [{ state: 'running' }, /^Outcome unknown: it is still running/],
    [{ state: 'unknown', reason }, /^Outcome unknown: it was still running/],
    [{ state: 'interrupted', reason }, /^Interrupted/],
    [{ state: 'not-started', reason }, /^Not started: cancelled/],
    [{ state: 'failed', error: new Error('boom') }, /^boom$/],
    [{ state: 'unknown', late: { at: 1, state: 'finished', value: 'paid' } }, /still finished later: paid/],
  ])('a call is not run again after it was %j', (state, words) => {
    const calls = guarded();
    const history = [user, ask('a'), answer('a')];
    run(calls, history, state);
    expect(outputs(closeOpenCalls(history, calls))).toMatchObject([{ value: expect.stringMatching(words) as string }]);
  });

  test('a call that was approved, but never run, did not start', () => {
    const calls = guarded();
    write(calls, 'earlier', finished);
    expect(outputs(closeOpenCalls([user, ask('a'), answer('a'), user], calls))).toMatchObject([
      { value: 'Not started: the run was stopped first. It had no effect.' },
    ]);
  });

  test.each<[string, ModelMessage[], string]>([
    ['not answered', [], 'Not started: it was not approved. It had no effect.'],
    ['denied', [answer('a', false)], 'Not started: it was denied. It had no effect.'],
    [
      'denied with a reason',
      [answer('a', false, 'too much')],
      'Not started: it was denied (too much). It had no effect.',
    ],
  ])('a call that was %s did not start, whatever the records say', (_, answers, told) => {
    for (const calls of [undefined, createCallRecords(), guarded()])
      expect(outputs(closeOpenCalls([user, ask('a'), ...answers, user], calls))).toEqual([
        { type: 'error-text', value: told },
      ]);
  });

  test('a call stays open next to one that was run', () => {
    const calls = guarded();
    const first = [user, ask('a', 'b'), answer('a')];
    run(calls, first, finished);
    const content = ['a', 'b'].flatMap((id) => answer(id).content as never[]);
    const closed = closeOpenCalls<ModelMessage>([user, ask('a', 'b'), { role: 'tool', content }], calls);
    expect(outputs(closed)).toEqual([{ type: 'text', value: 'paid' }]);
  });

  test('a call is known by its approval, even where the loop ran it under another id, or the history was shortened', () => {
    const calls = guarded();
    const again: ModelMessage = { role: 'assistant', content: [call('a'), request('p-2', 'a')] };
    const yes = answer('2');
    const history = [user, ask('a'), answer('a'), user, again, yes];
    const closed = closeOpenCalls(history, calls);
    expect(JSON.stringify(closed[4])).toMatch(/"toolCallId":"a-2".*"p-2","toolCallId":"a-2"/);
    run(calls, closed, finished, 'a-2');
    expect(outputs(closeOpenCalls(history, calls)).at(-1)).toEqual({ type: 'text', value: 'paid' });
    expect(outputs(closeOpenCalls(history.slice(3), calls))).toEqual([{ type: 'text', value: 'paid' }]);
  });

  test('a call differs from one that was approved before, no matter how alike they are', () => {
    const calls = guarded();
    run(calls, [user, ask('a'), answer('a')], finished);
    const again: ModelMessage = { role: 'assistant', content: [call('a'), request('p-2', 'a')] };
    const yes = answer('2');
    expect(closeOpenCalls([user, again, yes], calls)).toEqual([user, again, yes]);
  });

  test('a call that is made twice in one reply under one id needs approval twice', () => {
    const twice: ModelMessage = {
      role: 'assistant',
      content: [call('a'), request('p-1', 'a'), call('a'), request('p-2', 'a')],
    };
    const yes = (approvalId: string) => ({ type: 'tool-approval-response', approvalId, approved: true }) as const;
    const history: ModelMessage[] = [user, twice, { role: 'tool', content: [yes('p-1'), yes('p-2')] }];
    const calls = guarded();
    const [, asked] = closeOpenCalls(history, calls);
    expect(asked?.content).toMatchObject([
      { toolCallId: 'a' },
      { toolCallId: 'a' },
      { toolCallId: 'a-2' },
      { toolCallId: 'a-2' },
    ]);
    run(calls, closeOpenCalls(history, calls), finished, 'a-2');
    const last = closeOpenCalls(history, calls)[2]!.content;
    expect(last).toMatchObject([yes('p-1'), yes('p-2'), { toolCallId: 'a-2', output: { value: 'paid' } }]);
    expect(last).toHaveLength(3);
  });

  test('a call whose request is no longer in the history still finds its result', () => {
    const calls = guarded();
    run(calls, [user, ask('a'), answer('a')], finished);
    expect(outputs(closeOpenCalls([user, assistant(call('a')), user], calls))).toEqual([
      { type: 'text', value: 'paid' },
    ]);
  });
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
  'invalid messages are rejected with an explanation: %#',
  (messages) => {
    expect(() => closeOpenCalls(messages as never)).toThrow(expect.objectContaining({ code: 'INVALID_SETTING' }));
  },
);

test('a call that failed with an unreadable error is described as text', () => {
  const calls = createCallRecords();
  const unreadable = Object.defineProperty(new Error('x'), 'message', { get: () => assert.fail('a trap') });
  write(calls, 'a', { state: 'failed', error: unreadable });
  write(calls, 'b', { state: 'interrupted', reason, error: Object.create(null) as unknown });
  const closed = closeOpenCalls([user, assistant(call('a'), call('b'))], calls);
  expect(JSON.stringify(closed.at(-1))).toContain('could not be read');
  expect(findWireRefusals(closed)).toEqual([]);
});

test('arguments that are not a JSON object become one, and the call is still recognized', () => {
  const calls = createCallRecords();
  const given = (input: unknown): ModelMessage => ({
    role: 'assistant',
    content: [{ type: 'tool-call', toolCallId: 'a', toolName: 'slow', input }],
  });
  for (const input of ['{"at":', [1], 'x', 5, null, true]) {
    const { callId } = calls.begin({ toolCallId: 'a', tool: 'slow', input, messages: [user] });
    const once = closeOpenCalls([user, given(input)], calls);
    expect(once[1]).toEqual(given({ invalidArguments: input }));
    expect(findWireRefusals(once)).toEqual([]);
    calls.update(callId, { state: 'finished', output: `late ${JSON.stringify(input)}` });
    const twice = closeOpenCalls(once, calls);
    expect(twice[2]).toMatchObject({ content: [{ output: { value: `late ${JSON.stringify(input)}` } }] });
    expect(closeOpenCalls(twice, calls)).toEqual(twice);
  }
});

test('an approved call that the loop runs next keeps its arguments', () => {
  const asked: ModelMessage = {
    role: 'assistant',
    content: [
      { type: 'tool-call', toolCallId: 'a', toolName: 'slow', input: [1] },
      { type: 'tool-approval-request', approvalId: 'p', toolCallId: 'a' },
    ],
  };
  const yes: ModelMessage = {
    role: 'tool',
    content: [{ type: 'tool-approval-response', approvalId: 'p', approved: true }],
  };
  expect(closeOpenCalls([user, asked, yes])[1]).toBe(asked);
  expect(closeOpenCalls([user, asked, yes, user])[1]).toMatchObject({
    content: [{ input: { invalidArguments: [1] } }, {}],
  });
});

test('a call that never started is described the same way while another of its reply is being approved', () => {
  const calls = createCallRecords();
  for (const name of ['slow', 'fast']) calls.addTool(name);
  const reply: ModelMessage = {
    role: 'assistant',
    content: [call('a'), { type: 'tool-approval-request', approvalId: 'p', toolCallId: 'a' }, call('b', 'fast')],
  };
  const [, after] = closeTurn([reply], { calls, history: [user] });
  const value = 'Not started: the run was stopped first. It had no effect.';
  expect(after).toMatchObject({ role: 'tool', content: [{ toolCallId: 'b', output: { value } }] });
  const yes: ModelMessage = {
    role: 'tool',
    content: [{ type: 'tool-approval-response', approvalId: 'p', approved: true }],
  };
  const next = closeOpenCalls([user, reply, yes], calls).at(-1)!;
  expect(next).toMatchObject({ content: [{}, { toolCallId: 'b', output: { value } }] });
});

describe('a call with the id of one that the provider runs', () => {
  const searched = {
    type: 'tool-call',
    toolCallId: 'a',
    toolName: 'web_search',
    input: {},
    providerExecuted: true,
  } as const;
  const found = {
    type: 'tool-result',
    toolCallId: 'a',
    toolName: 'web_search',
    output: { type: 'json', value: [] },
  } as const;

  test('gets its own result', () => {
    const reply: ModelMessage = { role: 'assistant', content: [searched, found, call('a')] };
    const [closed, results] = closeTurn([reply], { calls: undefined, history: [user] });
    expect(closed).toMatchObject({ content: [searched, found, { toolName: 'slow' }] });
    const { toolCallId } = (closed!.content as { toolCallId: string }[])[2]!;
    expect(results).toMatchObject({ role: 'tool', content: [{ toolCallId, toolName: 'slow' }] });
  });

  test('stays, with its result, if the provider never returned its own', () => {
    const reply: ModelMessage = { role: 'assistant', content: [searched, call('a')] };
    expect(closeOpenCalls([user, reply, tool(result('a')), user])).toEqual([
      user,
      assistant(call('a')),
      tool(result('a')),
      user,
    ]);
  });
});
