// Our MCP server and the official client for MCP tasks, @modelcontextprotocol/ext-tasks.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
  createApplicationInputHandler,
  createTaskSessionFromClient,
  type JsonRpcResponse,
  type RawClientDispatch,
  resultFromTaskOutcome,
} from '@modelcontextprotocol/ext-tasks/client';
import { createAgent, defineTool } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import { createAccess, createMcpHandler, listen } from '@whoa/server';
import { createMemoryStore, createRunner, createTaskApprovals, type TaskContext } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { TASKS } from './mcp-host.ts';

const PROTOCOL = '2026-07-28';
const CLIENT = { name: 'ext-tasks', version: '1' };
const CAPABILITIES = { extensions: { [TASKS]: {} }, elicitation: { form: {} } };

async function serve() {
  const store = createMemoryStore();
  const approvals = createTaskApprovals();
  const ran: string[] = [];
  const run = defineTool({
    name: 'run',
    description: 'Runs.',
    inputSchema: z.object({ command: z.string() }),
    effects: 'execute',
    execute: ({ command }) => String(ran.push(command)),
  });
  const slow = async ({ signal }: TaskContext): Promise<string> => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    return 'stopped half way';
  };
  const asks = createAgent({
    name: 'asks',
    model: createScriptedModel([[{ call: 'run', input: { command: 'ls' } }], ['Done.']]),
    tools: [run],
    approve: approvals.approve,
  });
  const agents = {
    asks,
    slow,
    echo: ({ task }: TaskContext) => Promise.resolve(`You said ${task.inputs[0] as string}`),
    fails: () => Promise.reject(new Error('the disk is full')),
  };
  const runner = createRunner({ store, agents, approvals });
  await runner.serve();
  const access = createAccess({ authenticate: () => 'ann' });
  const described = { asks: 'Asks', slow: 'Works until it is stopped', echo: 'Repeats', fails: 'Fails' };
  const listening = await listen(await createMcpHandler({ store, agents: described, access }));
  return {
    ran,
    url: listening.url,
    async [Symbol.asyncDispose]() {
      await listening[Symbol.asyncDispose]();
      await runner[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

/** The library of the client refuses results that are tasks, so the extension sends its requests itself. */
function createDispatch(url: string): RawClientDispatch {
  let id = 0;
  return async (request, { signal, context } = {}) => {
    const { method, params } = request as { method: string; params: Record<string, string> };
    const name = params['name'] ?? params['taskId'];
    const headers = new Headers({
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': PROTOCOL,
      'mcp-method': method,
      ...(name !== undefined && { 'mcp-name': name }),
    });
    // The extension names tasks itself, in its own spelling.
    for (const [header, value] of Object.entries(context?.headers ?? {})) headers.set(header, value);
    const body = JSON.stringify({ jsonrpc: '2.0', id: ++id, ...(request as object) });
    const response = await fetch(url, { method: 'POST', headers, body, ...(signal && { signal }) });
    const message = (await response.json()) as { result?: never; error?: never };
    return (message.error === undefined
      ? { kind: 'result', result: message.result }
      : { kind: 'error', error: message.error }) as unknown as JsonRpcResponse;
  };
}

async function openSession(url: string, onQuestion: (message: string) => 'accept' | 'decline' = () => 'decline') {
  const versionNegotiation = { mode: 'auto' as const };
  const client = new Client(CLIENT, { versionNegotiation, capabilities: CAPABILITIES });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const onInputRequest = createApplicationInputHandler({
    elicitation: ({ params }) => ({ action: onQuestion(params['message'] as string) }),
    sampling: () => Promise.reject(new Error('not asked for')),
    roots: () => Promise.reject(new Error('not asked for')),
  });
  const session = createTaskSessionFromClient(client, {
    endpointId: 'whoa',
    rawDispatch: createDispatch(url),
    v2RequestFraming: { protocolVersion: PROTOCOL, clientInfo: CLIENT, clientCapabilities: CAPABILITIES },
    onInputRequest,
  });
  return {
    session,
    async [Symbol.asyncDispose]() {
      await session.close();
      await client.close();
    },
  };
}

test('a call is a task that is followed to its result, also one that is an error', async () => {
  await using served = await serve();
  await using opened = await openSession(served.url);
  const call = async (name: string) => {
    const execution = await opened.session.callTool(name, { prompt: 'hi' });
    expect(execution.kind).toBe('task');
    return resultFromTaskOutcome((await execution.settle()).outcome);
  };
  expect(await call('echo')).toMatchObject({ content: [{ type: 'text', text: 'You said hi' }] });
  expect(await call('fails')).toMatchObject({ isError: true, content: [{ text: 'the disk is full' }] });
});

test('a question of a task is asked once, and its answer decides', async () => {
  for (const answer of ['accept', 'decline'] as const) {
    await using served = await serve();
    const messages: string[] = [];
    await using opened = await openSession(served.url, (message) => {
      messages.push(message);
      return answer;
    });
    const execution = await opened.session.callTool('asks', { prompt: 'hi' });
    const { outcome } = await execution.settle();
    expect(outcome).toMatchObject({ status: 'completed', result: { content: [{ text: 'Done.' }] } });
    expect(messages).toEqual(['run wants to execute:\n  command: ls\nAllow it?']);
    expect(served.ran).toEqual(answer === 'accept' ? ['ls'] : []);
  }
});

test('a cancel is confirmed, a second changes nothing, and another session can look at the task', async () => {
  await using served = await serve();
  await using opened = await openSession(served.url);
  const execution = await opened.session.callTool('slow', { prompt: 'hi' });
  const taskId = execution.handle!.taskId;
  await using other = await openSession(served.url);
  expect(await other.session.task(taskId).snapshot()).toMatchObject({ status: 'working', retentionMs: null });
  const settled = execution.settle();
  await other.session.cancelTask(taskId);
  await other.session.cancelTask(taskId);
  expect((await settled).outcome).toMatchObject({ status: 'cancelled' });
  expect(await other.session.task(taskId).snapshot()).toMatchObject({ status: 'cancelled' });
  const unknown = other.session.task('nonsense' as typeof taskId);
  await expect(unknown.snapshot()).rejects.toMatchObject({ code: -32_602 });
  await expect(unknown.cancel()).rejects.toMatchObject({ code: -32_602 });
});
