// One instance of an application with a chat, which runs in this process. It is copied to where the packages are installed.
/* oxlint-disable typescript/no-deprecated -- what applications have */
import { readFileSync } from 'node:fs';
import { createOpenAI } from '@ai-sdk/openai';
import { fromAiSdk } from '@whoa/ai-sdk';
import { createAgent, defineTool } from '@whoa/core';
import { createChatHandler, listen } from '@whoa/server';
import { streamText, tool } from 'ai';
import { z } from 'zod';
import { fileFor } from '../files.ts';

const [store = '', model = '', control = '', script = '', kind = '', leaseMs = '', database = ''] =
  process.argv.slice(2);
const MUST_FINISH_MS = 60_000;

/** Reports to the scenario that a tool has started, and waits until it is released. */
const hold = async (name: string, site: string, signal?: AbortSignal): Promise<string> =>
  (await fetch(`${control}/${name}/${site}`, signal ? { signal } : {})).text();

const inputSchema = z.object({ site: z.string() });
const tools = {
  look: tool({ inputSchema, execute: ({ site }, { abortSignal }) => hold('look', site, abortSignal) }),
  deaf: tool({ inputSchema, execute: ({ site }) => hold('deaf', site) }),
  charge: tool({ inputSchema, execute: ({ site }) => hold('charge', site) }),
  pay: tool({ inputSchema, needsApproval: true, execute: ({ site }) => hold('pay', site) }),
  locate: tool({ inputSchema, outputSchema: z.string() }),
};
const headers = { 'x-process': `${process.pid}` };
const provider = createOpenAI({ baseURL: model, apiKey: 'none', headers }).chat('gpt-4o');
const define = (name: 'look' | 'deaf') =>
  defineTool({
    name,
    description: name,
    inputSchema,
    execute: ({ site }, { signal }) => hold(name, site, name === 'look' ? signal : undefined),
  });
const charge = defineTool({
  name: 'charge',
  description: 'charge',
  inputSchema,
  whenCancelled: 'finish',
  timeoutMs: MUST_FINISH_MS,
  execute: ({ site }) => hold('charge', site),
});
const handler = createChatHandler({
  store,
  leaseMs: Number(leaseMs),
  authenticate: (request) => /\buser=(\w+)/.exec(request.headers.get('cookie') ?? '')?.[1] ?? 'ada',
  ...(database !== '' && { history: (await import('../../server/app-database.ts')).openDatabase(database).history }),
  ...(kind === 'agent'
    ? {
        agent: createAgent({
          name: 'assistant',
          model: fromAiSdk(provider),
          tools: [define('look'), define('deaf'), charge],
        }),
      }
    : {
        tools,
        mustFinish: { charge: { timeoutMs: MUST_FINISH_MS } },
        reply: (turn) => streamText({ model: provider, ...turn }),
      }),
});
const page = readFileSync(script, 'utf8');
const listening = await listen({
  fetch: async (request) => {
    const { pathname } = new URL(request.url);
    return pathname.startsWith('/api/') ? handler.fetch(request) : fileFor(pathname, page);
  },
});
process.once('SIGTERM', () => {
  listening[Symbol.asyncDispose]()
    .then(() => handler[Symbol.asyncDispose]())
    .then(
      () => process.disconnect(),
      (error: unknown) => process.emitWarning(error as Error),
    );
});
process.send?.({ type: 'listening', port: listening.port });
