import { settings } from '@whoa/core/internal';
import { RUNNER_RULES } from '@whoa/tasks/internal';
import { ACCESS_RULES, type Access, createAccess, may } from '../http/access/access.ts';
import type { ApproverOptions } from '../http/access/approvers.ts';
import { type Right, USER_RIGHTS } from '../http/access/principal.ts';
import { refuse } from '../http/access/refusal.ts';
import { createAgentServer } from './agent-tools.ts';
import type { McpAgents, McpCaller } from './host.ts';

/** Options of `serveMcp`. */
export interface ServeMcpOptions extends McpAgents, ApproverOptions {
  /** The tenant of the tasks. */
  readonly tenant: string;
  /** Who is named as the one who cancels. Defaults to the tenant. */
  readonly by?: string | undefined;
  readonly onError?: ((error: Error) => void) | undefined;
}

/** A connection to an MCP host. Dispose it to close it. */
export interface McpServerHandle extends AsyncDisposable {
  /** Resolves when the host has closed its side, or this one was closed. */
  readonly closed: Promise<void>;
}

/**
 * Serves agents to an MCP host, over standard input and output: each is one tool, and its calls are tasks.
 *
 * @returns The connection.
 * @throws {@link SettingsError} when an option is invalid, Error when `@modelcontextprotocol/server` is not installed.
 *
 * @example
 * ```ts
 * import { serveMcp } from '@whoa/server';
 *
 * await using serving = await serveMcp({ store, agents: { coder: 'Changes code' }, tenant: 'local' });
 * await serving.closed;
 * ```
 */
export async function serveMcp(given: ServeMcpOptions): Promise<McpServerHandle> {
  const options = settings.readSettings<ServeMcpOptions>(given, SERVE_RULES);
  const { tenant, by = tenant, onError = () => {} } = options;
  const library = await loadServer();
  const { serveStdio, StdioServerTransport } = await import('@modelcontextprotocol/server/stdio');
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const principal = { tenant, name: by, rights: USER_RIGHTS };
  const { approvers, starterMayAnswer } = options;
  const report = (error: unknown): void => onError(error as Error);
  const access = createAccess({ authenticate: () => principal, approvers, starterMayAnswer, onError: report });
  const caller: McpCaller = { principal, access };
  const transport = new StdioServerTransport();
  serveStdio(() => createAgentServer(library, options, caller), { transport, onerror: onError });
  process.stdin.once('end', resolve);
  return {
    closed,
    async [Symbol.asyncDispose]() {
      process.stdin.off('end', resolve);
      // Not the close of `serveStdio`: it waits for a host that does not read.
      await transport.close();
      resolve();
    },
  };
}

/** Options of `createMcpHandler`. */
export interface McpHandlerOptions extends McpAgents {
  readonly access: Access;
}

/** Agents for MCP hosts over HTTP. */
export interface McpHandler {
  /** Handles a request. */
  readonly fetch: (request: Request) => Promise<Response>;
}

const { callback, nonEmptyText, required } = settings;
const AGENT_RULES: settings.Rules<McpAgents> = {
  store: RUNNER_RULES.store,
  agents: required(settings.rule('agents by name, each with what it is for', settings.isObject)),
  start: callback,
};
const SERVE_RULES: settings.Rules<ServeMcpOptions> = {
  ...AGENT_RULES,
  tenant: required(nonEmptyText),
  by: nonEmptyText,
  onError: callback,
  approvers: ACCESS_RULES.approvers,
  starterMayAnswer: ACCESS_RULES.starterMayAnswer,
};
const HANDLER_RULES: settings.Rules<McpHandlerOptions> = {
  ...AGENT_RULES,
  access: required(settings.having('access control, as from createAccess', 'authorize')),
};

const RIGHTS: readonly Right[] = ['start', 'read', 'cancel'];

/**
 * Serves agents to MCP hosts over HTTP, as a web-standard handler. A host that closes a request cancels that request only.
 *
 * @returns The handler.
 * @throws {@link SettingsError} when an option is invalid, Error when `@modelcontextprotocol/server` is not installed.
 */
export async function createMcpHandler(given: McpHandlerOptions): Promise<McpHandler> {
  const options = settings.readSettings<McpHandlerOptions>(given, HANDLER_RULES);
  const { access, ...served } = options;
  const library = await loadServer();
  const handler = library.createMcpHandler(({ authInfo }) =>
    createAgentServer(library, served, authInfo?.extra?.['caller'] as McpCaller),
  );
  return {
    async fetch(request) {
      const principal = await access.authorize(request, 'start');
      if (principal instanceof Response) return principal;
      const missing = RIGHTS.find((right) => !may(principal, right));
      if (missing !== undefined)
        return refuse(403, { code: 'forbidden', message: `MCP needs the right '${missing}' too` });
      const caller: McpCaller = { principal, access };
      const authInfo = { token: '', clientId: principal.name, scopes: [], extra: { caller } };
      return handler.fetch(request, { authInfo });
    },
  };
}

async function loadServer(): Promise<typeof import('@modelcontextprotocol/server')> {
  try {
    return await import('@modelcontextprotocol/server');
  } catch (error) {
    throw new Error('Serving MCP needs its server library: npm install @modelcontextprotocol/server', { cause: error });
  }
}
