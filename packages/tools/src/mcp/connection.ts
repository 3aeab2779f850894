import type { CallToolResult, Tool as McpTool, Progress, StandardSchemaV1 } from '@modelcontextprotocol/client';
import { type CancellationToken, CancelledError } from '@whoa/core';
import { type Clock, waitUntilLevel } from '@whoa/core/embed';
import { describeError } from '@whoa/core/internal';
import { forwardCancel } from './forward-cancel.ts';
import { loadClient, OpenConnection, type ServerOptions } from './open-connection.ts';
import { describeFailure } from './request-failure.ts';
import { ToolList } from './tool-list.ts';

/** After this many ends in a row without one response, the server is not started for a while. */
const MAX_CRASHES = 3;
const REST_MS = 30_000;
/** The library's own timeout. It must be longer than ours, the tool's `timeoutMs`. */
const REQUEST_MS = 2_000_000_000;

/** A server that makes a call a task reports it within this time. */
const HANDLE_MS = 1_000;

export interface ConnectionOptions extends ServerOptions {
  readonly name: string;
  readonly connectTimeoutMs: number;
  readonly clock: Clock;
}

export interface ServerCall {
  readonly name: string;
  readonly args: Record<string, unknown>;
  readonly onProgress: (progress: Progress) => void;
  readonly token: CancellationToken;
  /** Sent to the server, if given. */
  readonly effectKey?: string;
}

/** Where a call carries its idempotency key. */
const EFFECT_KEY = 'whoa/effectKey';

export interface ExtensionRequest<T extends StandardSchemaV1> {
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly schema: T;
}

/** A connection to one server: opened on first use, reopened after a crash, closed by disposing it. */
export class McpConnection implements AsyncDisposable {
  readonly #options: ConnectionOptions;
  readonly #tools: ToolList;
  #connection: Promise<OpenConnection> | undefined;
  readonly #open = new Set<OpenConnection>();
  #crashes = 0;
  #lastCrashAt = 0;
  #closed = false;
  readonly #closing = new AbortController();

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#tools = new ToolList(options.name);
  }

  async listTools(token: CancellationToken): Promise<McpTool[]> {
    // Before the request: the server may change them again meanwhile.
    this.#tools.isStale = false;
    try {
      const { tools } = await this.#use(
        token,
        ({ client }, signal) => client.listTools({}, { signal, cacheMode: 'refresh' }),
        {
          isListing: true,
        },
      );
      this.#tools.set(tools);
      return tools;
    } catch (error) {
      this.#tools.isStale = true;
      throw error;
    }
  }

  async call({ name, args, onProgress, token, effectKey }: ServerCall): Promise<CallToolResult> {
    if (this.#tools.isStale) await this.#listAgain(token);
    this.#tools.check(name);
    const options = { onprogress: onProgress, timeout: REQUEST_MS };
    const _meta = effectKey === undefined ? undefined : { [EFFECT_KEY]: effectKey };
    return this.#use(
      token,
      ({ client }, signal) =>
        client.callTool({ name, arguments: args, ...(_meta && { _meta }) }, { ...options, signal }),
      { mayStartTask: true },
    );
  }

  async #listAgain(token: CancellationToken): Promise<void> {
    try {
      await this.listTools(token);
    } catch (error) {
      if (token.isCancelled) throw new CancelledError(token.reason!);
      // Not the original: nothing was called, so nothing is unknown.
      throw new Error(describeError(error), { cause: error });
    }
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

  /** Aborts when the connection is closed permanently. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#closing.abort('closed');
    const opening = this.#connection;
    this.#connection = undefined;
    await Promise.all([...this.#open].map((connection) => connection.close()));
    await opening?.catch(() => undefined);
  }

  /** Runs a request, and forwards its cancel. */
  async #use<T>(
    token: CancellationToken,
    work: (connection: OpenConnection, signal: AbortSignal) => Promise<T>,
    { mayStartTask = false, isListing = false } = {},
  ): Promise<T> {
    // The connection is shared: a cancelled call stops waiting, and it still opens for the others.
    const ready = await waitUntilLevel(this.#getConnection(), token, 'drain');
    if (ready.by === 'error') throw ready.error;
    if (ready.by === 'level') throw new CancelledError(token.reason!);
    const connection = ready.value;
    connection.calls++;
    const debounceMs = mayStartTask && connection.hasTasks ? HANDLE_MS : 0;
    const cancel = forwardCancel(token, { clock: this.clock, debounceMs });
    try {
      const result = await work(connection, cancel.signal);
      // A server that lists its tools and crashes in every call does not work.
      if (!isListing) this.#crashes = 0;
      return result;
    } catch (error) {
      const onUnusable = (): void => this.#retire(connection);
      throw await describeFailure(error, { server: this.name, connection, onUnusable });
    } finally {
      cancel[Symbol.dispose]();
      connection.calls--;
      if (connection.retired && connection.calls === 0) await connection.close();
    }
  }

  #getConnection(): Promise<OpenConnection> {
    const { name, clock } = this.#options;
    if (this.#closed) return Promise.reject(new Error(`The MCP server '${name}' was closed; create its tools again`));
    const restsUntil = this.#lastCrashAt + REST_MS;
    if (this.#connection === undefined && this.#crashes >= MAX_CRASHES && clock.now() < restsUntil) {
      const seconds = Math.ceil((restsUntil - clock.now()) / 1_000);
      const message = `The MCP server '${name}' failed ${this.#crashes} times in a row; it is tried again in ${seconds} s`;
      return Promise.reject(new Error(message));
    }
    return (this.#connection ??= this.#connect());
  }

  async #connect(): Promise<OpenConnection> {
    const { name, connectTimeoutMs } = this.#options;
    const connection = new OpenConnection(await loadClient(), {
      ...this.#options,
      onToolsChanged: () => (this.#tools.isStale = true),
    });
    connection.client.onclose = () => this.#lost(connection);
    this.#open.add(connection);
    try {
      await connection.connect({ timeout: connectTimeoutMs, signal: this.#closing.signal });
      return connection;
    } catch (error) {
      // Read this before closing: the exit status is useful only if the server ended by itself.
      const end = connection.end ?? describeError(error);
      this.#lost(connection);
      await connection.close();
      const words = `The MCP server '${name}' could not be reached (${end}); check its command or address`;
      throw new Error(words, { cause: error });
    }
  }

  /** Handles the end of a connection. The next call opens another. */
  #lost(connection: OpenConnection): void {
    if (!this.#open.delete(connection) || this.#closed || connection.retired) return;
    this.#connection = undefined;
    this.#tools.isStale = true;
    this.#crashes++;
    this.#lastCrashAt = this.#options.clock.now();
  }

  #retire(connection: OpenConnection): void {
    if (connection.retired) return;
    this.#lost(connection);
    connection.retired = true;
    // It must still be closed, when its last call has ended or on dispose.
    this.#open.add(connection);
  }
}
