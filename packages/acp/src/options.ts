import type { Agent, CancellationToken, Content, Policy, Run, RunOptions, StopMode } from '@whoa/core';
import type { Approve, Ask } from '@whoa/core/approval';
import type { World } from '@whoa/core/embed';
import type { Cleanup } from '@whoa/core/internal';
import type { SessionStore } from './store/store.ts';

/** An MCP server that the client wants for a session. */
export type McpServer =
  | {
      readonly type: 'stdio';
      readonly name: string;
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
    }
  | {
      readonly type: 'http';
      readonly name: string;
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
    };

/** Files as the editor sees them, including unsaved changes. Each method exists only if the client supports it. */
export interface ClientFiles {
  readonly readText?: (
    path: string,
    options: { readonly line?: number | undefined; readonly limit?: number | undefined; readonly signal: AbortSignal },
  ) => Promise<string>;
  readonly writeText?: (path: string, content: string, options: { readonly signal: AbortSignal }) => Promise<void>;
}

/** One session of one client. `createAgent` creates an agent for it. */
export interface AcpSession {
  readonly id: string;
  /** Absolute. Use it instead of the process's working directory. */
  readonly cwd: string;
  /** Further folders of the user's workspace. Empty unless `AcpOptions.additionalDirectories` is set. */
  readonly additionalDirectories: readonly string[];
  readonly mcpServers: readonly McpServer[];
  /** The user's choices, by the id of the setting. */
  readonly settings: Readonly<Record<string, string>>;
  /** Asks the user in the editor. Pass it to `createAgent`, so that calls that write or execute need approval. */
  readonly approve: Approve;
  /** Asks one question. Pass it to `createApprovals` with your own rules. */
  readonly ask: Ask;
  readonly files: ClientFiles;
  /** Shows the user a text at the start of the next prompt, such as a server that could not be reached. */
  readonly notify: (text: string) => void;
  /**
   * Cancelled when this agent is no longer needed: the session was closed, a setting changed, the client disconnected.
   */
  readonly token: CancellationToken;
  /** Registers a cleanup to run at that time. */
  readonly defer: (cleanup: Cleanup) => void;
}

/** A setting that users can change in the editor, such as the model. */
export interface SessionSetting {
  readonly id: string;
  readonly name: string;
  readonly description?: string | undefined;
  readonly category?: 'model' | 'mode' | 'thought_level' | undefined;
  readonly options: readonly {
    readonly value: string;
    readonly name: string;
    readonly description?: string | undefined;
  }[];
  /** The value of a new session. Defaults to the first option. */
  readonly initial?: string | undefined;
}

/** How users authenticate. The editor runs a `terminal` method: its own command with these arguments. */
export interface AuthMethod {
  readonly id: string;
  readonly name: string;
  readonly description?: string | undefined;
  readonly terminal?:
    | { readonly args: readonly string[]; readonly env?: Readonly<Record<string, string>> | undefined }
    | undefined;
}

/**
 * Every prompt of the protocol needs its own response, so one run cannot answer several: no `steer`, no `merge`.
 */
type PromptPolicy = Exclude<Policy, 'steer' | 'merge'>;

/** What the run of a prompt needs. Pass it to `agent.run`. */
interface PromptRunOptions extends Pick<RunOptions, 'history' | 'hooks'> {
  readonly token: CancellationToken;
}

/** How agents are served to an editor. Only `createAgent` is required. */
export interface AcpOptions {
  /**
   * Creates the agent of a session. Called again when a setting changes. Throw an error with the code `AUTH_REQUIRED`
   * to make the editor ask for a login; the message of any error is shown to the user.
   */
  readonly createAgent: (session: AcpSession) => Agent | Promise<Agent>;
  /**
   * Starts the run of a prompt. Defaults to `agent.run(input, options)`. Use it to add options, for example to make the
   * run a task with `runner.adopt`.
   */
  readonly startRun?: ((agent: Agent, input: Content, options: PromptRunOptions) => Run) | undefined;
  readonly info?: { readonly name: string; readonly title?: string | undefined; readonly version: string } | undefined;
  /** Where sessions are kept. Defaults to memory. */
  readonly store?: SessionStore | undefined;
  readonly settings?: readonly SessionSetting[] | undefined;
  readonly authMethods?: readonly AuthMethod[] | undefined;
  /** Called when the user chose a method that is not a terminal's. */
  readonly authenticate?: ((methodId: string) => void | Promise<void>) | undefined;
  /** Which kinds of MCP servers `createAgent` connects to. Set only what it supports. */
  readonly mcp?: { readonly stdio?: boolean | undefined; readonly http?: boolean | undefined } | undefined;
  /** Whether `createAgent` uses `session.additionalDirectories`. Otherwise clients cannot send any. Defaults to `false`. */
  readonly additionalDirectories?: boolean | undefined;
  /** The size of the model's context window in tokens. Without it no usage can be shown. */
  readonly contextTokens?: number | undefined;
  /** The time limit of a prompt. */
  readonly promptTimeoutMs?: number | undefined;
  /** The mode of a cancel from the client. Defaults to `now`. */
  readonly stopMode?: StopMode | undefined;
  /**
   * What a newer prompt does to the active one in its session. `queue`, the default: it waits. `replace`: it cancels
   * the active prompt and all waiting ones, with the ladder or `graceful`. `reject`: it is rejected.
   */
  readonly policy?: PromptPolicy | undefined;
  /** While a reply streams, the part so far is saved at least this often. */
  readonly flushIntervalMs?: number | undefined;
  /**
   * Called with failures outside the protocol, such as a session that could not be saved. Defaults to a process
   * warning.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
  readonly world?: World | undefined;
}
