import type { ModelMessage } from '@whoa/core/model';
import { describe, expect, test } from 'vitest';
import { findRefusals, strictValidators } from './history.ts';
import { RULES } from './rules.ts';

const user = (content: string): ModelMessage => ({ role: 'user', content });
const say = (text: string) => ({ type: 'text', text }) as const;
const call = (callId: string, input: unknown = {}) => ({ type: 'call', callId, tool: 'bash', input }) as const;
const assistant = (...content: Extract<ModelMessage, { role: 'assistant' }>['content'][number][]): ModelMessage => ({
  role: 'assistant',
  content,
});
const result = (callId: string): ModelMessage => ({
  role: 'tool',
  callId,
  tool: 'bash',
  content: 'ok',
  isError: false,
});

describe('a history that every vendor accepts', () => {
  test.each<[string, ModelMessage[]]>([
    ['one question', [user('Hi')]],
    ['a dialogue', [user('Hi'), assistant(say('Hello')), user('Bye')]],
    ['calls with their results', [user('Hi'), assistant(say('Look'), call('a'), call('b')), result('a'), result('b')]],
    ['results in another order', [user('Hi'), assistant(call('a'), call('b')), result('b'), result('a'), user('So?')]],
    ['two questions in a row', [user('Hi'), user('Hello?')]],
    [
      'signed thinking',
      [
        user('Hi'),
        assistant({ type: 'thinking', text: 'hm', signature: 's' }, call('a')),
        result('a'),
        assistant(say('Done')),
        user('Thanks'),
      ],
    ],
  ])('%s', (_, messages) => {
    expect(findRefusals(messages)).toEqual([]);
  });
});

describe('a history that every vendor refuses', () => {
  test.each<[string, ModelMessage[], Record<'chat' | 'responses' | 'anthropic', RegExp>]>([
    [
      'a call without a result',
      [user('Hi'), assistant(call('a'), call('b')), result('a'), user('So?')],
      {
        chat: /must be followed by tool messages responding to each 'tool_call_id'.*: b$/,
        responses: /No tool output found for function call b\./,
        anthropic: /messages\.1: `tool_use` ids were found without `tool_result` blocks immediately after: b\./,
      },
    ],
    [
      'a call without a result at the very end',
      [user('Hi'), assistant(call('a'))],
      {
        chat: /did not have response messages: a/,
        responses: /No tool output found/,
        anthropic: /without `tool_result`/,
      },
    ],
    [
      'a result without a call',
      [user('Hi'), result('x'), user('So?')],
      {
        chat: /messages with role 'tool' must be a response to a preceeding message with 'tool_calls'/,
        responses: /No tool call found for function call output with call_id x\./,
        anthropic: /messages\.0\.content\.1: unexpected `tool_use_id` found in `tool_result` blocks: x\./,
      },
    ],
    [
      'a result for an unknown call',
      [user('Hi'), assistant(call('a')), result('a'), result('x')],
      {
        chat: /'tool_call_id' of 'x' not found in 'tool_calls' of previous message/,
        responses: /No tool call found/,
        anthropic: /unexpected `tool_use_id`/,
      },
    ],
    [
      'a result before its call',
      [user('Hi'), result('a'), assistant(call('a')), user('So?')],
      { chat: /preceeding message/, responses: /No tool call found/, anthropic: /unexpected `tool_use_id`|without/ },
    ],
    [
      'a result that does not follow its call directly',
      [user('Hi'), assistant(call('a')), user('Wait'), result('a')],
      { chat: /must be followed/, responses: /No tool output found/, anthropic: /immediately after: a/ },
    ],
    [
      'two results for one call',
      [user('Hi'), assistant(call('a')), result('a'), result('a')],
      { chat: /Duplicate value/, responses: /Duplicate/, anthropic: /each tool_use must have a single result/ },
    ],
    [
      'two calls of one name',
      [user('Hi'), assistant(call('a'), call('a')), result('a')],
      { chat: /unique/, responses: /Duplicate/, anthropic: /`tool_use` ids must be unique/ },
    ],
    [
      'an empty reply',
      [user('Hi'), assistant(), user('So?')],
      { chat: /'content'/, responses: /^$/, anthropic: /all messages must have non-empty content/ },
    ],
    [
      'a reply of blanks',
      [user('Hi'), assistant(say(' \n')), user('So?')],
      { chat: /'content'/, responses: /'content'/, anthropic: /must contain non-whitespace text/ },
    ],
    [
      'an empty question',
      [user('')],
      { chat: /'content'/, responses: /'content'/, anthropic: /text content blocks must be non-empty/ },
    ],
    [
      'arguments that are no object',
      [user('Hi'), assistant(call('a', 'ls')), result('a')],
      { chat: /JSON object/, responses: /JSON object/, anthropic: /Input should be a valid dictionary/ },
    ],
    [
      'half a character in a question',
      [user('\ud83d')],
      { chat: /could not parse/, responses: /could not parse/, anthropic: /no low surrogate in string/ },
    ],
    [
      'half a character in the arguments of a call',
      [user('Hi'), assistant({ ...call('a'), input: { '\udc00': 1 } }), result('a')],
      { chat: /^$/, responses: /^$/, anthropic: /no low surrogate in string/ },
    ],
    [
      'a tool name that was made up',
      [user('Hi'), assistant({ ...call('a'), tool: 'functions.bash <|x|>' }), result('a')],
      {
        chat: /function\.name': string does not match/,
        responses: /name': string does not/,
        anthropic: /tool_use\.name/,
      },
    ],
    [
      'a tool name that is too long',
      [user('Hi'), assistant({ ...call('a'), tool: 'b'.repeat(65) }), result('a')],
      { chat: /name'/, responses: /name'/, anthropic: /tool_use\.name/ },
    ],
    [
      'an empty id',
      [user('Hi'), assistant(call('')), result('')],
      { chat: /not empty/, responses: /call_id/, anthropic: /tool_use\.id: String should match pattern/ },
    ],
    [
      'an id of characters that one vendor does not take',
      [user('Hi'), assistant(call('functions.bash:0')), result('functions.bash:0')],
      { chat: /^$/, responses: /^$/, anthropic: /tool_use\.id/ },
    ],
    [
      'an id that is too long for one vendor',
      [user('Hi'), assistant(call('x'.repeat(41))), result('x'.repeat(41))],
      { chat: /maximum length 40/, responses: /^$/, anthropic: /^$/ },
    ],
    [
      'an id that is too long for two',
      [user('Hi'), assistant(call('x'.repeat(65))), result('x'.repeat(65))],
      { chat: /maximum length 40/, responses: /maximum length 64/, anthropic: /^$/ },
    ],
    ['nothing', [], { chat: /empty array/, responses: /empty array/, anthropic: /at least one message/ }],
  ])('%s', (_, messages, wording) => {
    const refusals = Object.fromEntries(findRefusals(messages).map(({ format, message }) => [format, message]));
    // An empty reply is no item at all where a history is a list of items.
    for (const [format, words] of Object.entries(wording)) expect(refusals[format] ?? '', format).toMatch(words);
  });

  test('unsigned thinking', () => {
    const messages = [user('Hi'), assistant({ type: 'thinking', text: 'hm' }, say('Hello')), user('So?')];
    const refusals = findRefusals(messages);
    expect(refusals.map(({ format }) => format)).toEqual(['responses', 'anthropic']);
    expect(refusals[0]?.message).toMatch(/not found/);
    expect(refusals[1]?.message).toMatch(/signature: Field required/);
  });

  test('a reply that ends with a thought', () => {
    const messages = [user('Hi'), assistant({ type: 'thinking', text: 'hm', signature: 's' }), user('So?')];
    expect(findRefusals(messages).map(({ format }) => format)).toEqual(['chat', 'responses', 'anthropic']);
  });
});

test('the names of the tools on offer are checked as well', () => {
  const messages = [{ role: 'user', content: 'Hi' }];
  const name = 'a.b';
  const { chat, responses, anthropic } = strictValidators;
  expect(chat({ messages, tools: [{ type: 'function', function: { name } }] })?.rule).toBe('chat-name');
  expect(responses({ input: messages, tools: [{ type: 'function', name }] })?.rule).toBe('responses-name');
  expect(anthropic({ messages, tools: [{ name }] })?.rule).toBe('anthropic-name');
});

test('every rule names the page, type or report it was taken from', () => {
  for (const [rule, source] of Object.entries(RULES)) expect(source, rule).toMatch(/https:\/\/|^type |RFC/);
});

describe('what one vendor alone refuses', () => {
  const { anthropic, responses } = strictValidators;

  test('anthropic: a history that begins with the assistant, an unknown role, a trailing blank', () => {
    expect(anthropic({ messages: [{ role: 'assistant', content: 'Hi' }] })?.message).toMatch(/first message/);
    expect(
      anthropic({
        messages: [
          { role: 'user', content: 'Hi' },
          { role: 'tool', content: 'x' },
        ],
      })?.message,
    ).toMatch(/messages\.1\.role/);
    const trailing = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Well, ' },
    ];
    expect(anthropic({ messages: trailing })?.message).toMatch(/trailing whitespace/);
  });

  test('anthropic: results that do not stand first in their message', () => {
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'bash', input: {} }] },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Here:' },
          { type: 'tool_result', tool_use_id: 'a', content: 'ok' },
        ],
      },
    ];
    expect(anthropic({ messages })?.message).toMatch(/immediately after: a/);
  });

  test('anthropic: its own call without a result, once something other than results follows', () => {
    const question = { role: 'user', content: 'Hi' };
    const search = { type: 'server_tool_use', id: 's', name: 'web_search', input: {} };
    const found = { type: 'web_search_tool_result', tool_use_id: 's', content: [] };
    const call = { type: 'tool_use', id: 'a', name: 'bash', input: {} };
    const result = { type: 'tool_result', tool_use_id: 'a', content: 'ok' };
    const said = (...content: object[]) => ({ role: 'assistant', content });
    const told = (...content: object[]) => ({ role: 'user', content });
    const more = { type: 'text', text: 'And?' };
    for (const messages of [
      [question, said(search, found), question],
      [question, said(search)],
      [question, said(search, call), told(result)],
      [question, said(search, call), told(result), said(found, more), question],
    ])
      expect(anthropic({ messages })).toBeUndefined();
    for (const messages of [
      [question, said(search), question],
      [question, said(search, call), told(result, more)],
      [question, said(search, call), told(result), said(more)],
    ])
      expect(anthropic({ messages })).toEqual({
        rule: 'anthropic-server-tool-answered',
        message:
          'messages.1: `web_search` tool use with id `s` was found without a corresponding `web_search_tool_result` block',
      });
  });

  test('anthropic: with thinking on, calls that no thought precedes', () => {
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'bash', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'ok' }] },
    ];
    expect(anthropic({ messages })).toBeUndefined();
    expect(anthropic({ messages, thinking: { type: 'enabled' } })?.message).toMatch(/Expected `thinking`/);
  });

  test('forged proofs, where it is known which were given out', () => {
    const isGenuine = (proof: string) => proof === 'real';
    const thought = (signature: string) => ({
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm', signature },
            { type: 'text', text: 'Hello' },
          ],
        },
        { role: 'user', content: 'So?' },
      ],
    });
    expect(anthropic(thought('real'), { isGenuine })).toBeUndefined();
    expect(anthropic(thought('forged'), { isGenuine })?.message).toMatch(/Invalid `signature` in `thinking` block/);
  });

  test('responses: a reference to something that was not kept, a thought that nothing follows', () => {
    const question = { role: 'user', content: [{ type: 'input_text', text: 'Hi' }] };
    expect(responses({ input: [question, { type: 'item_reference', id: 'rs_1' }] })?.message).toMatch(
      /Item with id 'rs_1' not found/,
    );
    const thought = { type: 'reasoning', id: 'rs_2', encrypted_content: 'x' };
    expect(responses({ input: [question, thought, question] })?.message).toMatch(
      /'rs_2' of type 'reasoning' was provided without its required following item/,
    );
  });
});
