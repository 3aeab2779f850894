import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import { createAgent, defineTool } from '@whoa/core';
import { ModelError, type ModelMessage, type ModelPart, type ModelRequest } from '@whoa/core/model';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { aiSdkModel } from '../../../test/ai-sdk/providers.ts';
import { type AiSdkModel, fromAiSdk } from './from-ai-sdk.ts';

const NO_TOKENS = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const hello: ModelRequest = { messages: [{ role: 'user', content: 'Hello?' }], tools: [] };

async function collect(parts: AsyncIterable<ModelPart>): Promise<{ parts: ModelPart[]; error?: unknown }> {
  const seen: ModelPart[] = [];
  try {
    for await (const part of parts) seen.push(part);
    return { parts: seen };
  } catch (error) {
    return { parts: seen, error };
  }
}

test('each signed call is replayed with its own signature, whatever ids its provider gave', async () => {
  const prompts: LanguageModelV4Prompt[] = [];
  const call = (toolCallId: string, thoughtSignature?: string) => ({
    type: 'tool-call',
    toolCallId,
    toolName: 'look',
    input: '{}',
    ...(thoughtSignature && { providerMetadata: { google: { thoughtSignature } } }),
  });
  const replies = [
    [call('functions.x:0', 'one'), call('functions.x:0'), call('functions.x:0', 'three'), call('', 'four')],
    [call('functions.x:0', 'five')],
    [],
  ];
  const finish = { type: 'finish', finishReason: { unified: 'stop', raw: 'STOP' }, usage: NO_TOKENS };
  const model = {
    specificationVersion: 'v4',
    provider: 'google.generative-ai',
    modelId: 'gemini',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('not used')),
    doStream({ prompt }: { prompt: LanguageModelV4Prompt }) {
      prompts.push(prompt);
      return Promise.resolve({ stream: ReadableStream.from([...replies[prompts.length - 1]!, finish]) });
    },
  } as unknown as AiSdkModel;
  const look = defineTool({
    name: 'look',
    description: 'Looks',
    inputSchema: z.object({}),
    effects: 'read',
    execute: () => 'x',
  });
  const agent = createAgent({ name: 'a', model: fromAiSdk(model), tools: [look] });
  expect(await agent.run('Look').outcome).toMatchObject({ status: 'success' });
  const sent = prompts.at(-1)!.flatMap(({ role, content }) => (role === 'assistant' ? content : []));
  const calls = sent.flatMap((part) => (part.type === 'tool-call' ? [part] : []));
  expect(calls.map(({ providerOptions }) => providerOptions?.['google']?.['thoughtSignature'])).toEqual([
    'one',
    undefined,
    'three',
    'four',
    'five',
  ]);
  expect(new Set(calls.map(({ toolCallId }) => toolCallId)).size).toBe(5);
  for (const { toolCallId } of calls) expect(toolCallId).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
});

test('a signed call is replayed with its signature', async () => {
  const metadata = { google: { thoughtSignature: 'abc' } };
  const seen: unknown[] = [];
  const model: AiSdkModel = {
    specificationVersion: 'v4',
    provider: 'google.generative-ai',
    modelId: 'gemini',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('not used')),
    doStream({ prompt }) {
      seen.push(prompt);
      return Promise.resolve({
        stream: ReadableStream.from([
          { type: 'tool-call', toolCallId: 'a', toolName: 'bash', input: '{}', providerMetadata: metadata },
          {
            type: 'finish',
            finishReason: { unified: 'stop', raw: 'STOP' },
            usage: { inputTokens: { total: 1 }, outputTokens: { total: 2 } },
          },
        ]) as never,
      });
    },
  };
  const { signal } = new AbortController();
  const { parts } = await collect(fromAiSdk(model).stream(hello, { signal }));
  expect(parts.map(({ type }) => type)).toEqual([
    'call-start',
    'call-arguments',
    'thinking-end',
    'call-end',
    'usage',
    'finish',
  ]);
  expect(parts.at(-1)).toEqual({ type: 'finish', stopReason: 'tool-use' });
  const { signature } = parts.find((part) => part.type === 'thinking-end')!;
  const messages: ModelMessage[] = [
    {
      role: 'assistant',
      content: [
        { type: 'thinking', text: '', signature: signature! },
        { type: 'call', callId: 'a', tool: 'bash', input: {} },
      ],
    },
  ];
  await collect(fromAiSdk(model).stream({ messages, tools: [] }, { signal }));
  expect(seen[1]).toEqual([
    {
      role: 'assistant',
      content: [{ type: 'tool-call', toolCallId: 'a', toolName: 'bash', input: {}, providerOptions: metadata }],
    },
  ]);
});

test('a model of specification v3 gets its files the v3 way', async () => {
  let prompt: unknown;
  const model = {
    ...aiSdkModel('chat', 'http://127.0.0.1:1'),
    specificationVersion: 'v3',
    provider: 'old.messages',
    modelId: 'm',
    doStream(options: { prompt: unknown }) {
      prompt = options.prompt;
      return Promise.reject(new Error('enough'));
    },
  } as unknown as AiSdkModel;
  const image = { type: 'image', mediaType: 'image/png', data: 'AAAA' } as const;
  const messages: ModelMessage[] = [
    { role: 'user', content: [image] },
    { role: 'tool', callId: 'a', tool: 'camera', content: [image], isError: false },
  ];
  const { error } = await collect(fromAiSdk(model).stream({ messages, tools: [] }, new AbortController()));
  expect(error).toBeInstanceOf(ModelError);
  expect(prompt).toEqual([
    { role: 'user', content: [{ type: 'file', mediaType: 'image/png', data: 'AAAA' }] },
    {
      role: 'tool',
      content: [
        {
          type: 'tool-result',
          toolCallId: 'a',
          toolName: 'camera',
          output: { type: 'content', value: [{ type: 'image-data', mediaType: 'image/png', data: 'AAAA' }] },
        },
      ],
    },
  ]);
});

test.each([
  ['a text', 'openai/gpt-5'],
  ['an older specification', { specificationVersion: 'v2', doStream: () => {} }],
  ['nothing', undefined],
])('%s is rejected with what to install', (_, model) => {
  expect(() => fromAiSdk(model as never)).toThrow(/v3 or v4.*npm install @ai-sdk/s);
});

test('a model is named after its provider and model id', () => {
  expect(fromAiSdk(aiSdkModel('anthropic', 'http://127.0.0.1:1')).name).toBe('anthropic.messages/claude-sonnet-4-5');
});

test.each([
  ['chat', { provider: 'openai', api: 'chat', model: 'gpt-4o' }],
  ['responses', { provider: 'openai', api: 'responses', model: 'gpt-5' }],
  ['anthropic', { provider: 'anthropic', api: 'messages', model: 'claude-sonnet-4-5' }],
] as const)('%s: messages contain their provider, API and model', (format, source) => {
  expect(fromAiSdk(aiSdkModel(format, 'http://127.0.0.1:1')).source).toEqual(source);
});

test('a provider that names no API is named alone', () => {
  const model = {
    specificationVersion: 'v4',
    provider: 'own',
    modelId: 'm',
    doStream: () => {},
  } as unknown as AiSdkModel;
  expect(fromAiSdk(model).source).toEqual({ provider: 'own', model: 'm' });
});
