// A server for the official MCP conformance kit: our handler, with agents that behave like the tools of the kit.
import { setTimeout as wait } from 'node:timers/promises';
import { createAgent, defineTool } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import { createAccess, createMcpHandler, type ListeningServer, listen } from '@whoa/server';
import { createMemoryStore, createRunner, createTaskApprovals, type TaskContext, type TaskHandler } from '@whoa/tasks';
import { z } from 'zod';

const deleteFile = defineTool({
  name: 'delete',
  description: 'Deletes a file.',
  inputSchema: z.object({ filename: z.string() }),
  effects: 'write',
  execute: ({ filename }) => `${filename} is gone`,
});

/** The arguments of a call, which `toPrompts` made the prompt. */
const parseArguments = ({ task }: TaskContext) => JSON.parse(task.inputs[0] as string) as Record<string, unknown>;

/** Starts the server; dispose it to stop. */
export async function startKitServer(): Promise<ListeningServer> {
  const store = createMemoryStore();
  const approvals = createTaskApprovals();
  const agents: Record<string, TaskHandler> = {
    greet: (context) => Promise.resolve(`Hello, ${parseArguments(context)['name'] as string}!`),
    async slow_compute(context) {
      await wait(Number(parseArguments(context)['seconds']) * 1_000, undefined, { signal: context.signal });
      return 'computed';
    },
    failing_job: () => Promise.reject(new Error('the job failed')),
    confirm_delete: createAgent({
      name: 'confirm_delete',
      model: createScriptedModel([
        ({ messages }) =>
          messages.at(-1)?.role === 'user' ? [{ call: 'delete', input: { filename: 'a.txt' } }] : ['It is gone.'],
      ]),
      tools: [deleteFile],
      approve: approvals.approve,
    }),
    test_simple_text: () => Promise.resolve('This is a simple text response for testing.'),
    test_error_handling: () => Promise.reject(new Error('This tool intentionally returns an error for testing')),
  };
  const runner = createRunner({ store, agents, approvals });
  await runner.serve({ concurrency: 100 });
  const limits = { requestsPerSecond: 10_000, requestsBurst: 10_000 };
  const hosts = ['127.0.0.1', 'localhost'];
  const access = createAccess({ authenticate: () => 'kit', limits, hosts });
  const described = Object.fromEntries(Object.keys(agents).map((name) => [name, `For the kit: ${name}`]));
  const handler = await createMcpHandler({ store, agents: described, access });
  const listening = await listen({ fetch: async (request) => handler.fetch(await toPrompts(request)) });
  return {
    ...listening,
    async [Symbol.asyncDispose]() {
      await listening[Symbol.asyncDispose]();
      await runner[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

/** The kit's tools have their own arguments; ours have one, the prompt. Everything else stays as it was sent. */
async function toPrompts(request: Request): Promise<Request> {
  if (request.method !== 'POST') return request;
  const { url, method, headers, signal } = request;
  const body = await request.text();
  return new Request(url, { method, headers, signal, body: withPrompt(body) });
}

function withPrompt(body: string): string {
  try {
    const message = JSON.parse(body) as { method?: string; params?: { arguments?: object } };
    if (message.method !== 'tools/call') return body;
    const prompt = JSON.stringify(message.params?.arguments ?? {});
    return JSON.stringify({ ...message, params: { ...message.params, arguments: { prompt } } });
  } catch {
    return body;
  }
}
