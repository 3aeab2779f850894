import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Agent, createAgent, type Tool } from '@whoa/core';
import type { Approve } from '@whoa/core/approval';
import { createCleanupList } from '@whoa/core/internal';
import { getDefaultSqlitePath } from '@whoa/tasks/internal';
import {
  createBashTool,
  createContainment,
  createFileTools,
  createRoot,
  endLeftovers,
  type Technique,
} from '@whoa/tools';
import type { FileContents } from '@whoa/tools/internal';
import { resolveRealPath } from '../approvals/path-pattern.ts';
import { findOwnFolders } from '../approvals/protected-paths.ts';
import { UsageError } from '../command.ts';
import type { AgentFactory, AgentSetup, WhoaConfig } from '../config/config.ts';
import { defaultModelName } from '../model/model-name.ts';
import { openModel } from '../model/open-model.ts';
import type { ConnectionContext } from '../system.ts';
import { reportCleanup } from '../terminal/report-cleanup.ts';
import type { PromptBudgets } from './agent-options.ts';
import { createCompact } from './compact.ts';
import { createKeyRedaction } from './key-redaction.ts';
import { openLogFolder } from './log-folder.ts';
import { type RunLaterOptions, reportRunLater } from './run-later-report.ts';
import { openUndoFolder, type UndoFolder } from './undo-folder.ts';

export interface OpenAgentOptions extends RunLaterOptions {
  readonly config: WhoaConfig;
  /** The name of the agent. Defaults to the first one of the configuration, otherwise to the built-in one. */
  readonly name?: string | undefined;
  readonly model?: string | undefined;
  readonly cwd: string;
  /** Where the command was started. */
  readonly surroundings: ConnectionContext;
  /** Whether each command runs in a PID namespace. */
  readonly isolate?: boolean;
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
  /** For its runner. */
  readonly hooks: UndoFolder['hooks'];
  /** How processes of commands are ended. */
  readonly technique: Technique;
}

/** The name of the built-in agent. */
export const OWN_NAME = 'assistant';
const INSTRUCTIONS = [
  "You work in a user's folder while the user watches you in a terminal. Use your tools to find out rather than guess.",
  'Say briefly what you are about to do. When a call was denied or interrupted, do not repeat it without being asked.',
].join(' ');

/** Opens an agent. Its packages are loaded on demand. */
export async function openAgent(options: OpenAgentOptions): Promise<OpenAgent> {
  const { config, cwd, surroundings, approve } = options;
  const { env } = surroundings;
  const hidden = hideOwnFolders(options);
  // Next to the tasks.
  const logFolder = join(dirname(getDefaultSqlitePath(env)), 'logs');
  const cleanups = createCleanupList({ name: 'the agent', onError: reportCleanup });
  const undo = openUndoFolder(env);
  cleanups.defer(() => undo[Symbol.asyncDispose]());
  const { ended } = await endLeftovers().catch(() => ({ ended: 0 }));
  if (ended > 0)
    process.stderr.write(`whoa: an earlier whoa was killed with its watchdog; its processes, now ended: ${ended}\n`);
  const containment = createContainment({ sandbox: { ...options.sandbox, hidden }, isolate: options.isolate ?? false });
  cleanups.defer(() => containment[Symbol.asyncDispose]());
  const setup: AgentSetup = {
    model: (name = options.model ?? config.model ?? defaultModelName(env)) => openModel(name, surroundings),
    cwd,
    tools: [
      createBashTool({ cwd, containment, keepLog: openLogFolder(logFolder) }),
      ...filesFor(options, hidden, undo),
      ...(options.tools ?? []),
    ],
    approve,
    defer: cleanups.defer,
  };
  try {
    const technique = await containment.ready();
    const chosen = chooseAgent(options) ?? ownAgent(config);
    const given = typeof chosen === 'function' ? await chosen(setup) : chosen;
    if (typeof given?.run !== 'function') throw new UsageError('agents: the function did not return an agent');
    const agent = reportRunLater(withRunOptions(given, options, undo), options);
    cleanups.defer(() => agent[Symbol.asyncDispose]());
    return { agent, hooks: undo.hooks, technique, [Symbol.asyncDispose]: () => cleanups[Symbol.asyncDispose]() };
  } catch (error) {
    await cleanups[Symbol.asyncDispose]();
    throw error;
  }
}

/** If commands may not write, file tools may not either. */
function filesFor({ cwd, contents, sandbox }: OpenAgentOptions, hidden: readonly string[], undo: UndoFolder): Tool[] {
  const tools = createFileTools({ root: createRoot(cwd, { hidden }), contents, undoFolder: undo.path });
  return sandbox.kind === 'read-only' ? tools.filter(({ effects }) => effects === 'read') : tools;
}

/** Limits the runs and redacts keys from the results of all tools, also for agents of the configuration. */
function withRunOptions(agent: Agent, { budgets, surroundings }: OpenAgentOptions, undo: UndoFolder): Agent {
  const redact = createKeyRedaction(surroundings.env);
  return {
    ...agent,
    run(input, options) {
      const run = agent.run(input, { redact, budgets, ...options });
      // A worker's task may continue after this run: its worker reports the end.
      if (options?.workId === undefined) run.outcome.then(() => undo.forget(run.id)).catch(() => {});
      return run;
    },
  };
}

/**
 * Returns our own folders below the folder of the agent. The next command would run code that an agent writes there, so they are
 * hidden from it. Throws in one of our own folders.
 */
function hideOwnFolders({ cwd, surroundings, sandbox }: OpenAgentOptions): readonly string[] {
  const real = resolveRealPath(cwd, '/');
  const folders = findOwnFolders(surroundings.env);
  const own = folders.find((folder) => `${real}/`.startsWith(`${folder}/`));
  if (own !== undefined) throw new UsageError(`${own} belongs to whoa itself; start the agent in another folder`);
  const below = folders.filter((folder) => folder.startsWith(`${real}/`));
  return sandbox.kind === 'none' ? below : below.filter(create);
}

/** What does not exist cannot be hidden from commands. Where we cannot create it, they cannot either. */
function create(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return true;
  } catch {
    return false;
  }
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

function ownAgent({ instructions = '', stopMode, contextTokens }: WhoaConfig): AgentFactory {
  return async ({ model: open, tools, approve }) => {
    const model = await open();
    return createAgent({
      name: OWN_NAME,
      model,
      tools,
      approve,
      compact: createCompact(model, contextTokens),
      ...(stopMode !== undefined && { stopMode }),
      instructions: [INSTRUCTIONS, instructions].join('\n\n').trim(),
    });
  };
}
