// A server whose own loop, or agent, asks a person before it pays. Told to end, it hands on what it has.
/* oxlint-disable typescript/no-deprecated -- what applications have */
import { appendFileSync, readFileSync } from 'node:fs';
import { createOpenAI } from '@ai-sdk/openai';
import { fromAiSdk } from '@whoa/ai-sdk';
import { createAgent, defineTool, type Tool } from '@whoa/core';
import { createChatHandler, listen } from '@whoa/server';
import { createTaskApprovals } from '@whoa/tasks';
import { streamText, tool } from 'ai';
import { z } from 'zod';
import { openStore } from '../../tasks/open-store.ts';
import { fileFor } from '../files.ts';

const [location = '', url = '', script = '', paid = '', kind = ''] = process.argv.slice(2);
const store = openStore(location);
const inputSchema = z.object({ eur: z.number() });
const execute = ({ eur }: z.infer<typeof inputSchema>) => {
  appendFileSync(paid, `${process.pid} ${eur}\n`);
  return 'paid';
};
const model = createOpenAI({ baseURL: url, apiKey: 'none' }).chat('gpt-4o');
const shared = { store, authenticate: () => 'ada' };

function createReplyHandler() {
  const pay = tool({ inputSchema, needsApproval: true, execute });
  return createChatHandler({ ...shared, tools: { pay }, reply: (turn) => streamText({ model, ...turn }) });
}

function createAgentHandler() {
  const approvals = createTaskApprovals();
  const pay = defineTool({ name: 'pay', description: 'Pays', inputSchema, effects: 'write', execute });
  const about = { description: 'Asks the page', inputSchema: z.object({}), effects: 'read' } as const;
  const locate = defineTool({ ...about, name: 'locate', answeredBy: 'client' });
  const tools = [pay, locate] as Tool[];
  const agent = createAgent({ name: 'payer', model: fromAiSdk(model), tools, approve: approvals.approve });
  return createChatHandler({ ...shared, agent, approvals });
}

const handler = kind === 'agent' ? createAgentHandler() : createReplyHandler();
const page = readFileSync(script, 'utf8');
const listening = await listen({
  fetch: (request) => {
    const { pathname } = new URL(request.url);
    return pathname.startsWith('/api/') ? handler.fetch(request) : Promise.resolve(fileFor(pathname, page));
  },
});
process.once('SIGTERM', () => {
  listening[Symbol.asyncDispose]()
    .then(() => handler[Symbol.asyncDispose]())
    .then(() => store[Symbol.asyncDispose]())
    .then(
      () => process.disconnect(),
      (error: unknown) => process.emitWarning(error as Error),
    );
});
process.send?.({ type: 'listening', url: listening.url });
