import type { AgentCommand } from '../agent-process.ts';

/** An MCP server that the kit starts or reaches, and its tool that is an agent. */
export interface McpAdapterOptions {
  /** The server on standard input and output; with a `url`, what starts the server there. */
  readonly command?: AgentCommand;
  /** The server over HTTP. `{port}` is replaced by the port that the command is told. */
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A second instance on the same store. Defaults to `url` when there is a `secondCommand`. */
  readonly secondUrl?: string;
  readonly secondCommand?: AgentCommand;
  /** The tool to call. Defaults to the only one, or the first that needs one text. */
  readonly tool?: string;
  /** Arguments beside the prompt, which is put into the first required text that is not among them. */
  readonly arguments?: Readonly<Record<string, unknown>>;
  /** Whether to offer the server MCP tasks. Defaults to `true`. */
  readonly tasks?: boolean;
}
