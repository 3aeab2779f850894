import { getEventListeners } from 'node:events';
import { createAgent, defineTool } from '@whoa/core';
import type { ModelMessage, ModelPart, ModelRequest } from '@whoa/core/model';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { loopbackModel, spoken } from '../../../test/ai-sdk/providers.ts';
import { type ScriptedResponse, startLoopbackProvider, type WireFormat } from './testing/index.ts';

const hello: ModelRequest = { messages: [{ role: 'user', content: 'Hello?' }], tools: [] };
const bash = { name: 'bash', description: 'Runs a command', inputJsonSchema: { type: 'object', properties: {} } };

async function collect(parts: AsyncIterable<ModelPart>): Promise<{ parts: ModelPart[]; error?: unknown }> {
  const seen: ModelPart[] = [];
  try {
    for await (const part of parts) seen.push(part);
    return { parts: seen };
  } catch (error) {
    return { parts: seen, error };
  }
}

/** Runs one request against one answer, to its end. */
async function answerTo(
  [format, version]: readonly [WireFormat, 'v3' | 'v4'],
  answer: ScriptedResponse,
  request: ModelRequest = hello,
) {
  await using provider = await startLoopbackProvider({ script: [answer] });
  const { signal } = new AbortController();
  const end = await collect(loopbackModel(format, provider.url, version).stream(request, { signal }));
  await provider.waitForIdle();
  return { ...end, request: provider.requests[0]!, listeners: getEventListeners(signal, 'abort').length };
}

const words = (parts: readonly ModelPart[], type: 'text' | 'thinking'): string =>
  parts.map((part) => (part.type === type ? part.text : '')).join('');

describe.each(spoken)('%s (%s): a reply', (format, version) => {
  const mode = [format, version] as const;

  test('text arrives in chunks, then the usage, then the stop reason', async () => {
    const { parts, error } = await answerTo(mode, { parts: [{ text: ['Hel', 'lo ', 'you'] }] });
    expect(error).toBeUndefined();
    expect(parts.filter(({ type }) => type === 'text')).toEqual([
      { type: 'text', text: 'Hel' },
      { type: 'text', text: 'lo ' },
      { type: 'text', text: 'you' },
    ]);
    expect(parts.at(-2)).toEqual({ type: 'usage', inputTokens: 11, outputTokens: 20 });
    expect(parts.at(-1)).toEqual({ type: 'finish', stopReason: 'stop' });
  });

  test('calls start, show their arguments and end with the parsed input', async () => {
    const { parts } = await answerTo(
      mode,
      {
        parts: [
          { text: 'Look:' },
          { call: 'bash', id: 'a', arguments: ['{"command"', ':"ls"}'] },
          { call: 'bash', id: 'b', input: { command: 'pwd' } },
        ],
      },
      { ...hello, tools: [bash] },
    );
    const ofCall = (id: string) => parts.filter((part) => 'callId' in part && part.callId === id);
    expect(ofCall('a')).toEqual([
      { type: 'call-start', callId: 'a', tool: 'bash' },
      { type: 'call-arguments', callId: 'a', text: '{"command"' },
      { type: 'call-arguments', callId: 'a', text: ':"ls"}' },
      { type: 'call-end', callId: 'a', tool: 'bash', input: { command: 'ls' } },
    ]);
    expect(ofCall('b').at(-1)).toEqual({ type: 'call-end', callId: 'b', tool: 'bash', input: { command: 'pwd' } });
    expect(parts.at(-1)).toEqual({ type: 'finish', stopReason: 'tool-use' });
  });

  test('a call without arguments has an empty input', async () => {
    const { parts } = await answerTo(mode, { parts: [{ call: 'bash', arguments: '{}' }] }, { ...hello, tools: [bash] });
    expect(parts.find(({ type }) => type === 'call-end')).toMatchObject({ input: {} });
  });

  test('arguments that are not JSON are passed on as text', async () => {
    const answer: ScriptedResponse = {
      parts: [{ call: 'bash', id: 'a', arguments: '{"command": ls' }],
      finish: 'length',
    };
    const { parts, error } = await answerTo(mode, answer, { ...hello, tools: [bash] });
    expect(error).toBeUndefined();
    const end = parts.find(({ type }) => type === 'call-end');
    // A package may keep back a call that it sees to be broken. None may hand over anything but the text.
    if (end !== undefined) expect(end).toMatchObject({ callId: 'a', input: '{"command": ls' });
    expect(parts.at(-1)).toEqual({ type: 'finish', stopReason: 'length' });
  });

  test('a reply that hit the limit reports it', async () => {
    const { parts } = await answerTo(mode, { parts: [{ text: 'Once upon' }], finish: 'length' });
    expect(parts.at(-1)).toEqual({ type: 'finish', stopReason: 'length' });
  });

  test('instructions, tools and the whole history reach the provider, and it accepts them', async () => {
    const messages: ModelMessage[] = [
      { role: 'user', content: 'List the files' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', text: 'unsigned' },
          { type: 'text', text: 'Looking.' },
          { type: 'call', callId: 'a', tool: 'bash', input: { command: 'ls' } },
          { type: 'call', callId: 'b', tool: 'bash', input: 'not an object' },
        ],
      },
      { role: 'tool', callId: 'a', tool: 'bash', content: 'file.txt', isError: false },
      { role: 'tool', callId: 'b', tool: 'bash', content: 'input: expected an object', isError: true },
      { role: 'assistant', content: [{ type: 'thinking', text: 'cut off while thinking' }] },
      { role: 'assistant', content: [{ type: 'text', text: '  ' }] },
      { role: 'user', content: 'And now?' },
    ];
    const request = { instructions: 'Be brief.', messages, tools: [bash] };
    const { parts, error, request: seen } = await answerTo(mode, { parts: [{ text: 'Done.' }] }, request);
    expect(error).toBeUndefined();
    expect(seen.refusal).toBeUndefined();
    expect(words(parts, 'text')).toBe('Done.');
    const body = JSON.stringify(seen.body);
    for (const word of [
      'Be brief.',
      'List the files',
      'Looking.',
      'file.txt',
      'expected an object',
      'invalidArguments',
    ])
      expect(body).toContain(word);
    expect(body).not.toContain('unsigned');
    expect(body).not.toContain('cut off while thinking');
  });

  test('an image reaches the model from a user and from a tool, never as text', async () => {
    const data = Buffer.from('not really a picture').toString('base64');
    const image = { type: 'image', mediaType: 'image/png', data } as const;
    const messages: ModelMessage[] = [
      { role: 'user', content: [{ type: 'text', text: 'What is this?' }, image] },
      { role: 'assistant', content: [{ type: 'call', callId: 'a', tool: 'bash', input: {} }] },
      { role: 'tool', callId: 'a', tool: 'bash', content: [{ type: 'text', text: 'Taken.' }, image], isError: true },
    ];
    const { error, request } = await answerTo(mode, { parts: [{ text: 'A cat' }] }, { messages, tools: [bash] });
    expect(error).toBeUndefined();
    const body = JSON.stringify(request.body);
    expect(body.split(data).length - 1).toBe(2);
    // Inside a text, the quotes around it would be escaped.
    expect(body).not.toMatch(new RegExp(`\\\\"[^"]*${data}`));
  });

  test('letters that arrive in pieces of bytes are whole', async () => {
    const text = 'Grüße, 世界 👋';
    const { parts } = await answerTo(mode, { parts: [{ text }], pace: { intervalMs: 0, bytes: 7 } });
    expect(words(parts, 'text')).toBe(text);
  });

  test('thinking that another vendor signed is left out, and the request is accepted', async () => {
    const signature = JSON.stringify({ metadata: { elsewhere: { signature: 'theirs' } } });
    const messages: ModelMessage[] = [
      ...hello.messages,
      {
        role: 'assistant',
        content: [
          { type: 'thinking', text: 'their thought', signature },
          { type: 'text', text: 'Hi' },
        ],
      },
      { role: 'user', content: 'Go on' },
    ];
    const { error, request } = await answerTo(mode, { parts: [{ text: 'Done.' }] }, { messages, tools: [] });
    expect(error).toBeUndefined();
    expect(JSON.stringify(request.body)).not.toContain('their thought');
  });

  test('a run leaves no listener on its signal and no open response', async () => {
    await using provider = await startLoopbackProvider({ script: () => ({ parts: [{ text: ['a', 'b'] }] }) });
    const { signal } = new AbortController();
    const model = loopbackModel(format, provider.url, version);
    for (let round = 0; round < 200; round++) {
      if (round % 4 === 3) {
        for await (const part of model.stream(hello, { signal })) if (part.type === 'text') break;
      } else await collect(model.stream(hello, { signal }));
    }
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    await provider.waitForIdle();
    expect(provider.openResponses).toBe(0);
    expect(provider.requests).toHaveLength(200);
  });
});

// Chat Completions shows no thoughts.
describe.each(spoken.filter(([format]) => format !== 'chat'))('%s (%s): thinking', (format, version) => {
  const mode = [format, version] as const;

  test('thinking is shown as it arrives and, with its proof, accepted in the next request', async () => {
    await using provider = await startLoopbackProvider({
      script: [
        { parts: [{ thinking: ['First ', 'look.'] }, { call: 'bash', id: 'a', input: { command: 'ls' } }] },
        { parts: [{ text: 'Done.' }] },
      ],
    });
    const { signal } = new AbortController();
    const model = loopbackModel(format, provider.url, version);
    const { parts } = await collect(model.stream({ ...hello, tools: [bash] }, { signal }));
    expect(words(parts, 'thinking')).toBe('First look.');
    const end = parts.find((part) => part.type === 'thinking-end');
    expect(end?.signature).toEqual(expect.any(String));
    const messages: ModelMessage[] = [
      ...hello.messages,
      {
        role: 'assistant',
        content: [
          { type: 'thinking', text: 'First look.', signature: end!.signature! },
          { type: 'call', callId: 'a', tool: 'bash', input: { command: 'ls' } },
        ],
      },
      { role: 'tool', callId: 'a', tool: 'bash', content: 'file.txt', isError: false },
    ];
    const next = await collect(model.stream({ messages, tools: [bash] }, { signal }));
    expect(next.error).toBeUndefined();
    expect(provider.requests[1]?.refusal).toBeUndefined();
    expect(JSON.stringify(provider.requests[1]?.body)).toContain('First look.');
  });

  test('thinking that only the vendor can read is kept and sent back too', async () => {
    await using provider = await startLoopbackProvider({
      script: [{ parts: [{ redacted: 'opaque==' }, { text: 'Hi.' }] }, { parts: [{ text: 'Done.' }] }],
    });
    const { signal } = new AbortController();
    const model = loopbackModel(format, provider.url, version);
    const { parts } = await collect(model.stream(hello, { signal }));
    expect(parts.map(({ type }) => type).filter((type) => type.startsWith('thinking'))).toEqual(['thinking-end']);
    const { signature } = parts.find((part) => part.type === 'thinking-end')!;
    const content = [
      { type: 'thinking', text: '', signature: signature! } as const,
      { type: 'text', text: 'Hi.' } as const,
    ];
    const messages: ModelMessage[] = [
      ...hello.messages,
      { role: 'assistant', content },
      { role: 'user', content: 'Go on' },
    ];
    const next = await collect(model.stream({ messages, tools: [] }, { signal }));
    expect(next.error).toBeUndefined();
    expect(JSON.stringify(provider.requests[1]?.body)).toContain('opaque==');
  });

  test('thinking without a proof is shown but not signed', async () => {
    const { parts } = await answerTo(mode, { parts: [{ thinking: 'Hm.', signature: false }, { text: 'Hi.' }] });
    expect(words(parts, 'thinking')).toBe('Hm.');
    expect(parts.find(({ type }) => type === 'thinking-end')).toEqual({ type: 'thinking-end' });
  });
});

test.each(spoken)(
  '%s (%s): messages carry provider, API and model, and are sent back without',
  async (format, version) => {
    const cut: ScriptedResponse = { parts: [{ text: ['Hel', { stall: true }] }] };
    await using provider = await startLoopbackProvider({ script: [cut, { parts: [{ text: 'Hello' }] }] });
    const model = loopbackModel(format, provider.url, version);
    const agent = createAgent({ name: 'a', model });
    const run = agent.run('Hi', { hooks: { text: () => void run.cancel() } });
    const { messages } = await run.outcome;
    const outcome = await agent.run('Again', { history: messages }).outcome;
    const replies = outcome.messages.filter(({ role }) => role === 'assistant');
    expect(replies).toHaveLength(2);
    expect(replies[0]).toMatchObject({ stopReason: 'aborted', ...model.source });
    expect(replies[1]).toMatchObject({ stopReason: 'stop', ...model.source });
    expect(provider.requests[1]!.refusal).toBeUndefined();
    const sent = JSON.stringify(provider.requests[1]!.body['messages'] ?? provider.requests[1]!.body['input']);
    expect(sent).not.toMatch(/provider|"api"|"model"/);
  },
);

test.each(spoken)(
  '%s (%s): a call id of a compatible server is sent back no longer than all accept',
  async (...mode) => {
    const id = `chatcmpl-tool-${'a1b2c3d4'.repeat(4)}`;
    const asks: ScriptedResponse = { parts: [{ call: 'look', id }] };
    await using provider = await startLoopbackProvider({ script: [asks, asks, { parts: [{ text: 'Done' }] }] });
    const look = defineTool({ name: 'look', description: '', inputSchema: z.object({}), execute: () => 'seen' });
    const agent = createAgent({ name: 'a', tools: [look], model: loopbackModel(mode[0], provider.url, mode[1]) });
    expect(await agent.run('Look').outcome).toMatchObject({ status: 'success', text: 'Done' });
    expect(provider.requests.map(({ refusal }) => refusal)).toEqual([undefined, undefined, undefined]);
  },
);
