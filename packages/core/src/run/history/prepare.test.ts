import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { MAX_CONTENT_CHARACTERS } from '../../tool/bounds.ts';
import type { ContentPart } from '../../tool/result.ts';
import { defineTool, type Tool } from '../../tool/tool.ts';
import type { AssistantMessage, AssistantPart, Message, ToolMessage } from './message.ts';
import { describeTools, prepareMessages } from './prepare.ts';

const assistant = (content: AssistantPart[], stopReason: AssistantMessage['stopReason'] = 'stop'): Message => ({
  role: 'assistant',
  content,
  stopReason,
});
const text = (words: string): AssistantPart => ({ type: 'text', text: words });
const call = (callId: string): AssistantPart => ({ type: 'call', callId, tool: 't', input: {} });
const result = (callId: string, rest: Partial<ToolMessage> = {}): Message => ({
  role: 'tool',
  callId,
  tool: 't',
  state: 'finished',
  content: `result of ${callId}`,
  isError: false,
  endedAt: 0,
  ...rest,
});

test('details never reach a model', () => {
  const [, , tool] = prepareMessages([
    { role: 'user', content: 'x' },
    assistant([call('1')]),
    result('1', { details: { secret: 1 } }),
  ]);
  expect(tool).toEqual({ role: 'tool', callId: '1', tool: 't', content: 'result of 1', isError: false });
});

test('partial words are replayed; unsigned thinking and empty parts are not', () => {
  const cut = assistant([{ type: 'thinking', text: 'hm' }, text('I was say'), text('  ')], 'aborted');
  expect(prepareMessages([cut])).toEqual([{ role: 'assistant', content: [text('I was say')] }]);
  const signed: AssistantPart = { type: 'thinking', text: 'hm', signature: 's' };
  expect(prepareMessages([assistant([signed, text('so')])])).toEqual([
    { role: 'assistant', content: [signed, text('so')] },
  ]);
  expect(prepareMessages([assistant([text('so'), signed], 'aborted')])).toEqual([
    { role: 'assistant', content: [text('so')] },
  ]);
  const cutSignature: AssistantPart = { type: 'thinking', text: 'hm', signature: 's\uD83D' };
  expect(prepareMessages([assistant([cutSignature, text('so')])])).toEqual([
    { role: 'assistant', content: [text('so')] },
  ]);
  expect(prepareMessages([assistant([signed], 'aborted'), assistant([], 'aborted')])).toEqual([]);
});

test('every call is followed by its one result, in order, wherever the results stood', () => {
  const history = [
    assistant([call('a'), call('b')]),
    result('b'),
    result('a'),
    result('b', { content: 'again' }),
    result('orphan'),
  ];
  expect(prepareMessages(history).map((message) => (message.role === 'tool' ? message.content : message.role))).toEqual(
    ['assistant', 'result of a', 'result of b'],
  );
});

test('an id that comes again in a later reply names another call, with its own result', () => {
  const history = [
    assistant([call('a')]),
    result('a', { content: 'first' }),
    assistant([call('a')]),
    assistant([call('a')]),
    result('a', { content: 'third' }),
  ];
  expect(prepareMessages(history).flatMap((message) => (message.role === 'tool' ? [message.content] : []))).toEqual([
    'first',
    'Outcome unknown: no result was recorded.',
    'third',
  ]);
});

test('a call without a result is reported as unknown', () => {
  expect(prepareMessages([assistant([call('a')]), { role: 'user', content: 'and?' }])).toMatchObject([
    { role: 'assistant' },
    { role: 'tool', callId: 'a', content: 'Outcome unknown: no result was recorded.', isError: true },
    { role: 'user' },
  ]);
});

test('content is bounded, and the marker shows how much is missing', () => {
  const long = `${'a'.repeat(MAX_CONTENT_CHARACTERS)}tail`;
  const [message] = prepareMessages([{ role: 'user', content: long }]);
  const content = message!.content as string;
  expect(content.length).toBeLessThan(MAX_CONTENT_CHARACTERS + 100);
  expect(content.replaceAll(/a+/g, 'a')).toBe('a\n[… 4 of 100004 characters cut …]\natail');
  const image = { type: 'image', mediaType: 'image/png', data: 'x' } as const;
  const parts = [long, 'more', ' '].map((words) => ({ type: 'text', text: words }) as const);
  const [mixed] = prepareMessages([{ role: 'user', content: [image, ...parts] }]);
  const types = (mixed!.content as ContentPart[]).map((part) => (part.type === 'text' ? part.text.length : part.type));
  expect(types).toEqual(['image', content.length, '\n[… 4 of 4 characters cut …]\n'.length]);
});

test('prepared messages are never empty', () => {
  const history = [
    { role: 'user', content: ' ' } as const,
    { role: 'user', content: [] } as const,
    assistant([call('1')]),
    result('1', { content: '' }),
  ];
  expect(prepareMessages(history).map(({ content }) => content)).toEqual([
    '(nothing)',
    '(nothing)',
    [call('1')],
    '(nothing)',
  ]);
});

test('any history becomes a valid one', () => {
  const id = fc.constantFrom('1', '2', '3');
  const part = fc.oneof(
    fc.string({ maxLength: 3 }).map(text),
    fc.record({ type: fc.constant('thinking' as const), text: fc.string({ maxLength: 3 }) }, {}),
    id.map(call),
  );
  const message = fc.oneof(
    fc.string({ maxLength: 3 }).map((content): Message => ({ role: 'user', content })),
    fc
      .uniqueArray(part, { maxLength: 4, selector: (one) => (one.type === 'call' ? one.callId : {}) })
      .map((parts) => assistant(parts)),
    id.map((one) => result(one)),
  );
  fc.assert(
    fc.property(fc.array(message, { maxLength: 12 }), (history) => {
      const prepared = prepareMessages(history);
      for (const [at, one] of prepared.entries()) {
        if (one.role === 'assistant') {
          expect(one.content.length).toBeGreaterThan(0);
          const calls = one.content.flatMap((piece) => (piece.type === 'call' ? [piece.callId] : []));
          const behind = prepared
            .slice(at + 1, at + 1 + calls.length)
            .map((next) => (next.role === 'tool' ? next.callId : next.role));
          expect(behind).toEqual(calls);
          expect(prepared[at + 1 + calls.length]?.role).not.toBe('tool');
        }
      }
      expect(prepared[0]?.role).not.toBe('tool');
    }),
  );
});

test('tools are described to the model, or reported as incomplete', () => {
  const base = { name: 'x', description: 'does x', execute: () => '' };
  expect(describeTools([defineTool({ ...base, inputSchema: z.object({ a: z.string() }) }) as Tool])).toMatchObject([
    { name: 'x', description: 'does x', inputJsonSchema: { type: 'object', required: ['a'] } },
  ]);
  const mute = { '~standard': { version: 1, vendor: 'x', validate: () => ({ value: 1 }) } } as const;
  expect(() => describeTools([defineTool({ ...base, inputSchema: mute })])).toThrow(
    "the schema of 'x' cannot describe itself",
  );
  expect(describeTools([defineTool({ ...base, inputSchema: mute, inputJsonSchema: { type: 'object' } })])).toHaveLength(
    1,
  );
});

test('ids, names and characters that a provider would reject are repaired, and calls and results still agree', () => {
  const nasty = (callId: string, tool: string): AssistantPart => ({
    type: 'call',
    callId,
    tool,
    input: { '\ud800k': ['\udc00v'] },
  });
  const prepared = prepareMessages([
    { role: 'user', content: [{ type: 'text', text: 'half \ud83d' }] },
    assistant([text('cut \ud83d'), nasty('', 'functions.w <|x|>'), nasty('a b', '1st')]),
    result('a b', { content: 'out \ud83d' }),
    result('', { content: 'first' }),
    assistant([nasty('', ''), nasty('a b', 't')]),
    result('', { content: 'third' }),
  ]);
  expect(prepared).toEqual([
    { role: 'user', content: [{ type: 'text', text: 'half \ufffd' }] },
    {
      role: 'assistant',
      content: [
        text('cut \ufffd'),
        { type: 'call', callId: 'call', providerId: '', tool: '_functions_w___x__', input: { '\ufffdk': ['\ufffdv'] } },
        { type: 'call', callId: 'a_b', providerId: 'a b', tool: '_1st', input: { '\ufffdk': ['\ufffdv'] } },
      ],
    },
    { role: 'tool', callId: 'call', tool: '_functions_w___x__', content: 'first', isError: false },
    { role: 'tool', callId: 'a_b', tool: '_1st', content: 'out \ufffd', isError: false },
    expect.objectContaining({ role: 'assistant' }),
    { role: 'tool', callId: 'call-2', tool: '_', content: 'third', isError: false },
    { role: 'tool', callId: 'a_b-2', tool: 't', content: 'Outcome unknown: no result was recorded.', isError: true },
  ]);
});

test('a result that stands before its call is still its result, the first one if there are several', () => {
  const contents = (history: readonly Message[]): unknown[] =>
    prepareMessages(history).flatMap((message) => (message.role === 'tool' ? [message.content] : []));
  expect(
    contents([result('a', { content: 'early' }), result('a', { content: 'late' }), assistant([call('a')])]),
  ).toEqual(['early']);
  // One that has its own result is not given another's.
  expect(
    contents([result('a', { content: 'stray' }), assistant([call('a')]), result('a', { content: 'own' })]),
  ).toEqual(['own']);
  expect(contents([result('b'), assistant([call('a')])])).toEqual(['Outcome unknown: no result was recorded.']);
});

test('a valid part is sent unchanged', () => {
  const fit: AssistantPart = {
    type: 'call',
    callId: 'a',
    tool: 't',
    input: { whole: ['😀', null, 1, { deep: 'text' }], nothing: null, flag: true },
  };
  const words = text('whole 😀');
  const [message] = prepareMessages([assistant([words, fit])]);
  expect(message!.content[0]).toBe(words);
  expect(message!.content[1]).toBe(fit);
});

test.each<[string, Partial<AssistantPart & { type: 'call' }>, object]>([
  [
    'an id that is safe keeps the one it came with',
    { tool: '1st', providerId: 'p' },
    { tool: '_1st', providerId: 'p' },
  ],
  ['an id that is not becomes the one it came with', { callId: 'a b' }, { callId: 'a_b', providerId: 'a b' }],
  [
    'an id that is longer than one provider accepts',
    { callId: `chatcmpl-tool-${'a1b2c3d4'.repeat(4)}` },
    {
      callId: 'chatcmpl-tool-a1b2c3d4a1b2c3d4a1b2c3d4a1',
      providerId: `chatcmpl-tool-${'a1b2c3d4'.repeat(4)}`,
    },
  ],
  ['one that it came with stays', { callId: 'a b', providerId: 'p' }, { callId: 'a_b', providerId: 'p' }],
  ['a name is cut to what providers accept', { tool: 'é'.repeat(80) }, { tool: '_'.repeat(64) }],
  ['half a character deep inside', { input: { a: [{ b: '\ud800' }] } }, { input: { a: [{ b: '\ufffd' }] } }],
  ['half a character in a name', { input: { a: { '\ud800': null } } }, { input: { a: { '\ufffd': null } } }],
  [
    'half a character beside whole ones',
    { input: { a: 'ok', b: '\udc00', c: 3 } },
    { input: { a: 'ok', b: '\ufffd', c: 3 } },
  ],
  ['an input that is a text', { input: 'cut \ud83d' }, { input: 'cut \ufffd' }],
])('invalid history is repaired for the provider: %s', (_name, given, wanted) => {
  const part = { type: 'call', callId: 'a', tool: 't', input: {}, ...given } as const;
  const [message] = prepareMessages([assistant([part])]);
  expect(message!.content[0]).toStrictEqual({ ...part, ...wanted });
});

test('a schema is asked for the draft that every provider reads, and one that fails is named with what to do', () => {
  const asked: unknown[] = [];
  const describing = (input: (options: unknown) => Record<string, unknown>) =>
    defineTool({
      name: 'x',
      description: 'does x',
      execute: () => '',
      inputSchema: {
        '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }), jsonSchema: { input } },
      } as never,
    }) as Tool;
  const answers = describing((options) => {
    asked.push(options);
    return { type: 'object' };
  });
  expect(describeTools([answers])).toEqual([{ name: 'x', description: 'does x', inputJsonSchema: { type: 'object' } }]);
  expect(asked).toEqual([{ target: 'draft-07' }]);
  const fails = describing(() => {
    throw new Error('no');
  });
  expect(() => describeTools([fails])).toThrow(
    "tools: the schema of 'x' failed to describe itself; give the tool an inputJsonSchema",
  );
});
