import type { Agent } from '@whoa/core';
import type { Approve } from '@whoa/core/approval';
import { createTaskApprovals, type TaskApprovals } from '@whoa/tasks';
import { findOwnFolders } from '../approvals/protected-paths.ts';
import { createJudge } from '../approvals/rules.ts';
import { UsageError, type Values } from '../command.ts';
import type { WhoaConfig } from '../config/config.ts';
import type { ConnectionContext } from '../system.ts';
import type { OPEN_OPTIONS } from './agent-options.ts';
import { chooseSandbox } from './choose-sandbox.ts';
import { type OpenAgent, OWN_NAME, openAgent } from './open-agent.ts';

export interface OpenAgentsOptions {
  readonly config: WhoaConfig;
  /** The names of the agents. Defaults to all of the configuration. */
  readonly names?: readonly string[] | undefined;
  readonly values: Pick<Values<typeof OPEN_OPTIONS>, 'model' | 'sandbox' | 'yes'>;
  readonly surroundings: ConnectionContext;
}

/** Agents for a process without a user at a terminal. */
export interface OpenAgents extends AsyncDisposable {
  /** The agents by name. */
  readonly agents: Readonly<Record<string, Agent>>;
  /** For the runner: calls that no rule decides wait for an approval through the store. */
  readonly approvals: TaskApprovals;
  /** For the runner. */
  readonly hooks: OpenAgent['hooks'];
  /** What commands may access, in one line. */
  readonly sandboxShown: string;
}

/** The names of the agents that tasks can use. Without agents in the configuration, that of the built-in one. */
export function agentNames({ agents = {} }: WhoaConfig): readonly string[] {
  const names = Object.keys(agents);
  return names.length === 0 ? [OWN_NAME] : names;
}

/** What MCP hosts learn about agents. */
export function describeAgents(names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, `Gives a prompt to the agent '${name}'`]));
}

/** Returns the wanted names. Throws if one of them is unknown. */
export function chooseNames(config: WhoaConfig, wanted: readonly string[] | undefined): readonly string[] {
  const names = agentNames(config);
  const unknown = wanted?.find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new UsageError(`--agent: unknown agent '${unknown}'; use one of ${names.join(', ')}`);
  return wanted ?? names;
}

/** Opens agents in this folder, each under its name in the configuration. */
export async function openAgents(options: OpenAgentsOptions): Promise<OpenAgents> {
  const { config, values, surroundings } = options;
  const { model, sandbox: word, yes } = values;
  const { env } = surroundings;
  const cwd = surroundings.cwd();
  const { options: sandbox, shown } = await chooseSandbox({ word, config, yes, isTerminal: false, cwd, env });
  const decide = createJudge({ rules: config.approvals, yes, cwd, ownFolders: findOwnFolders(env) });
  const approvals = createTaskApprovals({ decide });
  const approve: Approve = Object.assign<Approve, Approve>(
    (request, context) => approvals.approve(request, context),
    // Rules can require an approval for calls that only read, too.
    { isRequired: (request) => decide(request).decision !== 'allow' } as Approve,
  );
  const opened: OpenAgent[] = [];
  const dispose = async (): Promise<void> => {
    for (const one of opened.splice(0).reverse()) await one[Symbol.asyncDispose]();
  };
  const agents: Record<string, Agent> = {};
  try {
    for (const name of chooseNames(config, options.names)) {
      const open = await openAgent({ config, name, model, cwd, surroundings, sandbox, approve });
      opened.push(open);
      agents[name] = open.agent;
    }
  } catch (error) {
    await dispose();
    throw error;
  }
  return { agents, approvals, hooks: opened[0]!.hooks, sandboxShown: shown, [Symbol.asyncDispose]: dispose };
}
