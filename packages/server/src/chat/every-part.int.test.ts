// Every kind of part of `ai` 7 passes through a chat as through a plain route: the same bytes, but for ids.
/* oxlint-disable typescript/no-deprecated -- what applications have */
import { createMemoryStore } from '@whoa/tasks';
import {
  createUIMessageStream,
  createUIMessageStreamResponse,
  dynamicTool,
  isStepCount,
  readUIMessageStream,
  streamText,
  tool,
  type UIMessage,
  type UIMessageChunk,
} from 'ai';
import { convertArrayToReadableStream, MockLanguageModelV4 } from 'ai/test';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { createChatHandler } from './chat-handler.ts';
import { formMessage, toChunks } from './ui/message-chunks.ts';

type Parts =
  Awaited<ReturnType<MockLanguageModelV4['doStream']>>['stream'] extends ReadableStream<infer Part> ? Part[] : never;

const usage = { inputTokens: { total: 3 }, outputTokens: { total: 5 } };
const about = { vendor: { kept: true } };
const calls = (
  [
    ['look', { q: 'x' }],
    ['grow', {}],
    ['fail', {}],
    ['look', { q: 7 }],
    ['any', { deep: [1] }],
    ['ask', {}],
    ['locate', {}],
  ] as const
).map(([toolName, input], index) => ({
  type: 'tool-call',
  toolCallId: `c${index}`,
  toolName,
  input: JSON.stringify(input),
  providerMetadata: about,
}));
const script = [
  [
    { type: 'stream-start', warnings: [] },
    { type: 'response-metadata', id: 'r1', modelId: 'm', timestamp: new Date(0) },
    { type: 'reasoning-start', id: 'r', providerMetadata: about },
    { type: 'reasoning-delta', id: 'r', delta: 'Hm' },
    { type: 'reasoning-delta', id: 'r', delta: '.', providerMetadata: { vendor: { signature: 's' } } },
    { type: 'reasoning-end', id: 'r' },
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'Grüße 👩‍👩‍👧 ' },
    { type: 'text-delta', id: 't', delta: 'there', providerMetadata: about },
    { type: 'text-delta', id: 't', delta: '.' },
    { type: 'text-end', id: 't', providerMetadata: about },
    { type: 'source', sourceType: 'url', id: 's1', url: 'https://whoa.test', title: 'T', providerMetadata: about },
    { type: 'source', sourceType: 'document', id: 's2', mediaType: 'text/plain', title: 'D', filename: 'd.txt' },
    { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AAAA' } },
    { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'data', data: 'BBBB' } },
    { type: 'custom', kind: 'vendor.thing', providerMetadata: about },
    { type: 'tool-input-start', id: 'c0', toolName: 'look' },
    { type: 'tool-input-delta', id: 'c0', delta: '{"q":' },
    { type: 'tool-input-delta', id: 'c0', delta: '"x"}' },
    { type: 'tool-input-end', id: 'c0' },
    { type: 'tool-call', toolCallId: 'v1', toolName: 'search', input: '{}', providerExecuted: true, dynamic: true },
    { type: 'tool-result', toolCallId: 'v1', toolName: 'search', result: { hits: 1 }, dynamic: true },
    ...calls.slice(0, 5),
    { type: 'finish', usage, finishReason: { unified: 'tool-calls', raw: 'tool_calls' } },
  ],
  [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'May I?' },
    { type: 'text-end', id: 't' },
    ...calls.slice(5),
    { type: 'finish', usage, finishReason: { unified: 'tool-calls', raw: 'tool_calls' } },
  ],
] as unknown as Parts[];

const tools = {
  look: tool({ inputSchema: z.object({ q: z.string() }), title: 'Looks', execute: () => ({ seen: ['a', null] }) }),
  grow: tool({
    inputSchema: z.object({}),
    async *execute() {
      yield await Promise.resolve({ done: 1 });
      yield { done: 2 };
    },
  }),
  fail: tool({
    inputSchema: z.object({}),
    execute: (): string => {
      throw new Error('broken');
    },
  }),
  any: dynamicTool({ inputSchema: z.unknown(), execute: () => Promise.resolve('any') }),
  ask: tool({ inputSchema: z.object({}), needsApproval: true, execute: () => 'asked' }),
  locate: tool({ inputSchema: z.object({}), outputSchema: z.string() }),
};

/** The route of an application: its loop, with everything that it adds to the stream. */
function reply(turn: object): ReadableStream<UIMessageChunk> {
  let step = 0;
  const model = new MockLanguageModelV4({
    doStream: () => Promise.resolve({ stream: convertArrayToReadableStream(script[step++]!) }),
  });
  return createUIMessageStream({
    execute: ({ writer }) => {
      writer.write({ type: 'start', messageMetadata: { model: 'm' } });
      writer.write({ type: 'data-note', id: 'n1', data: { at: 0 } });
      writer.write({ type: 'data-note', id: 'n1', data: { at: 1 } });
      writer.write({ type: 'data-passing', data: 'gone', transient: true });
      const result = streamText({ model, ...turn } as unknown as Parameters<typeof streamText>[0]);
      writer.merge(
        result.toUIMessageStream({
          sendStart: false,
          sendSources: true,
          onError: () => 'Broken.',
          messageMetadata: ({ part }) => {
            if (part.type === 'finish-step') return { steps: part.response.modelId };
            return part.type === 'finish' ? { tokens: part.totalUsage.outputTokens } : undefined;
          },
        }),
      );
    },
  });
}

/** Everything that differs from run to run, or that we merge on purpose: ids that are made up, and adjacent words. */
function normalise(body: string): UIMessageChunk[] {
  const ids = new Map<string, string>();
  const named = (id: string): string => {
    if (!ids.has(id)) ids.set(id, `id${ids.size}`);
    return ids.get(id)!;
  };
  const chunks: UIMessageChunk[] = [];
  for (const line of body.split('\n').filter((one) => one.startsWith('data: {'))) {
    const chunk = JSON.parse(line.slice(6)) as UIMessageChunk & { approvalId?: string; delta?: string };
    if (chunk.type === 'start') delete chunk.messageId;
    if (chunk.approvalId !== undefined) chunk.approvalId = named(chunk.approvalId);
    if (/^(text|reasoning)-/.test(chunk.type) && 'id' in chunk) chunk.id = named(chunk.id!);
    const last = chunks.at(-1) as { delta?: string } | undefined;
    const isPlain = last && [last, chunk].every((one) => Object.keys(one).length === 3 && one.delta !== undefined);
    if (isPlain && JSON.stringify({ ...last, delta: '' }) === JSON.stringify({ ...chunk, delta: '' }))
      last.delta! += chunk.delta!;
    else chunks.push(chunk);
  }
  return chunks;
}

async function formed(chunks: readonly UIMessageChunk[]): Promise<UIMessage> {
  let message: UIMessage | undefined;
  for await (const state of readUIMessageStream({
    stream: ReadableStream.from(chunks) as ReadableStream<UIMessageChunk>,
  }))
    message = state;
  return message!;
}

test('a recorded conversation with every kind of part passes unchanged', async () => {
  const messages = [{ role: 'user' as const, content: 'Go' }];
  const stream = reply({ tools, messages, stopWhen: isStepCount(20) });
  const plain = normalise(await createUIMessageStreamResponse({ stream }).text());
  await using store = createMemoryStore();
  await using handler = createChatHandler({ store, authenticate: () => 'ada', tools, reply: (turn) => reply(turn) });
  const asked = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Go' }] };
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ id: 'c', messages: [asked] });
  const ours = await handler.fetch(new Request('http://app.test/api/chat', { method: 'POST', headers, body }));
  const passed = normalise(await ours.text());
  const types = new Set(plain.map(({ type }) => type));
  // The recording has them all; what only a stop, a steering loop or a failure streams is tested elsewhere.
  for (const type of [
    'start',
    'message-metadata',
    'text-delta',
    'reasoning-delta',
    'source-url',
    'source-document',
    'file',
    'reasoning-file',
    'custom',
    'tool-input-delta',
    'tool-input-available',
    'tool-input-error',
    'tool-output-available',
    'tool-output-error',
    'tool-approval-request',
    'data-note',
    'data-passing',
    'finish',
  ])
    expect(types).toContain(type);
  expect(passed.map((chunk) => JSON.stringify(chunk))).toEqual(plain.map((chunk) => JSON.stringify(chunk)));
  // The stored messages equal those that a page builds from the stream.
  const kept = await handler.fetch(new Request('http://app.test/api/chat/c/messages', { headers }));
  const [, stored] = (await kept.json()) as UIMessage[];
  const same = (message: UIMessage | undefined) =>
    JSON.stringify({ ...message, id: '' }).replaceAll(
      /("type":"reasoning"|"approval":\{)(,?)"id":"[^"]+"/g,
      '$1$2"id":""',
    );
  expect(same(stored)).toBe(same(await formed(plain)));
  // A page that joins later is streamed the stored message again.
  expect(JSON.parse(JSON.stringify(await formMessage(stored!.id, toChunks(stored!))))).toEqual(stored);
});
