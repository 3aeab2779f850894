// An instance of an application with a chat: its agent runs in workers elsewhere, or its own loop runs here.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { createOpenAI } from '@ai-sdk/openai';
import {
  type ChatHandlerOptions,
  createAccess,
  createAgUiHandler,
  createChatHandler,
  createTaskApi,
  listen,
} from '@whoa/server';
import { streamText, tool } from 'ai';
import { z } from 'zod';
import { openStore } from '../../tasks/open-store.ts';
import { fileFor } from '../files.ts';

const [location = '', url = '', script = '', kind = '', leaseMs = ''] = process.argv.slice(2);
const store = openStore(location);
const shared = { store, authenticate: () => 'ada', leaseMs: Number(leaseMs) };
const bash = tool({
  description: 'Runs a command.',
  inputSchema: z.object({ command: z.string() }),
  execute: async ({ command }, { abortSignal }) =>
    (await promisify(execFile)('bash', ['-c', command], { signal: abortSignal!, killSignal: 'SIGKILL' })).stdout,
});
const own: Pick<ChatHandlerOptions<{ bash: typeof bash }>, 'tools' | 'reply'> = {
  tools: { bash },
  reply: (turn) => streamText({ model: createOpenAI({ baseURL: url, apiKey: 'none' }).chat('gpt-4o'), ...turn }),
};
const options = { ...shared, ...(kind === 'agent' ? { agent: 'tester' } : own) };
const handler = createChatHandler(options);
const agUi = createAgUiHandler(options);
const tasks = createTaskApi({ store, access: createAccess({ authenticate: () => 'ada' }), agents: ['tester'] });
const page = readFileSync(script, 'utf8');
const listening = await listen({
  fetch: (request) => {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith('/v1/')) return tasks.fetch(request);
    if (pathname.startsWith('/api/ag-ui')) return agUi.fetch(request);
    return pathname.startsWith('/api/') ? handler.fetch(request) : fileFor(pathname, page);
  },
});
process.once('message', () => {
  listening[Symbol.asyncDispose]()
    .then(() => agUi[Symbol.asyncDispose]())
    .then(() => handler[Symbol.asyncDispose]())
    .then(() => store[Symbol.asyncDispose]())
    .then(
      () => process.disconnect(),
      (error: unknown) => process.emitWarning(error as Error),
    );
});
process.send?.({ type: 'listening', url: listening.url });
