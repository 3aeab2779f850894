import type { Client, Transport } from '@modelcontextprotocol/client';
import { createBoundedFetch } from './bounded-fetch.ts';
import type { ServerCommand, StartServer } from './server-process.ts';
import { TASKS_EXTENSION, wrapTaskResponse } from './server-task.ts';
import { StdioTransport } from './stdio-transport.ts';

/** How to connect to a server. */
export type McpTransport =
  | ({
      readonly type: 'stdio';
      /**
       * Whether to offer the server the 2026 protocol, which MCP tasks need. Defaults to `false`: some older servers exit
       * when they are asked. HTTP servers are always asked.
       */
      readonly negotiate?: boolean | undefined;
    } & ServerCommand)
  | {
      readonly type: 'http';
      readonly url: string;
      /** Sent with every request, for example `Authorization`. */
      readonly headers?: Readonly<Record<string, string>> | undefined;
    };

export interface ServerOptions {
  readonly transport: McpTransport;
  readonly startServer: StartServer;
  /** Whether tasks of the server may ask yes or no. */
  readonly asks: boolean;
}

interface OpenOptions extends ServerOptions {
  /** Called when the server may have other tools than it listed last. */
  readonly onToolsChanged: () => void;
}

/** One connection to a server, with what it needs to know of its calls. */
export class OpenConnection {
  readonly client: Client;
  calls = 0;
  /** A connection that failed takes no new calls, and closes when its last call has ended. */
  retired = false;
  readonly #transport: Transport;
  /** Why we closed it, if we did. */
  #fault: string | undefined;

  constructor(library: ClientLibrary, { transport, startServer, asks, onToolsChanged }: OpenOptions) {
    const isStdio = transport.type === 'stdio';
    this.#transport = isStdio ? new StdioTransport(transport, startServer) : this.#createHttp(library, transport);
    this.#transport.onmessage = wrapTaskResponse;
    // Newer servers treat the end of a request as its cancel. Without negotiation an older way is used that some ignore.
    const mode = isStdio && transport.negotiate !== true ? 'legacy' : 'auto';
    const capabilities = { extensions: { [TASKS_EXTENSION]: {} }, ...(asks && { elicitation: { form: {} } }) };
    const listChanged = { tools: { autoRefresh: false, debounceMs: 0, onChanged: onToolsChanged } };
    const options = { versionNegotiation: { mode }, capabilities, listChanged } as const;
    this.client = new library.Client({ name: 'whoa', version: '0.1.0' }, options);
    // Late responses to cancelled calls and stray output arrive here; the calls themselves have ended.
    this.client.onerror = () => undefined;
  }

  async connect(options: { readonly timeout: number; readonly signal: AbortSignal }): Promise<void> {
    await this.client.connect(this.#transport, options);
  }

  /** Why the connection ended, if that is known. */
  get end(): string | undefined {
    return this.#fault ?? (this.#transport instanceof StdioTransport ? this.#transport.end : undefined);
  }

  get hasTasks(): boolean {
    return this.client.getServerCapabilities()?.extensions?.[TASKS_EXTENSION] !== undefined;
  }

  /** Closes both: while the connection is being opened, the client does not know its transport yet. */
  async close(): Promise<void> {
    await this.#transport.close();
    await this.client.close();
  }

  #createHttp(library: ClientLibrary, { url, headers }: Extract<McpTransport, { type: 'http' }>): Transport {
    // Close the connection: the library would wait for the rest of a broken stream.
    const fetch = createBoundedFetch((message) => {
      this.#fault = message;
      http.close().catch(() => {});
    });
    const requestInit = headers && { requestInit: { headers: { ...headers } } };
    const http = new library.StreamableHTTPClientTransport(new URL(url), { ...requestInit, fetch });
    return http;
  }
}

type ClientLibrary = typeof import('@modelcontextprotocol/client');

/** The official client, loaded on first use. */
export async function loadClient(): Promise<ClientLibrary> {
  try {
    return await import('@modelcontextprotocol/client');
  } catch (error) {
    throw new Error('MCP needs its client library: npm install @modelcontextprotocol/client', { cause: error });
  }
}
