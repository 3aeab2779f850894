import type { AcpOptions } from '@whoa/acp';
import type { Agent, StopMode, Tool } from '@whoa/core';
import type { Approve } from '@whoa/core/approval';
import type { Cleanup } from '@whoa/core/internal';
import type { Model } from '@whoa/core/model';
import type { AccessOptions } from '@whoa/server';
import type { Webhook } from '@whoa/server/webhooks';
import type { EngineFactory, RunnerOptions, TaskStore, TaskStoreConfig } from '@whoa/tasks';
import type { SandboxKind, SandboxOptions } from '@whoa/tools';
import type { ApprovalRule } from '../approvals/rules.ts';

/** What an {@link AgentFactory} receives. */
export interface AgentSetup {
  /** Opens a model by name. Defaults to the model of `--model`, the environment or the configuration. */
  readonly model: (name?: string) => Promise<Model>;
  /** The folder that the agent works in. */
  readonly cwd: string;
  /** A shell and file tools for that folder. */
  readonly tools: readonly Tool[];
  /** Asks the user. Pass it to `createAgent` to require an approval for calls that write or execute. */
  readonly approve: Approve;
  /** Registers a cleanup that runs when the agent is closed. */
  readonly defer: (cleanup: Cleanup) => void;
}

/** Creates an agent for one folder and one user. It is called when the agent is needed. */
export type AgentFactory = (setup: AgentSetup) => Agent | Promise<Agent>;

/** The configuration that `whoa.config.ts` exports. */
export interface WhoaConfig {
  /** The model, if neither `--model` nor `WHOA_MODEL` names one. */
  readonly model?: string | undefined;
  /**
   * The size of the model's context window in tokens. The built-in agent summarises older messages before it is full, and
   * editors show how much is used. Defaults to 128,000, which editors do not show.
   */
  readonly contextTokens?: number | undefined;
  /** Instructions for the built-in agent. */
  readonly instructions?: string | undefined;
  /** Your own agents, chosen with `--agent`. The first one is the default. */
  readonly agents?: Readonly<Record<string, Agent | AgentFactory>> | undefined;
  /** Where tasks are kept: an address, or options. Everyone with access can stop them. Defaults to a SQLite file of this user. */
  readonly store?: string | TaskStoreConfig | TaskStore | undefined;
  /** A queue in front of the store, for `serve` and `worker`: `bullmq({ … })` from `@whoa/bullmq`. Defaults to none. */
  readonly engine?: EngineFactory | undefined;
  /** What a new prompt in an editor does to the running one. Defaults to `queue`. */
  readonly policy?: NonNullable<AcpOptions['policy']> | undefined;
  /**
   * The mode of a stop that names none: the first Ctrl-C, `whoa cancel` without `--mode`, the stop button of an editor.
   * Defaults to `now` for Ctrl-C and in an editor, otherwise to `graceful`.
   */
  readonly stopMode?: StopMode | undefined;
  /** How long `serve` accepts requests after SIGTERM, while `/readyz` reports 503. `--drain` overrides it. Defaults to 5,000. */
  readonly drainMs?: number | undefined;
  /**
   * Whether `worker` resumes a task that another version of its agent has begun: `any` does and tells the model,
   * `same-version` fails it. Defaults to `any`.
   */
  readonly resume?: 'any' | 'same-version' | undefined;
  /** How long `worker` lets a task wait whose model's provider is overloaded or cannot be reached. Defaults to none: it fails. */
  readonly waitForProvider?: RunnerOptions['waitForProvider'] | undefined;
  /** What commands may access; `--sandbox` overrides it. Defaults to `workspace` where bubblewrap works, otherwise to `none`. */
  readonly sandbox?: SandboxKind | Omit<SandboxOptions, 'workspace'> | undefined;
  /** Which calls are allowed without asking, which need an approval, and which are denied. */
  readonly approvals?: readonly ApprovalRule[] | undefined;
  /** Decides who may answer a question through `serve`, in addition to the right `approve`. Anything but `true` means no. */
  readonly approvers?: AccessOptions['approvers'] | undefined;
  /** Whether whoever started a task may answer its questions through `serve`. Defaults to `true`. */
  readonly starterMayAnswer?: boolean | undefined;
  /** Where `serve` and `worker` report ended tasks, and questions. */
  readonly webhooks?: readonly Webhook[] | undefined;
}

/**
 * Gives a configuration its type, for `whoa.config.ts`.
 *
 * @returns The same configuration.
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
