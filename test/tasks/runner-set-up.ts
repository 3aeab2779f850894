import { createAgent, defineTool, type Message, sleep, type Tool, type ToolContext } from '@whoa/core';
import { type Planner, reply, type Step } from '@whoa/core/model';
import { createVirtualWorld } from '@whoa/core/testing';
import { z } from 'zod';
import type { RunnerEvent } from '../../packages/tasks/src/delivery/worker-context.ts';
import { createMemoryStore } from '../../packages/tasks/src/ledger/memory.ts';
import type { TaskApprovals } from '../../packages/tasks/src/run/questions/approvals.ts';
import type { RunnerOptions } from '../../packages/tasks/src/run/runner.ts';
import { createRunner } from '../../packages/tasks/src/run/store-runner.ts';
import type { TaskFunction, TaskHandler } from '../../packages/tasks/src/run/work.ts';
import type { TaskStore } from '../../packages/tasks/src/store.ts';
import { alterStore } from './altered-store.ts';

const anything = z.object({}).loose();
export const TASK = { tenant: 'acme', agent: 'assistant', input: 'hello' };

type Execute = (input: Record<string, unknown>, context: ToolContext) => ReturnType<Tool['execute']>;

export function tool(name: string, execute: Execute, rest: Partial<Tool> = {}): Tool {
  return {
    ...defineTool({ name, description: name, inputSchema: anything, effects: 'read', execute }),
    ...rest,
  } as Tool;
}

/** Returns the nth step for the nth turn, counted by the history. */
export function scripted(...steps: ((history: readonly Message[]) => Step)[]): Planner {
  return {
    next: (history) => {
      const turns = history.filter(({ role }) => role === 'assistant').length;
      return steps[Math.min(turns, steps.length - 1)]!(history);
    },
  };
}

/** Resolves when the thing has happened. */
export function deferred<T = void>(): { promise: Promise<T>; happen: (value: T) => void } {
  let happen: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => (happen = resolve));
  return { promise, happen };
}

interface SetUp extends Partial<Omit<RunnerOptions, 'agents'>> {
  readonly work?: TaskHandler;
  readonly planner?: Planner;
  readonly tools?: readonly Tool[];
  readonly memory?: TaskStore;
}

export function setUp({ work, planner, tools = [], memory, ...options }: SetUp = {}) {
  const world = createVirtualWorld();
  const store = memory ?? createMemoryStore({ world });
  const events: RunnerEvent[] = [];
  const { approvals } = options;
  const agent = createAgent({
    name: 'assistant',
    planner: planner ?? scripted(() => reply('hi')),
    tools,
    world,
    ...(approvals && { approve: (approvals as TaskApprovals).approve }),
  });
  const runnerOptions: RunnerOptions = {
    agents: { assistant: work ?? agent },
    world,
    hooks: { any: (event) => event.type !== 'hook-error' && events.push(event) },
    ...options,
    store,
  };
  return { world, store, events, agent, runnerOptions, runner: createRunner(runnerOptions) };
}

export const readFirstId = async (store: TaskStore): Promise<string> =>
  (await store.list({ tenant: 'acme' })).tasks[0]!.id;

/** A store without hints: workers depend on orders and polls. */
export function storeWithoutHints(store: TaskStore): TaskStore {
  const nobody = { [Symbol.asyncDispose]: () => Promise.resolve() };
  return alterStore(store, (name, call) => (name === 'watch' ? Promise.resolve(nobody) : call()));
}

export const untilCancelled: TaskFunction = async ({ token }) => {
  await sleep(1_000_000, { clock: token.clock, token });
  return undefined;
};
