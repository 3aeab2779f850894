// The chat that the servers in this folder mount. It needs no key: a model on this machine writes a story, slowly.
import { setTimeout as sleep } from 'node:timers/promises';
import { createOpenAI } from '@ai-sdk/openai';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createChatHandler } from '@whoa/server';
import { streamText, tool } from 'ai';
import { z } from 'zod';

const story = 'Once upon a time there was an agent that stopped when it was told to. '.repeat(8).match(/\S+ /g)!;
const provider = await startLoopbackProvider({
  script: ({ body }) =>
    JSON.stringify(body).includes('tool_call_id')
      ? { parts: [{ text: story }], pace: { intervalMs: 60 } }
      : { parts: [{ text: 'Let me look that up. ' }, { call: 'look_up', input: { title: 'The agent' } }] },
});
const model = createOpenAI({ baseURL: provider.url, apiKey: 'none' }).chat('a-model');

const look_up = tool({
  description: 'Looks up a story.',
  inputSchema: z.object({ title: z.string() }),
  execute: async ({ title }, { abortSignal }) => {
    await sleep(1_000, undefined, { signal: abortSignal });
    return `'${title}' is on the shelf.`;
  },
});

export const chat = createChatHandler({
  store: process.env['STORE_URL'] ?? 'memory',
  authenticate: () => 'you', // your session → user
  tools: { look_up },
  reply: (turn) => streamText({ model, ...turn }),
});
