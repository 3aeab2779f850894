// Agents as MCP tools, and their tasks as MCP tasks: extension `io.modelcontextprotocol/tasks` of the 2026-07-28 protocol.
import type { McpServer, ServerContext } from '@modelcontextprotocol/server';
import { systemWorld } from '@whoa/core/embed';
import { followTask, type NewTask, type TaskRecord, type TaskRef, type TaskStore } from '@whoa/tasks';
import { z } from 'zod';
import { withStoreRetry } from '../http/with-store-retry.ts';
import { findAbilities, type McpAgents, type McpCaller, TASKS_EXTENSION } from './host.ts';
import { cancelFor, INTERNAL, INVALID_PARAMS, serveTaskRequests } from './task-requests.ts';
import { describeHandle, toMcpResult } from './task-state.ts';

type ServerLibrary = typeof import('@modelcontextprotocol/server');

const MAX_PROMPT_CHARS = 1_000_000;

const INPUT = z.object({ prompt: z.string().min(1).max(MAX_PROMPT_CHARS) });
const INPUT_JSON = {
  type: 'object' as const,
  properties: { prompt: { type: 'string', description: 'What the agent should do, with everything it needs to know' } },
  required: ['prompt'],
};

/** Creates the server of one connection, or of one HTTP request. */
export function createAgentServer(library: ServerLibrary, served: McpAgents, caller: McpCaller): McpServer {
  const { ProtocolError } = library;
  const { store, agents } = served;
  const capabilities = { tools: {}, extensions: { [TASKS_EXTENSION]: {} } };
  const mcp = new library.McpServer({ name: 'whoa', title: 'Whoa', version: '0.1.0' }, { capabilities });
  mcp.server.setRequestHandler('tools/list', () => ({
    tools: Object.entries(agents).map(([name, description]) => ({ name, description, inputSchema: INPUT_JSON })),
  }));
  mcp.server.setRequestHandler('tools/call', async ({ params: { name, arguments: given } }, context) => {
    if (!Object.hasOwn(agents, name)) throw new ProtocolError(INVALID_PARAMS, `There is no tool '${name}'`);
    const input = INPUT.safeParse(given);
    if (!input.success) throw new ProtocolError(INVALID_PARAMS, 'prompt: expected a text that is not empty');
    const { tenant, name: by } = caller.principal;
    const task = { tenant, agent: name, input: input.data.prompt, startedBy: by || undefined };
    return (await callAgent(task, { served, caller, context })) as { content: [] };
  });
  serveTaskRequests(mcp, { library, store, caller });
  return mcp;
}

interface AgentCall {
  readonly served: McpAgents;
  readonly caller: McpCaller;
  readonly context: ServerContext;
}

/** Starts a task. A host that knows MCP tasks gets it immediately; for others the call waits for its end, and owns it. */
async function callAgent(task: NewTask, { served, caller, context }: AgentCall): Promise<object> {
  const { signal } = context.mcpReq;
  const { store, start = (wanted) => create(store, wanted) } = served;
  signal.throwIfAborted();
  const ref = await start(task);
  const stop = () => cancelFor(caller, { store, ref, message: 'the request was cancelled' });
  if (!signal.aborted && findAbilities(context).hasTasks) {
    const record = await store.get(ref);
    // Don't leave a task whose id its host will never learn.
    if (!signal.aborted && record !== undefined) return { ...describeHandle(record), resultType: 'task' };
  }
  if (signal.aborted) return stop().then(() => ({ content: [] }));
  const ended = await waitForEnd(ref, { served, caller, context });
  if (ended !== undefined) return toMcpResult(ended);
  await stop();
  return { content: [] };
}

async function waitForEnd(ref: TaskRef, { served, context }: AgentCall): Promise<TaskRecord | undefined> {
  const { signal, notify, _meta } = context.mcpReq;
  let progress = 0;
  for await (const seen of followTask(served.store, ref, { signal })) {
    if (seen.type === 'end') return seen.task;
    if (seen.type !== 'entry' || seen.event.type !== 'call-start' || _meta?.progressToken === undefined) continue;
    const params = { progressToken: _meta.progressToken, progress: ++progress };
    // A host that has gone is known by the signal.
    await notify({ method: 'notifications/progress', params }).catch(() => undefined);
  }
  return undefined;
}

async function create(store: TaskStore, task: NewTask): Promise<TaskRef> {
  const receipt = await withStoreRetry(systemWorld, (nonce) => store.create(task, { nonce }));
  if (receipt.result === 'created' || receipt.result === 'duplicate')
    return { tenant: task.tenant, id: receipt.task.id };
  throw Object.assign(new Error('Too many tasks are waiting; try again later'), { code: INTERNAL });
}
