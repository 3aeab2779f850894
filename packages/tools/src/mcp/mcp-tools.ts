import { type CancellationToken, guard, type Tool } from '@whoa/core';
import { type Clock, systemClock } from '@whoa/core/embed';
import type { Containment } from '../process/containment/containment.ts';
import { createContainment } from '../process/containment/create-containment.ts';
import { McpConnection } from './connection.ts';
import type { McpTransport } from './open-connection.ts';
import { resolveServer, startServersIn } from './server-process.ts';
import type { McpApprove } from './task-requests.ts';
import { toolFromMcp } from './tool-from-mcp.ts';
import { checkToolSizes } from './tool-list.ts';

const CONNECT_MS = 30_000;
const CALL_MS = 600_000;

export interface McpOptions {
  readonly transport: McpTransport;
  /** The name of the server in messages, and the prefix of its tools: `github` makes `github_search`. */
  readonly name: string;
  /**
   * Whether to trust the server's hints about its tools: a tool that claims to be read-only then runs without an approval.
   * Defaults to `false`.
   */
  readonly trustHints?: boolean | undefined;
  readonly connectTimeoutMs?: number | undefined;
  /** The time limit of a call. */
  readonly callTimeoutMs?: number | undefined;
  /** Answers a task of the server that asks yes or no. Without it, a task that asks is cancelled and its call fails. */
  readonly approve?: McpApprove | undefined;
  /** Whether calls carry their idempotency key, as `_meta['whoa/effectKey']`. Defaults to `false`. */
  readonly sendsEffectKeys?: boolean | undefined;
  /** The containment of a stdio server. Share that of the host. Defaults to a new one for this server. */
  readonly containment?: Containment | undefined;
  readonly clock?: Clock | undefined;
  /** Cancels the connecting. */
  readonly token?: CancellationToken | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The tools of one server. Dispose it to close the connection and to end the server it started. */
export interface McpTools extends AsyncDisposable {
  readonly tools: readonly Tool[];
  /** The full path of the program that was started. */
  readonly program: string | undefined;
}

/**
 * Connects to an MCP server and makes its tools available to agents.
 *
 * @returns The tools. Dispose them to end the connection, and the server if it was started.
 * @throws Error when `@modelcontextprotocol/client` is not installed, or the server did not respond before the timeout.
 *
 * @example
 * ```ts
 * import { createAgent } from '@whoa/core';
 * import { createMcpTools } from '@whoa/tools';
 *
 * await using files = await createMcpTools({ name: 'files', transport: { type: 'stdio', command: 'my-server' } });
 * const assistant = createAgent({ name: 'assistant', model, tools: files.tools });
 * ```
 */
export async function createMcpTools(options: McpOptions): Promise<McpTools> {
  const {
    name,
    trustHints = false,
    connectTimeoutMs = CONNECT_MS,
    callTimeoutMs = CALL_MS,
    clock = systemClock,
  } = options;
  const transport = options.transport.type === 'stdio' ? resolveServer(options.transport) : options.transport;
  const containment = options.containment ?? createContainment();
  const startServer = startServersIn(containment);
  const connection = new McpConnection({
    name,
    transport,
    connectTimeoutMs,
    clock,
    startServer,
    asks: options.approve !== undefined,
  });
  const close = async (): Promise<void> => {
    await connection[Symbol.asyncDispose]();
    if (options.containment === undefined) await containment[Symbol.asyncDispose]();
  };
  try {
    const found = await guard(({ token }) => connection.listTools(token), {
      name: `opening the MCP server '${name}'`,
      timeoutMs: connectTimeoutMs,
      ...(options.token && { token: options.token }),
      ...(options.signal && { signal: options.signal }),
    });
    checkToolSizes(name, found);
    const names = new Names(name);
    const { approve, sendsEffectKeys = false } = options;
    const shared = { connection, trustHints, callTimeoutMs, approve, sendsEffectKeys };
    return {
      tools: found.map((tool) => toolFromMcp(tool, { ...shared, name: names.take(tool.name) })),
      program: transport.type === 'stdio' ? transport.command : undefined,
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

const MAX_NAME_CHARS = 64;

/** Creates unique names that every model accepts. */
class Names {
  readonly #prefix: string;
  readonly #taken = new Set<string>();

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  take(name: string): string {
    const whole = `${this.#prefix}_${name}`.replace(/[^a-zA-Z0-9_-]/g, '_').replace(/^[^a-zA-Z]/, 'm$&');
    let own = whole.slice(0, MAX_NAME_CHARS);
    for (let number = 2; this.#taken.has(own); number++) {
      own = `${whole.slice(0, MAX_NAME_CHARS - 4)}_${number}`;
    }
    this.#taken.add(own);
    return own;
  }
}
