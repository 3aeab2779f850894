import type { Transport } from '@modelcontextprotocol/client';
import type { Adapter, Features } from '../../adapter.ts';
import type { Stage } from '../../stage/stage.ts';
import { startProcess } from '../agent-process.ts';
import { type AgentServer, AgentServers } from '../agent-server.ts';
import { type Library, McpConnection } from './connection.ts';
import type { McpAdapterOptions } from './options.ts';
import { PieceTransport } from './stdio-transport.ts';

const UNRELATED = 'calls know nothing of each other';
const NO_TASKS = 'calls are no tasks here: the client that cancels a call gets no answer to it';

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
  const features: Features = {
    'one-piece': true,
    process: true,
    stdio: true,
    'cancel-by-id': own,
    'second-instance': own,
    restart: own,
  };
  return createAdapter(features, async (stage) => {
    const library = await loadLibrary();
    const connect = async (mode: 'auto' | 'legacy'): Promise<McpConnection> => {
      const process = startProcess(command, stage);
      try {
        return await McpConnection.connect({ library, options, mode, process, transport: new PieceTransport(process) });
      } catch (error) {
        await process[Symbol.asyncDispose]();
        const complaints = process.complaints().trim();
        throw new Error(`${(error as Error).message}\n${complaints}`.trim(), { cause: error });
      }
    };
    // Some older servers exit when they are asked for the 2026 protocol.
    return connect('auto').catch(() => connect('legacy'));
  });
}

function createHttpAdapter(options: McpAdapterOptions, url: string): Adapter {
  const servers = new AgentServers({ ...options, url });
  const { first, second } = servers;
  const connect = async (server: AgentServer, stage: Stage, owned?: AsyncDisposable): Promise<McpConnection> => {
    const library = await loadLibrary();
    const address = new URL(await server.reach(stage));
    const requestInit = { headers: { ...options.headers } };
    const transport: Transport = new library.StreamableHTTPClientTransport(address, { requestInit });
    const { process } = server;
    return McpConnection.connect({ library, options, mode: 'auto', transport, process, owned });
  };
  const adapter = createAdapter(
    { 'one-piece': 'a cancel is another request, or a closed connection', 'cancel-by-id': true, ...servers.features },
    (stage) => connect(first, stage),
  );
  return Object.assign(adapter, {
    // It runs only while it is needed: it would take over what the first one leaves when that one is killed.
    ...(second !== undefined && { connectSecond: (stage: Stage) => connect(second, stage, second) }),
    ...(options.command !== undefined && { restart: () => first.restart() }),
    [Symbol.asyncDispose]: () => servers[Symbol.asyncDispose](),
  });
}

/** What an adapter offers depends on whether calls are tasks, which is known when it has connected. */
function createAdapter(own: Features, connect: (stage: Stage) => Promise<McpConnection>): Adapter {
  let hasTasks = false;
  return {
    protocol: 'mcp',
    get features(): Features {
      return {
        cancel: true,
        conversation: UNRELATED,
        text: 'a call shows nothing before its end',
        calls: 'a call does not show the calls of its agent',
        'cancel-request': 'there is only one way to cancel',
        close: UNRELATED,
        outcome: hasTasks || NO_TASKS,
        status: hasTasks || NO_TASKS,
        ...own,
        ...(!hasTasks && { 'cancel-by-id': NO_TASKS }),
      };
    },
    async connect(stage) {
      const connection = await connect(stage);
      ({ hasTasks } = connection);
      return connection;
    },
    async [Symbol.asyncDispose]() {},
  };
}

async function loadLibrary(): Promise<Library> {
  try {
    return await import('@modelcontextprotocol/client');
  } catch (error) {
    throw new Error('Checking MCP needs its client library: npm install @modelcontextprotocol/client', {
      cause: error,
    });
  }
}
