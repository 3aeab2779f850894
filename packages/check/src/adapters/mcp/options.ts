import type { AgentServerOptions } from '../agent-server.ts';

/** An MCP server that the kit starts or reaches, and its tool that is an agent. */
export interface McpAdapterOptions extends Omit<AgentServerOptions, 'url'> {
  /** The server over HTTP. Without it, `command` is a server on standard input and output. */
  readonly url?: string;
  /** The tool to call. Defaults to the only one, or the first that needs one text. */
  readonly tool?: string;
  /** Arguments in addition to the prompt, which is put into the first required text that is not among them. */
  readonly arguments?: Readonly<Record<string, unknown>>;
  /** Whether to offer the server MCP tasks. Defaults to `true`. */
  readonly tasks?: boolean;
}
