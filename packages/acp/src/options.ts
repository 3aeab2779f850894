import type { Agent, CancellationToken, Policy, StopMode } from '@whoa/core';
import type { Approve, Ask } from '@whoa/core/approval';
import type { Cleanup, World } from '@whoa/core/embed';
import type { SessionStore } from './store/store.ts';

/** A server of tools that the client wants a session to have. */
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

/** Files as the editor sees them, unsaved changes included. Each is there only if the client offers it. */
export interface ClientFiles {
  readonly readText?: (
    path: string,
    options: { readonly line?: number; readonly limit?: number; readonly signal: AbortSignal },
  ) => Promise<string>;
  readonly writeText?: (path: string, content: string, options: { readonly signal: AbortSignal }) => Promise<void>;
}

/** What an agent is made for: one session of one client. */
export interface AcpSession {
  readonly id: string;
  /** Absolute. Use it, whatever the process's own folder is. */
  readonly cwd: string;
  readonly additionalDirectories: readonly string[];
  readonly mcpServers: readonly McpServer[];
  /** What the person chose, by the id of the setting. */
  readonly settings: Readonly<Record<string, string>>;
  /** Asks the person in the editor. Give it to `createAgent`, and calls that write or execute need a yes. */
  readonly approve: Approve;
  /** Asks one question; for `createApprovals` with rules of your own. */
  readonly ask: Ask;
  readonly files: ClientFiles;
  /** Cancelled when this agent is no longer needed: the session was closed, a setting changed, the client has gone. */
  readonly token: CancellationToken;
  /** Registers what must be closed then. */
  readonly defer: (cleanup: Cleanup) => void;
}

/** Something a person may choose in the editor, such as the model. */
export interface SessionSetting {
  readonly id: string;
  readonly name: string;
  readonly description?: string;
  readonly category?: 'model' | 'mode' | 'thought_level';
  readonly options: readonly { readonly value: string; readonly name: string; readonly description?: string }[];
  /** The value of a new session; the first one unless given. */
  readonly initial?: string;
}

/** How a person gets in. A `terminal` one is run by the editor: its own command with these arguments. */
export interface AuthMethod {
  readonly id: string;
  readonly name: string;
  readonly description?: string;
  readonly terminal?: { readonly args: readonly string[]; readonly env?: Readonly<Record<string, string>> };
}

/** Every prompt of the protocol has an answer of its own, so one cannot be given to the run of another: no `steer`. */
export type PromptPolicy = Exclude<Policy, 'steer'>;

/** How agents are served to an editor. Only `createAgent` is required. */
export interface AcpOptions {
  /**
   * Makes the agent of a session. It is called again when a setting changes. Throw an error with the code
   * `AUTH_REQUIRED` to have the editor ask for a login; any error's message is shown to the person.
   */
  readonly createAgent: (session: AcpSession) => Agent | Promise<Agent>;
  readonly info?: { readonly name: string; readonly title?: string; readonly version: string };
  /** Where sessions are kept; in memory unless given. */
  readonly store?: SessionStore;
  readonly settings?: readonly SessionSetting[];
  readonly authMethods?: readonly AuthMethod[];
  /** Called when the person chose a method that is not a terminal's. */
  readonly authenticate?: (methodId: string) => void | Promise<void>;
  /** Which servers `createAgent` connects to. Say so only if it does. */
  readonly mcp?: { readonly stdio?: boolean; readonly http?: boolean };
  /** How many model tokens fit into the window; without it no usage can be shown. */
  readonly contextTokens?: number;
  /** The longest a prompt may take. */
  readonly deadlineMs?: number;
  /** What a cancel from the client means; `now` unless given. */
  readonly ladder?: StopMode;
  /**
   * What a newer prompt does to the one under way in its session: it waits (`queue`, unless given), cancels it and
   * everything that waits (`replace`, by the ladder or `graceful`), or is refused (`reject`).
   */
  readonly policy?: PromptPolicy;
  /** While a reply is streamed, what has come is saved at least this often. */
  readonly flushMs?: number;
  /** Told of what went wrong beside the protocol: a session that could not be saved. A process warning unless given. */
  readonly onProblem?: (error: unknown) => void;
  readonly world?: World;
}
