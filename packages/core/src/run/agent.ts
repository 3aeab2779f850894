import { systemWorld } from '../stop/clock.ts';
import { createLedger, type Ledger } from '../stop/ledger.ts';
import { ExclusiveKeys } from '../tool/exclusive.ts';
import type { Tool } from '../tool/tool.ts';
import type { RunInput } from './message.ts';
import { createModelPlanner } from './model-planner.ts';
import { type Run, startRun } from './run.ts';
import type { AgentOptions, RunOptions } from './setup.ts';

/** Something that can be given work. */
export interface Agent {
  readonly name: string;
  readonly tools: readonly Tool[];
  /** Work that was abandoned, across all runs. */
  readonly ledger: Ledger;
  /** Starts at once. It never throws and its outcome never rejects. */
  run(input: RunInput, options?: RunOptions): Run;
}

/** Creates an agent. It holds no state of its runs, except the exclusive keys that abandoned calls still hold. */
export function createAgent(options: AgentOptions): Agent {
  const { name, tools = [], world = systemWorld, ledger = createLedger() } = options;
  const keys = new ExclusiveKeys();
  const planner = options.planner ?? createModelPlanner({ ...options, tools, world });
  return {
    name,
    tools,
    ledger,
    run: (input, runOptions = {}) =>
      startRun({ agent: { ...options, planner, tools, world, ledger, keys }, input, ...runOptions }),
  };
}
