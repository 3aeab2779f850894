// A chat for tests: the real AI SDK, a loopback provider, an agent and a custom loop of an application.
import { createOpenAI } from '@ai-sdk/openai';
import { fromAiSdk } from '@whoa/ai-sdk';
import { type LoopbackProvider, type ScriptedResponse, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { type Agent, createAgent, defineTool } from '@whoa/core';
import { createMemoryStore, type TaskStore } from '@whoa/tasks';
import { readUIMessageStream, streamText, tool, type UIMessage, type UIMessageChunk } from 'ai';
import { z } from 'zod';
import type { ChatServiceOptions } from '../../packages/server/src/chat/chat-service.ts';

interface Hands {
  readonly started: PromiseWithResolvers<void>;
  readonly release: PromiseWithResolvers<string>;
}

export const say = (id: string, text: string): UIMessage => ({ id, role: 'user', parts: [{ type: 'text', text }] });
const input = z.object({ q: z.string().optional() });

/** What answers, of each kind. Both have a tool, `work`, that does nothing before it is released. */
const kinds = {
  agent: ({ url, hands }: { url: string; hands: Hands }) => ({
    agent: createAgent({
      name: 'assistant',
      model: fromAiSdk(createOpenAI({ baseURL: url, apiKey: 'none' }).chat('gpt-4o')),
      tools: [
        defineTool({
          name: 'work',
          description: 'Works.',
          inputSchema: input,
          effects: 'read',
          execute: async (_, { signal }) => {
            hands.started.resolve();
            return Promise.race([hands.release.promise, rejection(signal)]);
          },
        }),
      ],
    }) as Agent,
  }),
  'own loop': ({ url, hands }: { url: string; hands: Hands }) => ({
    tools: {
      work: tool({
        description: 'Works.',
        inputSchema: input,
        execute: async (_, { abortSignal }) => {
          hands.started.resolve();
          return Promise.race([hands.release.promise, rejection(abortSignal!)]);
        },
      }),
    },
    reply: ((turn) =>
      streamText({
        model: createOpenAI({ baseURL: url, apiKey: 'none' }).chat('gpt-4o'),
        ...turn,
      })) as NonNullable<ChatServiceOptions<Record<never, never>>['reply']>,
  }),
};

export type Kind = keyof typeof kinds;
export const KINDS: readonly Kind[] = ['agent', 'own loop'];

function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
}

/** Reads a stream to its end. An `AbortError` at its end says that it was stopped. */
export async function read(stream: ReadableStream<UIMessageChunk>, onChunk?: (chunk: UIMessageChunk) => void) {
  const chunks: UIMessageChunk[] = [];
  let stopped: string | undefined;
  try {
    for await (const chunk of stream) {
      chunks.push(chunk);
      onChunk?.(chunk);
    }
  } catch (error) {
    if ((error as Error).name !== 'AbortError') throw error;
    stopped = (error as Error).message;
  }
  return { chunks, stopped, message: await readMessage(chunks) };
}

export async function readMessage(chunks: readonly UIMessageChunk[]): Promise<UIMessage | undefined> {
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  let message: UIMessage | undefined;
  for await (const state of readUIMessageStream({ stream })) message = state;
  return message;
}

export const toReplyText = (message: UIMessage | undefined): string =>
  (message?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');

type Serve<Handler> = (options: ChatServiceOptions<Record<never, never>>) => Handler;

/** A handler of one kind over a store in memory; users say who they are by a header. */
export async function openChat<Handler extends AsyncDisposable>(
  kind: Kind,
  script: readonly ScriptedResponse[] | ((request: { index: number }) => ScriptedResponse),
  serve: Serve<Handler>,
) {
  const provider: LoopbackProvider = await startLoopbackProvider({
    script: typeof script === 'function' ? script : [...script],
  });
  const store: TaskStore = createMemoryStore();
  const hands: Hands = { started: Promise.withResolvers(), release: Promise.withResolvers() };
  const handler = serve({
    ...kinds[kind]({ url: provider.url, hands }),
    store,
    authenticate: (request) => request.headers.get('x-user'),
  });
  return {
    provider,
    store,
    hands,
    handler,
    async [Symbol.asyncDispose]() {
      await handler[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await provider.close();
    },
  };
}

export const CALL: ScriptedResponse = { parts: [{ text: 'Let me see. ' }, { call: 'work', id: 'c1' }] };
