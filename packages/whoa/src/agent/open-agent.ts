import { type Agent, createAgent, type Tool } from '@whoa/core';
import type { Approve } from '@whoa/core/approval';
import { createCleanupList } from '@whoa/core/embed';
import {
  createBashTool,
  createContainment,
  createFileTools,
  type FileContents,
  type SandboxOptions,
} from '@whoa/tools';
import { realPathOf } from '../approvals/path-pattern.ts';
import { protectedPaths } from '../approvals/protected-paths.ts';
import { UsageError } from '../command.ts';
import type { AgentFactory, AgentSetup, WhoaConfig } from '../config/config.ts';
import { defaultModelName } from '../model/model-name.ts';
import { openModel } from '../model/open-model.ts';
import { reportCleanup } from '../terminal/report-cleanup.ts';
import type { PromptBudgets } from './agent-options.ts';
import { createKeyRedaction } from './key-redaction.ts';
import { openLogFolder } from './log-folder.ts';

export interface OpenAgentOptions {
  readonly config: WhoaConfig;
  /** The name of the agent. Defaults to the first one of the configuration, otherwise to the built-in one. */
  readonly name?: string | undefined;
  readonly model?: string | undefined;
  readonly cwd: string;
  /** What commands may access. */
  readonly sandbox: SandboxOptions;
  readonly approve: Approve;
  /** Reads and writes files elsewhere than on the disk. */
  readonly contents?: FileContents;
  /** Additional tools. */
  readonly tools?: readonly Tool[];
  /** Limits of each run. They replace those of the agent. */
  readonly budgets?: PromptBudgets;
}

/** An agent with its resources. Dispose it to close them. */
export interface OpenAgent extends AsyncDisposable {
  readonly agent: Agent;
}

/** The name of the built-in agent. */
export const OWN_NAME = 'assistant';
const INSTRUCTIONS = [
  "You work in a user's folder while the user watches you in a terminal. Use your tools to find out rather than guess.",
  'Say briefly what you are about to do. When a call was denied or interrupted, do not repeat it without being asked.',
].join(' ');

/** Opens an agent. Its packages are loaded on demand. */
export async function openAgent(options: OpenAgentOptions): Promise<OpenAgent> {
  const { config, cwd, approve } = options;
  refuseOwnFolders(cwd);
  const cleanups = createCleanupList({ name: 'the agent', onError: reportCleanup });
  const containment = createContainment({ sandbox: options.sandbox });
  cleanups.defer(() => containment[Symbol.asyncDispose]());
  const setup: AgentSetup = {
    model: (name = options.model ?? config.model ?? defaultModelName(process.env)) => openModel(name),
    cwd,
    tools: [
      createBashTool({ cwd, containment, keepLog: openLogFolder() }),
      ...filesFor(options),
      ...(options.tools ?? []),
    ],
    approve,
    defer: cleanups.defer,
  };
  try {
    const chosen = chooseAgent(options) ?? ownAgent(config);
    const agent = typeof chosen === 'function' ? await chosen(setup) : chosen;
    if (typeof agent?.run !== 'function') throw new UsageError('agents: the function did not return an agent');
    return {
      agent: withRunOptions(agent, options.budgets),
      [Symbol.asyncDispose]: () => cleanups[Symbol.asyncDispose](),
    };
  } catch (error) {
    await cleanups[Symbol.asyncDispose]();
    throw error;
  }
}

/** If commands may not write, file tools may not either. */
function filesFor({ cwd, contents, sandbox }: OpenAgentOptions): Tool[] {
  const tools = createFileTools({ root: cwd, contents });
  return sandbox.kind === 'read-only' ? tools.filter(({ effects }) => effects === 'read') : tools;
}

/** Limits the runs and redacts keys from the results of all tools, also for agents of the configuration. */
function withRunOptions(agent: Agent, budgets: PromptBudgets | undefined): Agent {
  const redact = createKeyRedaction();
  return { ...agent, run: (input, options) => agent.run(input, { redact, budgets, ...options }) };
}

/** Throws in our own folders: the next command would run code that an agent writes there, without asking. */
function refuseOwnFolders(cwd: string): void {
  const real = realPathOf(cwd, '/');
  const own = protectedPaths().folders.find((folder) => `${real}/`.startsWith(`${folder}/`));
  if (own !== undefined) throw new UsageError(`${own} is whoa's own folder; start the agent in another one`);
}

function chooseAgent({ config, name }: OpenAgentOptions): Agent | AgentFactory | undefined {
  const { agents = {} } = config;
  const names = Object.keys(agents);
  const wanted = name ?? names[0];
  if (wanted === undefined || (wanted === OWN_NAME && !Object.hasOwn(agents, wanted))) return undefined;
  if (Object.hasOwn(agents, wanted)) return agents[wanted];
  throw new UsageError(
    `--agent: unknown agent '${wanted}'; use one of ${[...new Set([...names, OWN_NAME])].join(', ')}`,
  );
}

function ownAgent({ instructions = '', ladder }: WhoaConfig): AgentFactory {
  return async ({ model, tools, approve }) =>
    createAgent({
      name: OWN_NAME,
      model: await model(),
      tools,
      approve,
      ...(ladder !== undefined && { ladder }),
      instructions: [INSTRUCTIONS, instructions].join('\n\n').trim(),
    });
}
