import type { Adapter, Features } from '../../adapter.ts';
import { startProcess } from '../agent-process.ts';
import { createServerAdapter } from '../agent-server.ts';
import { loadLibrary } from '../load-library.ts';
import { type Library, McpConnection } from './connection.ts';
import type { McpAdapterOptions } from './options.ts';
import { PieceTransport } from './stdio-transport.ts';

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

const load = (): Promise<Library> =>
  loadLibrary('@modelcontextprotocol/client', () => import('@modelcontextprotocol/client'));

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
      const library = await load();
      const connect = async (mode: 'auto' | 'legacy'): Promise<McpConnection> => {
        const process = startProcess(command, harness);
        try {
          const transport = new PieceTransport(process);
          return Object.assign(await McpConnection.connect({ library, options, mode, transport }), { process });
        } catch (error) {
          await process[Symbol.asyncDispose]();
          const stderrTail = process.stderrTail().trim();
          throw new Error(`${(error as Error).message}\n${stderrTail}`.trim(), { cause: error });
        }
      };
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
  const connect = async (address: string): Promise<McpConnection> => {
    const library = await load();
    const requestInit = { headers: { ...options.headers } };
    const transport = new library.StreamableHTTPClientTransport(new URL(address), { requestInit });
    return McpConnection.connect({ library, options, mode: 'auto', transport });
  };
  return createServerAdapter({ protocol: 'mcp', features, connect }, { ...options, url });
}
