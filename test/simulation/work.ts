import type { Agent, CancellationToken, Message, Tool } from '@whoa/core';
import { callTools, reply } from '@whoa/core/model';
import type { TaskApprovals, TaskHandler } from '@whoa/tasks';
import { ANSWERED_TOOLS, answerSchema } from './answers.ts';
import type { SimulatedProcess } from './process.ts';
import type { Provider } from './provider.ts';
import type { Random } from './random.ts';

type Core = typeof import('@whoa/core');

/** An effect of a tool, and the process that had it. */
export interface Effect {
  readonly process: string;
  readonly tool: string;
  readonly callId: string;
  /** `end`: it was never asked to stop. */
  readonly phase: 'begin' | 'end' | 'undo';
}

interface RunTaskOptions {
  readonly core: Core;
  readonly process: SimulatedProcess;
  readonly random: Random;
  readonly onEffect: (effect: Effect) => void;
  /** Called when a task has killed the process. */
  readonly onKilled: () => void;
  /** Called when the model of an agent with questions is called. */
  readonly onAsked: (history: readonly Message[]) => void;
  /** Adds an agent that needs approval before it wires, and one whose calls are answered. */
  readonly approvals?: TaskApprovals | undefined;
  /** The agent that needs approval has sub-agents, two deep. */
  readonly isNested?: boolean;
  /** Consulted by its agents' models first. */
  readonly provider?: Provider | undefined;
}

/** Everything that simulated tasks can run: well-behaved, slow, unresponsive and hostile. */
export function createWork({
  core,
  process,
  random,
  onEffect,
  onKilled,
  onAsked,
  approvals,
  provider,
  isNested = false,
}: RunTaskOptions): Readonly<Record<string, TaskHandler>> {
  const { world } = process;
  const never = new core.CancellationToken({ name: 'never', clock: world.clock });
  const sleep = (ms: number, token?: CancellationToken): Promise<void> =>
    core.sleep(ms, { clock: world.clock, token: token ?? never });
  const anything = { '~standard': { version: 1, vendor: 'simulation', validate: (value: unknown) => ({ value }) } };
  const tool = (name: string, rest: object): Tool =>
    core.defineTool({
      name,
      description: name,
      inputSchema: anything,
      effects: 'read',
      ...rest,
    } as unknown as Parameters<Core['defineTool']>[0]) as Tool;
  const begin = (name: string, callId: string): void =>
    onEffect({ process: process.name, tool: name, callId, phase: 'begin' });
  const tools = [
    tool('quick', {
      replay: 'safe',
      execute: async (_input: unknown, { callId }: { callId: string }) => {
        begin('quick', callId);
        await sleep(random.below(50));
        return 'quick';
      },
    }),
    tool('slow', {
      execute: async (_input: unknown, { callId, token }: { callId: string; token: never }) => {
        begin('slow', callId);
        await sleep(2_000 + random.below(4_000), token);
        onEffect({ process: process.name, tool: 'slow', callId, phase: 'end' });
        return 'slow';
      },
    }),
    tool('deaf', {
      execute: async (_input: unknown, { callId }: { callId: string }) => {
        begin('deaf', callId);
        await sleep(random.below(20_000));
        return 'deaf';
      },
    }),
    tool('hostile', {
      execute: async (_input: unknown, { callId }: { callId: string }) => {
        begin('hostile', callId);
        await sleep(random.below(20));
        throw Object.assign(new Error('hostile'), { message: { toString: null } });
      },
    }),
    tool('pay', {
      whenCancelled: 'finish',
      timeoutMs: 5_000,
      execute: async (_input: unknown, { callId }: { callId: string }) => {
        begin('pay', callId);
        await sleep(random.below(1_000));
        return 'paid';
      },
      undo: (_result: unknown, { callId }: { callId: string }) => {
        onEffect({ process: process.name, tool: 'pay', callId, phase: 'undo' });
        return sleep(random.below(100));
      },
    }),
  ];
  const wire = tool('wire', {
    effects: 'write',
    execute: async (_input: unknown, { callId, token }: { callId: string; token: never }) => {
      begin('wire', callId);
      await sleep(random.below(500), token);
      return 'wired';
    },
  });
  const answered = ANSWERED_TOOLS.map(({ name, ...rest }) =>
    tool(name, { ...rest, ...(rest.answeredBy === 'user' && { answerSchema }) }),
  );
  let plans = 0;
  const createAssistant = (name: string, its: readonly Tool[], more: object = {}): Agent =>
    core.createAgent({
      name,
      world,
      tools: its,
      ...more,
      planner: {
        async next(history, { turn, token, emit }) {
          await sleep(random.below(300), token);
          provider?.request(history, emit);
          const isAsking = its.some(({ answeredBy }) => answeredBy !== undefined);
          if (isAsking) onAsked(history);
          // A resumed run counts its turns from the start, and one with questions is parked at each.
          if ((isAsking ? countTurns(history) : turn) > 1 + random.below(3)) return reply(`said by ${process.name}`);
          const names = Array.from({ length: 1 + random.below(2) }, () => random.pick(its).name);
          const plan = ++plans;
          return callTools(names.map((called, i) => ({ id: `${process.name}-${plan}-${i}`, tool: called, input: {} })));
        },
      },
    });
  const careful = [tools[0]!, wire];
  const helper = (its: readonly Tool[], name: string): Tool => {
    const inner = createAssistant(name, its);
    const help = core.createAgentTool(inner, { description: name });
    // The models of the simulation give no input.
    const given: Tool = {
      ...help,
      inputSchema: anything,
      execute: (_: unknown, context: Parameters<typeof help.execute>[1]) => help.execute({ task: 'help' }, context),
    } as never;
    return given;
  };
  const helped = isNested ? [...careful, helper([...careful, helper(careful, 'inner')], 'helper')] : careful;
  return {
    assistant: createAssistant('assistant', tools),
    ...(approvals && {
      careful: createAssistant('careful', helped, { approve: approvals.approve }),
      asking: createAssistant('asking', [tools[0]!, ...answered], { approve: approvals.approve }),
    }),
    brief: async ({ token }) => {
      await sleep(random.below(100), token);
      return 'done';
    },
    long: async ({ token, journal }) => {
      for (let step = 0; step < 4; step++) {
        await sleep(random.below(3_000), token);
        await journal({ type: 'step', step });
      }
      return 'done';
    },
    broken: () => Promise.reject(new Error('broken')),
    mute: async ({ token }) => {
      await sleep(2_000 + random.below(6_000), token);
      return 'done';
    },
    poison: () => {
      process.die();
      onKilled();
      return new Promise(() => {});
    },
  };
}

/** Counts the replies since the user's last message, including the next one. */
function countTurns(history: readonly Message[]): number {
  const asked = history.findLastIndex((message) => message.role === 'user' && message.isNotice !== true);
  return 1 + history.slice(asked).filter(({ role }) => role === 'assistant').length;
}
