import { createLateResults, type LateResults } from '../stop/bounded/late-results.ts';
import { systemWorld } from '../stop/clock.ts';
import type { Approve } from '../tool/call/call.ts';
import { ExclusiveKeys } from '../tool/call/exclusive.ts';
import type { Tool } from '../tool/tool.ts';
import { hashVersion } from './agent-version.ts';
import { checkAsking } from './budget.ts';
import { readInput } from './history/given-messages.ts';
import type { RunInput } from './history/message.ts';
import { createModelPlanner } from './reply/model-planner.ts';
import { type Run, startRun } from './run.ts';
import { type AgentOptions, RESUMED, type RunOptions, readAgentOptions, readRunOptions } from './setup.ts';
import { listModels, MODELS, type WithModels } from './spending/models.ts';
import { checkPrices } from './spending/price.ts';

/** Runs a model or a planner with tools. Create one with `createAgent`. */
export interface Agent {
  readonly name: string;
  /** Tasks record it, so that a worker with another version knows what it resumes. */
  readonly version?: string;
  readonly tools: readonly Tool[];
  /** Work that was abandoned, across all runs. */
  readonly lateResults: LateResults;
  /** Starts a run immediately. Throws only for an invalid input or option; the run's `outcome` never rejects. */
  run(input: RunInput, options?: RunOptions): Run;
}

/**
 * Creates an agent: a model or a planner, its tools, and how it stops. It keeps no state between runs, except the
 * exclusive keys that abandoned calls still hold.
 *
 * @returns The agent. Each `run` is independent of the others.
 * @throws {@link SettingsError} when an option is not valid. It names the option.
 *
 * @example
 * ```ts
 * import { createAgent } from '@whoa/core';
 *
 * const agent = createAgent({ name: 'assistant', model, instructions: 'Answer briefly.' });
 * const run = agent.run('What is a token?');
 * setTimeout(() => run.cancel({ kind: 'user' }), 1_000);
 * const outcome = await run.outcome;
 * console.log(outcome.status);
 * ```
 */
export function createAgent(agentOptions: AgentOptions): Agent {
  const options = readAgentOptions(agentOptions);
  const {
    name,
    model,
    instructions,
    retry,
    tools = [],
    world = systemWorld,
    lateResults = createLateResults(),
  } = options;
  const keys = new ExclusiveKeys();
  const planner = options.planner ?? createModelPlanner({ model: model!, instructions, retry, tools, world });
  const agent = { ...options, planner, tools, world, lateResults, keys };
  const models = listModels(planner, tools);
  checkAsking(options.budgets);
  if (options.budgets?.usd !== undefined) checkPrices(options.budgets, models);
  const made: WithModels<Agent> & { readonly [RESUMED]: Approve | undefined } = {
    name,
    [MODELS]: models,
    [RESUMED]: options.approve,
    version: options.version ?? hashVersion(tools, instructions),
    tools,
    lateResults,
    run(input, given = {}) {
      const { budgets, ...runOptions } = readRunOptions(given);
      const limited = budgets === undefined ? agent : { ...agent, budgets: { ...agent.budgets, ...budgets } };
      checkAsking(limited.budgets);
      if (limited.budgets?.usd !== undefined && limited !== agent) checkPrices(limited.budgets, models);
      return startRun({ agent: limited, ...runOptions, input: readInput(input, 'input') });
    },
  };
  return made;
}
