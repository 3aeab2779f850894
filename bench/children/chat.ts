// One server process: our chat handler, and the plain route that the SDK's documentation shows. argv: a store's
// configuration, the model's address, the file of the page.
import { readFileSync } from 'node:fs';
import { createOpenAI } from '@ai-sdk/openai';
import { createChatHandler, listen } from '@whoa/server';
import type { TaskStoreConfig } from '@whoa/tasks';
import {
  convertToModelMessages,
  createUIMessageStreamResponse,
  streamText,
  toUIMessageStream,
  type UIMessage,
} from 'ai';
import { fileFor } from '../../test/web/files.ts';

const [config = '{}', baseURL = '', script = ''] = process.argv.slice(2);
const model = createOpenAI({ baseURL, apiKey: 'none' }).chat('gpt-4o');
const chat = createChatHandler({
  store: JSON.parse(config) as TaskStoreConfig,
  authenticate: () => 'bench',
  reply: (turn) => streamText({ model, ...turn }),
});

async function answerPlainly(request: Request): Promise<Response> {
  const { messages } = (await request.json()) as { messages: UIMessage[] };
  const history = await convertToModelMessages(messages);
  const { stream } = streamText({ model, messages: history, abortSignal: request.signal });
  return createUIMessageStreamResponse({ stream: toUIMessageStream({ stream }) });
}

const page = readFileSync(script, 'utf8');
const { port } = await listen({
  fetch: async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === '/plain') return answerPlainly(request);
    return pathname.startsWith('/api/') ? chat.fetch(request) : fileFor(pathname, page);
  },
});
// The parent was killed: exit.
process.on('disconnect', () => process.exit());
process.send?.({ type: 'listening', port });
