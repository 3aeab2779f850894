import type { CallToolResult, Client, Tool as McpTool, Progress, Transport } from '@modelcontextprotocol/client';
import { type CancellationToken, CancelledError, type Clock, waitUnder } from '@whoa/core';
import { loadClient } from './load-client.ts';
import type { StartServer } from './server-process.ts';
import { StdioTransport } from './stdio-transport.ts';
import type { McpTransport } from './transport.ts';

/** A server that ends this often without having answered one call is left alone for a while. */
const CRASHES_MAX = 3;
const REST_MS = 30_000;
/** The library's own limit; ours is the tool's `timeoutMs`, so this only has to be longer. */
const REQUEST_MS = 2_000_000_000;

export interface ConnectionOptions {
  readonly name: string;
  readonly transport: McpTransport;
  readonly connectMs: number;
  readonly startServer: StartServer;
  readonly clock: Clock;
}

export interface ServerCall {
  readonly name: string;
  readonly args: Record<string, unknown>;
  readonly onProgress: (progress: Progress) => void;
  readonly token: CancellationToken;
}

interface Line {
  readonly client: Client;
  readonly transport: Transport;
  calls: number;
  /** A line that failed takes no new calls, and closes when its last one has ended. */
  retired: boolean;
}

/** A line to one server: opened on first use, opened anew after a crash, closed for good. */
export class McpConnection implements AsyncDisposable {
  readonly #options: ConnectionOptions;
  #line: Promise<Line> | undefined;
  readonly #open = new Set<Line>();
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
    return this.#use(token, ({ client }, signal) =>
      client.callTool({ name, arguments: args }, { signal, onprogress: onProgress, timeout: REQUEST_MS }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#closing.abort('closed');
    const opening = this.#line;
    this.#line = undefined;
    await Promise.all([...this.#open].map(hangUp));
    await opening?.catch(() => undefined);
  }

  /** Works with the server. A cancel is passed on at once, with the kind of the reason and nothing else of it. */
  async #use<T>(token: CancellationToken, work: (line: Line, signal: AbortSignal) => Promise<T>): Promise<T> {
    // The line is shared: a cancelled call stops waiting for it, and it opens for the others.
    const ready = await waitUnder(this.#getLine(), token, 'drain');
    if (ready.by === 'error') throw ready.error;
    if (ready.by === 'level') throw new CancelledError(token.reason!);
    const line = ready.value;
    line.calls++;
    const stop = new AbortController();
    const subscription = token.onCancel((_level, { kind }) => stop.abort(kind));
    try {
      const result = await work(line, stop.signal);
      this.#crashes = 0;
      return result;
    } catch (error) {
      throw await this.#explain(error, line);
    } finally {
      subscription[Symbol.dispose]();
      line.calls--;
      if (line.retired && line.calls === 0) await hangUp(line);
    }
  }

  #getLine(): Promise<Line> {
    const { name, clock } = this.#options;
    if (this.#closed) return Promise.reject(new Error(`The MCP server '${name}' was closed; open it again`));
    const restsUntil = this.#lastCrashAt + REST_MS;
    if (this.#line === undefined && this.#crashes >= CRASHES_MAX && clock.now() < restsUntil) {
      const seconds = Math.ceil((restsUntil - clock.now()) / 1_000);
      const message = `The MCP server '${name}' failed ${this.#crashes} times in a row; it is tried again in ${seconds} s`;
      return Promise.reject(new Error(message));
    }
    return (this.#line ??= this.#connect());
  }

  async #connect(): Promise<Line> {
    const { name, connectMs } = this.#options;
    const library = await loadClient();
    const { transport, versionNegotiation } = this.#createTransport(library);
    const client = new library.Client({ name: 'whoa', version: '0.1.0' }, { versionNegotiation });
    const line: Line = { client, transport, calls: 0, retired: false };
    // Late answers to cancelled calls and stray output arrive here; the calls themselves have ended.
    client.onerror = () => undefined;
    client.onclose = () => this.#lost(line);
    this.#open.add(line);
    try {
      await client.connect(transport, { timeout: connectMs, signal: this.#closing.signal });
      return line;
    } catch (error) {
      this.#lost(line);
      await hangUp(line);
      const end = endOf(transport) ?? describe(error);
      throw new Error(`The MCP server '${name}' could not be reached (${end}); check its command or address`, {
        cause: error,
      });
    }
  }

  #createTransport({ StreamableHTTPClientTransport }: Awaited<ReturnType<typeof loadClient>>) {
    const { transport, startServer } = this.#options;
    if (transport.type === 'stdio') {
      return { transport: new StdioTransport(transport, startServer), versionNegotiation: { mode: 'legacy' as const } };
    }
    const requestInit = transport.headers && { headers: { ...transport.headers } };
    const http = new StreamableHTTPClientTransport(new URL(transport.url), requestInit && { requestInit });
    // Newer servers take the end of a request for its cancel; without asking, an older way is used that some of them ignore.
    return { transport: http, versionNegotiation: { mode: 'auto' as const } };
  }

  /** A line ended: by us, or because the server is gone. The next call opens another. */
  #lost(line: Line): void {
    if (!this.#open.delete(line) || this.#closed || line.retired) return;
    this.#line = undefined;
    this.#crashes++;
    this.#lastCrashAt = this.#options.clock.now();
  }

  /** Says what happened in words that a model can act on. An answer of the server's own is passed on as it is. */
  async #explain(error: unknown, line: Line): Promise<Error> {
    const { ProtocolError, SdkError, SdkErrorCode } = await loadClient();
    if (ProtocolError.isInstance(error)) return error;
    const { name } = this.#options;
    if (SdkError.isInstance(error) && error.code === SdkErrorCode.ConnectionClosed) {
      const end = endOf(line.transport) ?? 'the connection was closed';
      return new Error(`The MCP server '${name}' ended during the call (${end}); the next call starts it again`, {
        cause: error,
      });
    }
    if (SdkError.isInstance(error) && error.code === SdkErrorCode.RequestTimeout) return error;
    if (SdkError.isInstance(error) && error.code === SdkErrorCode.InvalidResult) return error;
    this.#retire(line);
    return new Error(`The MCP server '${name}' could not be reached (${describe(error)}); the next call tries again`, {
      cause: error,
    });
  }

  #retire(line: Line): void {
    if (line.retired) return;
    this.#lost(line);
    line.retired = true;
    // It still has to be closed, when its last call has ended or with everything else.
    this.#open.add(line);
  }
}

/** Also while the line is still being opened: then the client does not know its transport yet. */
async function hangUp({ client, transport }: Line): Promise<void> {
  await transport.close();
  await client.close();
}

function endOf(transport: Transport): string | undefined {
  return transport instanceof StdioTransport ? transport.end : undefined;
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
