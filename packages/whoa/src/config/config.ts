import type { PromptPolicy } from '@whoa/acp';
import type { Agent, StopMode, Tool } from '@whoa/core';
import type { Approve } from '@whoa/core/approval';
import type { Cleanup } from '@whoa/core/embed';
import type { Model } from '@whoa/core/model';
import type { TaskStore, TaskStoreConfig } from '@whoa/tasks';
import type { SandboxKind, SandboxOptions } from '@whoa/tools';
import type { ApprovalRule } from '../approvals/rules.ts';

/** What an agent of a configuration may use. */
export interface AgentSetup {
  /** Opens the model that was asked for; name another to open that one. */
  readonly model: (name?: string) => Promise<Model>;
  /** The folder it works in. */
  readonly cwd: string;
  /** A shell and file tools for that folder. */
  readonly tools: readonly Tool[];
  /** Asks the person. Give it to `createAgent`, and calls that write or execute need a yes. */
  readonly approve: Approve;
  /** Registers what must be closed in the end. */
  readonly defer: (cleanup: Cleanup) => void;
}

/** Creates an agent for one folder and one person. It is called when the agent is needed. */
export type AgentFactory = (setup: AgentSetup) => Agent | Promise<Agent>;

/** What `whoa.config.ts` says. */
export interface WhoaConfig {
  /** The model when `--model` does not name one. */
  readonly model?: string;
  /** What the agent that comes with the command is told. */
  readonly instructions?: string;
  /** Agents of your own, chosen with `--agent`; the first one unless chosen. */
  readonly agents?: Readonly<Record<string, Agent | AgentFactory>>;
  /** Where tasks are kept: whoever shares it sees them and can stop them. A SQLite file of your own unless given. */
  readonly store?: TaskStoreConfig | TaskStore;
  /** What a newer prompt in an editor does to the one under way; `queue` unless given. */
  readonly policy?: PromptPolicy;
  /**
   * How a stop that does not say how goes about it: the first Ctrl-C, `whoa cancel` without `--mode`, the stop button of an
   * editor. Unless given it is `graceful`, and `now` in an editor.
   */
  readonly ladder?: StopMode;
  /** What commands may reach; `--sandbox` counts more. Defaults to `workspace` where bubblewrap works, else to `none`. */
  readonly sandbox?: SandboxKind | Omit<SandboxOptions, 'workspace'>;
  /** What may be called without asking, what must be asked about, and what is never allowed. */
  readonly approvals?: readonly ApprovalRule[];
}

/**
 * Gives a configuration its type, for `whoa.config.ts`.
 *
 * @returns The configuration as it was given.
 *
 * @example
 * ```ts
 * import { createAgent, defineConfig } from 'whoa';
 *
 * export default defineConfig({
 *   agents: { reviewer: async ({ model, tools }) => createAgent({ name: 'reviewer', model: await model(), tools }) },
 * });
 * ```
 */
export function defineConfig(config: WhoaConfig): WhoaConfig {
  return config;
}
