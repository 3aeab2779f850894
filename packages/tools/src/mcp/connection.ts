import type {
  CallToolResult,
  Client,
  Tool as McpTool,
  Progress,
  StandardSchemaV1,
  Transport,
} from '@modelcontextprotocol/client';
import { type CancellationToken, CancelledError } from '@whoa/core';
import { type Clock, waitUntilLevel } from '@whoa/core/embed';
import { describeError } from '@whoa/core/internal';
import { createBoundedFetch } from './bounded-fetch.ts';
import { forwardCancel } from './forward-cancel.ts';
import { LostAnswerError } from './lost-answer.ts';
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
      readonly negotiate?: boolean;
    } & ServerCommand)
  | {
      readonly type: 'http';
      readonly url: string;
      /** Sent with every request, for example `Authorization`. */
      readonly headers?: Readonly<Record<string, string>>;
    };

/** After this many ends in a row without one response, the server is not started for a while. */
const MAX_CRASHES = 3;
const REST_MS = 30_000;
/** The library's own timeout. It must be longer than ours, the tool's `timeoutMs`. */
const REQUEST_MS = 2_000_000_000;

/** A server that makes a call a task says so within this time. */
const HANDLE_MS = 1_000;

/** Error codes that mean that a request was never sent. */
const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];

export interface ConnectionOptions {
  readonly name: string;
  readonly transport: McpTransport;
  readonly connectTimeoutMs: number;
  readonly startServer: StartServer;
  readonly clock: Clock;
  /** Whether tasks of the server may ask yes or no. */
  readonly asks: boolean;
}

export interface ServerCall {
  readonly name: string;
  readonly args: Record<string, unknown>;
  readonly onProgress: (progress: Progress) => void;
  readonly token: CancellationToken;
}

export interface ExtensionRequest<T extends StandardSchemaV1> {
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly schema: T;
}

interface OpenConnection {
  readonly client: Client;
  readonly transport: Transport;
  /** Why we closed it, if we did. */
  readonly fault: () => string | undefined;
  calls: number;
  /** A connection that failed takes no new calls, and closes when its last call has ended. */
  retired: boolean;
}

/** A connection to one server: opened on first use, reopened after a crash, closed by disposing it. */
export class McpConnection implements AsyncDisposable {
  readonly #options: ConnectionOptions;
  #connection: Promise<OpenConnection> | undefined;
  readonly #open = new Set<OpenConnection>();
  #crashes = 0;
  #lastCrashAt = 0;
  #closed = false;
  readonly #closing = new AbortController();

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  async listTools(token: CancellationToken): Promise<McpTool[]> {
    const { tools } = await this.#use(token, ({ client }, signal) => client.listTools({}, { signal }));
    return tools;
  }

  async call({ name, args, onProgress, token }: ServerCall): Promise<CallToolResult> {
    const options = { onprogress: onProgress, timeout: REQUEST_MS };
    return this.#use(
      token,
      ({ client }, signal) => client.callTool({ name, arguments: args }, { ...options, signal }),
      { mayStartTask: true },
    );
  }

  /** Sends a request of an extension. Reopens the connection if it was lost. */
  async request<T extends StandardSchemaV1>(
    { schema, ...request }: ExtensionRequest<T>,
    token: CancellationToken,
  ): Promise<StandardSchemaV1.InferOutput<T>> {
    return this.#use(token, ({ client }, signal) => client.request(request, schema, { signal, timeout: REQUEST_MS }));
  }

  get name(): string {
    return this.#options.name;
  }

  get clock(): Clock {
    return this.#options.clock;
  }

  /** Whether a new connection reaches the tasks of the last one: those of a process end with it. */
  get keepsTasks(): boolean {
    return this.#options.transport.type === 'http' && !this.#closed;
  }

  /** Aborts when the connection is closed for good. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#closing.abort('closed');
    const opening = this.#connection;
    this.#connection = undefined;
    await Promise.all([...this.#open].map(closeConnection));
    await opening?.catch(() => undefined);
  }

  /** Runs a request, and forwards its cancel. */
  async #use<T>(
    token: CancellationToken,
    work: (connection: OpenConnection, signal: AbortSignal) => Promise<T>,
    { mayStartTask = false } = {},
  ): Promise<T> {
    // The connection is shared: a cancelled call stops waiting, and it still opens for the others.
    const ready = await waitUntilLevel(this.#getConnection(), token, 'drain');
    if (ready.by === 'error') throw ready.error;
    if (ready.by === 'level') throw new CancelledError(token.reason!);
    const connection = ready.value;
    connection.calls++;
    const debounceMs = mayStartTask && hasTasks(connection) ? HANDLE_MS : 0;
    const cancel = forwardCancel(token, { clock: this.clock, debounceMs });
    try {
      const result = await work(connection, cancel.signal);
      this.#crashes = 0;
      return result;
    } catch (error) {
      throw await this.#describeFailure(error, connection);
    } finally {
      cancel[Symbol.dispose]();
      connection.calls--;
      if (connection.retired && connection.calls === 0) await closeConnection(connection);
    }
  }

  #getConnection(): Promise<OpenConnection> {
    const { name, clock } = this.#options;
    if (this.#closed) return Promise.reject(new Error(`The MCP server '${name}' was closed; open it again`));
    const restsUntil = this.#lastCrashAt + REST_MS;
    if (this.#connection === undefined && this.#crashes >= MAX_CRASHES && clock.now() < restsUntil) {
      const seconds = Math.ceil((restsUntil - clock.now()) / 1_000);
      const message = `The MCP server '${name}' failed ${this.#crashes} times in a row; it is tried again in ${seconds} s`;
      return Promise.reject(new Error(message));
    }
    return (this.#connection ??= this.#connect());
  }

  async #connect(): Promise<OpenConnection> {
    const { name, connectTimeoutMs, asks } = this.#options;
    const library = await loadClient();
    const { transport, versionNegotiation, fault } = this.#createTransport(library);
    const capabilities = { extensions: { [TASKS_EXTENSION]: {} }, ...(asks && { elicitation: { form: {} } }) };
    const client = new library.Client({ name: 'whoa', version: '0.1.0' }, { versionNegotiation, capabilities });
    transport.onmessage = wrapTaskResponse;
    const connection: OpenConnection = { client, transport, fault, calls: 0, retired: false };
    // Late responses to cancelled calls and stray output arrive here; the calls themselves have ended.
    client.onerror = () => undefined;
    client.onclose = () => this.#lost(connection);
    this.#open.add(connection);
    try {
      await client.connect(transport, { timeout: connectTimeoutMs, signal: this.#closing.signal });
      return connection;
    } catch (error) {
      // Read this before closing: the exit status is useful only if the server ended by itself.
      const end = endOf(transport) ?? describeError(error);
      this.#lost(connection);
      await closeConnection(connection);
      const words = `The MCP server '${name}' could not be reached (${end}); check its command or address`;
      throw new Error(words, { cause: error });
    }
  }

  #createTransport({ StreamableHTTPClientTransport }: Awaited<ReturnType<typeof loadClient>>) {
    const { transport, startServer } = this.#options;
    if (transport.type === 'stdio') {
      const stdio = new StdioTransport(transport, startServer);
      const mode = transport.negotiate === true ? ('auto' as const) : ('legacy' as const);
      return { transport: stdio as Transport, versionNegotiation: { mode }, fault: () => undefined };
    }
    const requestInit = transport.headers && { requestInit: { headers: { ...transport.headers } } };
    let fault: string | undefined;
    // Close the connection: the library would wait for the rest of a broken stream.
    const fetch = createBoundedFetch((message) => {
      fault = message;
      http.close().catch(() => {});
    });
    const http = new StreamableHTTPClientTransport(new URL(transport.url), { ...requestInit, fetch });
    // Newer servers treat the end of a request as its cancel. Without negotiation an older way is used that some ignore.
    return { transport: http as Transport, versionNegotiation: { mode: 'auto' as const }, fault: () => fault };
  }

  /** Handles the end of a connection. The next call opens another. */
  #lost(connection: OpenConnection): void {
    if (!this.#open.delete(connection) || this.#closed || connection.retired) return;
    this.#connection = undefined;
    this.#crashes++;
    this.#lastCrashAt = this.#options.clock.now();
  }

  /** Describes a failure so that a model can act on it. An error response of the server is passed on unchanged. */
  async #describeFailure(error: unknown, connection: OpenConnection): Promise<Error> {
    const { ProtocolError, SdkError, SdkErrorCode } = await loadClient();
    if (ProtocolError.isInstance(error)) return error;
    const { name } = this.#options;
    if (SdkError.isInstance(error) && error.code === SdkErrorCode.ConnectionClosed) {
      const end = connection.fault() ?? endOf(connection.transport) ?? 'the connection was closed';
      const words = `The MCP server '${name}' ended during the call (${end}); the next call starts it again`;
      return new LostAnswerError(words, { cause: error });
    }
    if (SdkError.isInstance(error) && error.code === SdkErrorCode.RequestTimeout) return error;
    if (SdkError.isInstance(error) && error.code === SdkErrorCode.InvalidResult) {
      const words = `The MCP server '${name}' gave an answer that is none (${describeError(error)})`;
      return new LostAnswerError(words, { cause: error });
    }
    this.#retire(connection);
    const words = `The MCP server '${name}' could not be reached (${describeError(error)}); the next call tries again`;
    return isUnsent(error) ? new Error(words, { cause: error }) : new LostAnswerError(words, { cause: error });
  }

  #retire(connection: OpenConnection): void {
    if (connection.retired) return;
    this.#lost(connection);
    connection.retired = true;
    // It must still be closed, when its last call has ended or on dispose.
    this.#open.add(connection);
  }
}

/** Close both: while the connection is being opened, the client does not know its transport yet. */
async function closeConnection({ client, transport }: OpenConnection): Promise<void> {
  await transport.close();
  await client.close();
}

function hasTasks({ client }: OpenConnection): boolean {
  return client.getServerCapabilities()?.extensions?.[TASKS_EXTENSION] !== undefined;
}

function isUnsent(error: unknown): boolean {
  for (let at = error as { code?: unknown; cause?: unknown } | undefined, depth = 0; at && depth < 5; depth++) {
    if (UNSENT.includes(at.code as string)) return true;
    at = at.cause as typeof at;
  }
  return false;
}

function endOf(transport: Transport): string | undefined {
  return transport instanceof StdioTransport ? transport.end : undefined;
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
