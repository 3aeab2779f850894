import type { Tool, Transport } from '@modelcontextprotocol/client';
import type { Adapter, Connection, Features } from '../../adapter.ts';
import { connectProcess } from '../agent-process.ts';
import { type AgentServerOptions, createServerAdapter } from '../agent-server.ts';
import { loadLibrary } from '../load-library.ts';
import { type CallTarget, cancelUnknownRequest, createConversation } from './conversation.ts';
import { PieceTransport } from './stdio-transport.ts';
import { cancelTask, classifyTask, getTask, TASKS_EXTENSION, wrapTaskResponse } from './tasks.ts';

/** An MCP server that the kit starts or reaches, and its tool that is an agent. */
export interface McpAdapterOptions extends Omit<AgentServerOptions, 'url'> {
  /** The server over HTTP. Without it, `command` is a server on standard input and output. */
  readonly url?: string | undefined;
  /** The tool to call. Defaults to the only one, or the first that needs one text. */
  readonly tool?: string | undefined;
  /** Whether to offer the server MCP tasks. Defaults to `true`. */
  readonly tasks?: boolean | undefined;
}

/** How long a server may take to greet. */
const GREETING_MS = 30_000;

const NO_TASKS = 'calls are no tasks here: the client that cancels a call gets no answer to it';

const UNRELATED = 'calls know nothing of each other';

const FEATURES: Features = {
  cancel: true,
  conversation: UNRELATED,
  text: 'a call shows nothing before its end',
  calls: 'a call does not show the calls of its agent',
  'cancel-request': 'there is only one way to cancel',
  close: UNRELATED,
  outcome: true,
  status: true,
};

/**
 * Checks an MCP server whose tool is an agent, by the official client.
 *
 * @returns The adapter, for `runChecks`.
 */
export function createMcpAdapter(options: McpAdapterOptions): Adapter {
  return options.url === undefined ? createStdioAdapter(options) : createHttpAdapter(options, options.url);
}

function createStdioAdapter(options: McpAdapterOptions): Adapter {
  const { command } = options;
  if (command === undefined) throw new TypeError('createMcpAdapter needs a command or a url');
  const own = 'a process of its own serves each connection';
  return {
    protocol: 'mcp',
    features: {
      ...FEATURES,
      'one-piece': true,
      process: true,
      stdio: true,
      'cancel-by-id': own,
      'second-instance': own,
      restart: own,
    },
    async connect(harness) {
      const connect = (mode: 'auto' | 'legacy'): Promise<Connection> =>
        connectProcess(command, harness, async (process) => {
          const transport = new PieceTransport(process);
          return Object.assign(await connectServer(transport, mode, options), { process });
        });
      // Some older servers exit when they are asked for the 2026 protocol.
      return connect('auto').catch(() => connect('legacy'));
    },
    async [Symbol.asyncDispose]() {},
  };
}

function createHttpAdapter(options: McpAdapterOptions, url: string): Adapter {
  const features: Features = {
    ...FEATURES,
    'one-piece': 'a cancel is another request, or a closed connection',
    'cancel-by-id': true,
  };
  const connect = async (address: string): Promise<Connection> => {
    const { StreamableHTTPClientTransport } = await load();
    const requestInit = { headers: { ...options.headers } };
    return connectServer(new StreamableHTTPClientTransport(new URL(address), { requestInit }), 'auto', options);
  };
  return createServerAdapter({ protocol: 'mcp', features, connect }, { ...options, url });
}

const load = (): Promise<typeof import('@modelcontextprotocol/client')> =>
  loadLibrary('@modelcontextprotocol/client', () => import('@modelcontextprotocol/client'));

/** Connects the official client to a server. */
async function connectServer(transport: Transport, mode: 'auto' | 'legacy', options: McpAdapterOptions) {
  const { Client } = await load();
  const offersTasks = options.tasks ?? true;
  const extensions: Record<string, Record<string, never>> = offersTasks ? { [TASKS_EXTENSION]: {} } : {};
  const client = new Client(
    { name: 'whoa-check', version: '1' },
    { versionNegotiation: { mode }, capabilities: { extensions, elicitation: { form: {} } } },
  );
  transport.onmessage = wrapTaskResponse;
  // Late responses to cancelled calls arrive here; the calls themselves have ended.
  client.onerror = () => {};
  try {
    await client.connect(transport, { timeout: GREETING_MS });
    const chosen = chooseTool((await client.listTools()).tools, options.tool);
    const hasTasks = offersTasks && client.getServerCapabilities()?.extensions?.[TASKS_EXTENSION] !== undefined;
    const writer = transport instanceof PieceTransport ? transport.writer : undefined;
    return createConnection({ client, hasTasks, writer, ...chosen });
  } catch (error) {
    await client.close();
    throw error;
  }
}

function createConnection(target: Omit<CallTarget, 'questions' | 'closing'>): Connection {
  const { client, hasTasks } = target;
  const { name = 'an MCP server', version = '' } = client.getServerVersion() ?? {};
  const questions = { mode: 'allow' as 'allow' | 'by-check' };
  const closing = new AbortController();
  return {
    agent: `${name} ${version}`.trim(),
    features: hasTasks ? {} : { outcome: NO_TASKS, status: NO_TASKS, 'cancel-by-id': NO_TASKS },
    answerQuestions(mode) {
      questions.mode = mode;
    },
    open: () => Promise.resolve(createConversation({ ...target, questions, closing: closing.signal })),
    async cancelUnknown() {
      if (hasTasks) return cancelTask(client, 'no-such-task');
      await cancelUnknownRequest(client);
      return 'a notification has no answer';
    },
    async status(id) {
      const end = classifyTask(await getTask(client, id));
      return end === 'running' ? end : end.kind;
    },
    cancelTask: (id) => cancelTask(client, id),
    async [Symbol.asyncDispose]() {
      closing.abort();
      await client.close();
    },
  };
}

/** Finds the tool that takes a prompt, and the argument for it. */
function chooseTool(tools: readonly Tool[], wanted: string | undefined) {
  for (const { name, inputSchema } of tools) {
    if (wanted !== undefined && name !== wanted) continue;
    const { properties = {}, required = [] } = inputSchema;
    const [field = '', ...more] = required as string[];
    const isText = (properties[field] as { type?: unknown } | undefined)?.type === 'string';
    if (!isText || (more.length > 0 && wanted === undefined)) continue;
    return { tool: name, argumentsFor: (prompt: string) => ({ [field]: prompt }) };
  }
  const names = tools.map(({ name }) => name).join(', ');
  throw new Error(`no tool accepts a single text as its prompt; choose one with --tool (it has: ${names})`);
}
