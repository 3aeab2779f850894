// Agents as MCP tools, and their tasks as MCP tasks: extension `io.modelcontextprotocol/tasks` of the 2026-07-28 protocol.
import type { McpServer, Result, ServerContext } from '@modelcontextprotocol/server';
import type { CancelReasonInit } from '@whoa/core';
import { systemWorld } from '@whoa/core/embed';
import { followTask, isFinalStatus, type NewTask, type TaskRecord, type TaskRef, type TaskStore } from '@whoa/tasks';
import { z } from 'zod';
import { askStore } from '../api/http/ask-store.ts';

/** What is served: agents, and the store of their tasks. */
export interface McpAgents {
  readonly store: TaskStore;
  /** The agents, each with what it is for. Each becomes one tool with its name. */
  readonly agents: Readonly<Record<string, string>>;
  /** Creates a task. By default it is only stored, and a worker runs it. */
  readonly start?: (task: NewTask) => Promise<TaskRef>;
}

/** Who calls: the owner of the tasks, and a name for cancel reasons. */
export interface McpCaller {
  readonly tenant: string;
  readonly name: string;
}

type ServerLibrary = typeof import('@modelcontextprotocol/server');

const EXTENSION = 'io.modelcontextprotocol/tasks';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const INVALID_PARAMS = -32_602;
const INTERNAL = -32_603;
const POLL_MS = 1_000;
const MAX_STATUS_CHARS = 1_000;
const MAX_PROMPT_CHARS = 1_000_000;

const INPUT = z.object({ prompt: z.string().min(1).max(MAX_PROMPT_CHARS) });
const OF_TASK = z.looseObject({ taskId: z.string().min(1) });
const INPUT_JSON = {
  type: 'object' as const,
  properties: { prompt: { type: 'string', description: 'What the agent should do, with everything it needs to know' } },
  required: ['prompt'],
};

/** Creates the server of one connection, or of one HTTP request. */
export function createAgentServer(library: ServerLibrary, served: McpAgents, caller: McpCaller): McpServer {
  const { ProtocolError } = library;
  const { store, agents } = served;
  const capabilities = { tools: {}, extensions: { [EXTENSION]: {} } };
  const mcp = new library.McpServer({ name: 'whoa', title: 'Whoa', version: '0.1.0' }, { capabilities });
  const { server } = mcp;
  server.setRequestHandler('tools/list', () => ({
    tools: Object.entries(agents).map(([name, description]) => ({ name, description, inputSchema: INPUT_JSON })),
  }));
  server.setRequestHandler('tools/call', async ({ params: { name, arguments: given } }, context) => {
    if (!Object.hasOwn(agents, name)) throw new ProtocolError(INVALID_PARAMS, `There is no tool '${name}'`);
    const input = INPUT.safeParse(given);
    if (!input.success) throw new ProtocolError(INVALID_PARAMS, 'prompt: expected a text that is not empty');
    const task = { tenant: caller.tenant, agent: name, input: input.data.prompt };
    return (await callAgent(task, { served, caller, context })) as { content: [] };
  });
  const ofTask = (method: string, answer: (task: TaskRef) => Promise<Result | undefined>): void => {
    server.setRequestHandler(method, { params: OF_TASK }, async ({ taskId }) => {
      const found = await answer({ tenant: caller.tenant, id: taskId });
      if (found === undefined) throw new ProtocolError(INVALID_PARAMS, 'There is no such task');
      return found;
    });
  };
  ofTask('tasks/get', async (ref) => {
    const task = await store.get(ref);
    return task && describeTask(task);
  });
  ofTask('tasks/cancel', async (ref) => {
    const { answer } = await cancel(served, ref, cancelledBy(caller));
    return answer === 'unknown' ? undefined : {};
  });
  ofTask('tasks/update', async (ref) => {
    if ((await store.get(ref)) === undefined) return undefined;
    throw new ProtocolError(INVALID_PARAMS, 'This task asks nothing here; approve its calls in the console');
  });
  return mcp;
}

interface AgentCall {
  readonly served: McpAgents;
  readonly caller: McpCaller;
  readonly context: ServerContext;
}

/** Starts a task. A host that knows MCP tasks gets it at once; for others the call waits for its end, and owns it. */
async function callAgent(task: NewTask, { served, caller, context }: AgentCall): Promise<object> {
  const { signal } = context.mcpReq;
  signal.throwIfAborted();
  const ref = await (served.start ?? ((wanted) => create(served, wanted)))(task);
  const stop = (): Promise<unknown> => cancel(served, ref, cancelledBy(caller, 'the request was cancelled'));
  if (!signal.aborted && knowsTasks(context)) {
    const record = await served.store.get(ref);
    // Don't leave a task whose id its host will never learn.
    if (!signal.aborted && record !== undefined) return { ...describeTask(record), resultType: 'task' };
  }
  if (signal.aborted) return stop().then(() => ({ content: [] }));
  const ended = await waitForEnd(ref, { served, caller, context });
  if (ended !== undefined) return resultOf(ended);
  await stop();
  return { content: [] };
}

async function waitForEnd(ref: TaskRef, { served, context }: AgentCall): Promise<TaskRecord | undefined> {
  const { signal, notify, _meta } = context.mcpReq;
  let progress = 0;
  for await (const seen of followTask(served.store, ref, { signal })) {
    if (seen.type === 'end') return seen.task;
    if (seen.event.type !== 'call-start' || _meta?.progressToken === undefined) continue;
    const params = { progressToken: _meta.progressToken, progress: ++progress };
    // A host that has gone is known by the signal.
    await notify({ method: 'notifications/progress', params }).catch(() => undefined);
  }
  return undefined;
}

async function create({ store }: McpAgents, task: NewTask): Promise<TaskRef> {
  const receipt = await askStore(systemWorld, (nonce) => store.create(task, { nonce }));
  if (receipt.answer === 'created' || receipt.answer === 'duplicate')
    return { tenant: task.tenant, id: receipt.task.id };
  throw Object.assign(new Error('Too many tasks are waiting; try again later'), { code: INTERNAL });
}

function cancel({ store }: McpAgents, ref: TaskRef, reason: CancelReasonInit): ReturnType<TaskStore['cancel']> {
  // The protocol has no levels, and its hosts expect a cancel to stop what runs.
  return askStore(systemWorld, () => store.cancel(ref, reason, { mode: 'now' }));
}

function cancelledBy({ name }: McpCaller, message?: string): CancelReasonInit {
  return { kind: 'user', by: name, via: 'mcp', ...(message !== undefined && { message }) };
}

function knowsTasks({ mcpReq: { envelope } }: ServerContext): boolean {
  const capabilities = (envelope as Readonly<Record<string, unknown>> | undefined)?.[CAPABILITIES];
  const { extensions } = (capabilities ?? {}) as { extensions?: object };
  return extensions !== undefined && Object.hasOwn(extensions, EXTENSION);
}

/** Describes a task as `tasks/get` does. */
function describeTask(task: TaskRecord): Result {
  const { id, createdAt, startedAt = createdAt, endedAt = startedAt } = task;
  const statusMessage = messageFor(task);
  return {
    taskId: id,
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(endedAt).toISOString(),
    ttlMs: null,
    pollIntervalMs: POLL_MS,
    ...(statusMessage !== undefined && { statusMessage: statusMessage.slice(0, MAX_STATUS_CHARS) }),
    ...statusOf(task),
  };
}

/** `failed` means an error of the protocol, so an agent that failed has completed, with an error as its result. */
function statusOf(task: TaskRecord): object {
  if (!isFinalStatus(task.status)) return { status: 'working' };
  return task.status === 'cancelled' ? { status: 'cancelled' } : { status: 'completed', result: resultOf(task) };
}

function messageFor({ status, activity, outcome, id }: TaskRecord): string | undefined {
  if (status === 'init') return 'waits for a worker';
  if (status === 'cancelling') return 'is being stopped';
  if (status === 'cancelled') return `cancelled (${outcome?.reason?.kind ?? 'user'}). ${outcome?.answer ?? ''}`.trim();
  if (status !== 'running') return undefined;
  return activity !== undefined && activity.questions > 0 ? `waits for an approval: whoa approve ${id}` : 'runs';
}

function resultOf({ status, outcome }: TaskRecord): Result {
  const text = status === 'failed' ? (outcome?.error?.message ?? 'It failed') : (outcome?.answer ?? '');
  const words = status === 'cancelled' ? `Cancelled (${outcome?.reason?.kind ?? 'user'}).\n${text}`.trim() : text;
  return { content: [{ type: 'text', text: words }], ...(status !== 'success' && { isError: true }) };
}
