import type { Agent, CancellationToken, Tool } from '@whoa/core';
import { callTools, reply } from '@whoa/core/model';
import type { TaskApprovals, Work } from '@whoa/tasks';
import type { SimulatedProcess } from './process.ts';
import type { Chance } from './random.ts';

type Core = typeof import('@whoa/core');

/** What a tool of a task did, in which process. */
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
  readonly chance: Chance;
  readonly onEffect: (effect: Effect) => void;
  /** A task has killed the process. */
  readonly onKilled: () => void;
  /** Then there is an agent that asks before it wires. */
  readonly approvals?: TaskApprovals | undefined;
}

/** Everything that tasks of the simulation can run: well-behaved, slow, deaf and hostile. */
export function createWork({
  core,
  process,
  chance,
  onEffect,
  onKilled,
  approvals,
}: RunTaskOptions): Readonly<Record<string, Work>> {
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
        await sleep(chance.below(50));
        return 'quick';
      },
    }),
    tool('slow', {
      execute: async (_input: unknown, { callId, token }: { callId: string; token: never }) => {
        begin('slow', callId);
        await sleep(2_000 + chance.below(4_000), token);
        onEffect({ process: process.name, tool: 'slow', callId, phase: 'end' });
        return 'slow';
      },
    }),
    tool('deaf', {
      execute: async (_input: unknown, { callId }: { callId: string }) => {
        begin('deaf', callId);
        await sleep(chance.below(20_000));
        return 'deaf';
      },
    }),
    tool('hostile', {
      execute: async (_input: unknown, { callId }: { callId: string }) => {
        begin('hostile', callId);
        await sleep(chance.below(20));
        throw Object.assign(new Error('hostile'), { message: { toString: null } });
      },
    }),
    tool('pay', {
      whenCancelled: 'finish',
      timeoutMs: 5_000,
      execute: async (_input: unknown, { callId }: { callId: string }) => {
        begin('pay', callId);
        await sleep(chance.below(1_000));
        return 'paid';
      },
      undo: (_result: unknown, { callId }: { callId: string }) => {
        onEffect({ process: process.name, tool: 'pay', callId, phase: 'undo' });
        return sleep(chance.below(100));
      },
    }),
  ];
  const wire = tool('wire', {
    effects: 'write',
    execute: async (_input: unknown, { callId, token }: { callId: string; token: never }) => {
      begin('wire', callId);
      await sleep(chance.below(500), token);
      return 'wired';
    },
  });
  let plans = 0;
  const createAssistant = (name: string, its: readonly Tool[], more: object = {}): Agent =>
    core.createAgent({
      name,
      world,
      tools: its,
      ...more,
      planner: {
        async next(_history, { turn, token }) {
          await sleep(chance.below(300), token);
          if (turn > 1 + chance.below(3)) return reply(`said by ${process.name}`);
          const names = Array.from({ length: 1 + chance.below(2) }, () => chance.pick(its).name);
          const plan = ++plans;
          return callTools(names.map((called, i) => ({ id: `${process.name}-${plan}-${i}`, tool: called, input: {} })));
        },
      },
    });
  return {
    assistant: createAssistant('assistant', tools),
    ...(approvals && {
      careful: createAssistant('careful', [tools[0]!, wire], { approve: approvals.approve }),
    }),
    brief: async ({ token }) => {
      await sleep(chance.below(100), token);
      return 'done';
    },
    long: async ({ token, journal }) => {
      for (let step = 0; step < 4; step++) {
        await sleep(chance.below(3_000), token);
        await journal({ type: 'step', step });
      }
      return 'done';
    },
    broken: () => Promise.reject(new Error('broken')),
    mute: async ({ token }) => {
      await sleep(2_000 + chance.below(6_000), token);
      return 'done';
    },
    poison: () => {
      process.die();
      onKilled();
      return new Promise(() => {});
    },
  };
}
