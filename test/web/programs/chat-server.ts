// An instance of an application with a chat: its agent runs in workers elsewhere, or its own loop runs here.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { createOpenAI } from '@ai-sdk/openai';
import { createChatHandler, listen } from '@whoa/server';
import { streamText, tool } from 'ai';
import { z } from 'zod';
import { openStore } from '../../tasks/open-store.ts';
import { fileFor } from '../files.ts';

const [place = '', url = '', script = '', kind = '', leaseMs = ''] = process.argv.slice(2);
const store = openStore(place);
const shared = { store, authenticate: () => 'ada', leaseMs: Number(leaseMs) };
const bash = tool({
  description: 'Runs a command.',
  inputSchema: z.object({ command: z.string() }),
  execute: async ({ command }, { abortSignal }) =>
    (await promisify(execFile)('bash', ['-c', command], { signal: abortSignal!, killSignal: 'SIGKILL' })).stdout,
});
const handler =
  kind === 'agent'
    ? createChatHandler({ ...shared, agent: 'cast' })
    : createChatHandler({
        ...shared,
        tools: { bash },
        reply: (turn) => streamText({ model: createOpenAI({ baseURL: url, apiKey: 'none' }).chat('gpt-4o'), ...turn }),
      });
const page = readFileSync(script, 'utf8');
const listening = await listen({
  fetch: (request) => {
    const { pathname } = new URL(request.url);
    return pathname.startsWith('/api/') ? handler.fetch(request) : fileFor(pathname, page);
  },
  upgrade: (request) => handler.upgrade(request),
});
process.once('message', () => {
  listening[Symbol.asyncDispose]()
    .then(() => handler[Symbol.asyncDispose]())
    .then(() => store[Symbol.asyncDispose]())
    .then(
      () => process.disconnect(),
      (error: unknown) => process.emitWarning(error as Error),
    );
});
process.send?.({ type: 'listening', url: listening.url });
