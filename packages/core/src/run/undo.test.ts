import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { createScriptedModel } from '../testing/scripted-model.ts';
import { createVirtualWorld, flushMicrotasks } from '../testing/virtual-world.ts';
import { defineTool, type Tool, type ToolDefinition } from '../tool/tool.ts';
import { createAgent } from './agent.ts';
import { callTools, reply } from './reply/planner.ts';
import { createAgentTool } from './sub-agent.ts';

const never = new Promise<never>(() => {});

function setUp(tools: readonly Partial<ToolDefinition<unknown>>[]) {
  const world = createVirtualWorld();
  const { clock } = world;
  const agent = createAgent({
    name: 'a',
    undoTimeoutMs: 100,
    world,
    model: createScriptedModel([[{ call: 'book' }], ['Booked.'], [{ call: 'hold' }]], { clock }),
    tools: tools.map((tool) =>
      defineTool({ description: 'x', inputSchema: z.unknown(), effects: 'write', ...tool } as ToolDefinition<unknown>),
    ) as Tool[],
  });
  return { clock, agent };
}

test("an undo's signal fires when the time limit that all undos share is over", async () => {
  let heard: AbortSignal | undefined;
  const { agent, clock } = setUp([
    {
      name: 'book',
      execute: () => 'booked',
      undo: (_, { signal }) => {
        heard = signal;
        return never;
      },
    },
  ]);
  const undone = agent.run('go').undo();
  await clock.advance(99);
  expect(heard?.aborted).toBe(false);
  await clock.advance(1);
  expect(await undone).toMatchObject([{ tool: 'book', state: 'unknown' }]);
  expect(heard?.reason).toMatchObject({ cause: { kind: 'deadline', message: 'undo took longer than 100 ms' } });
});

test('an undo that cannot have its key in time has failed, and did not begin', async () => {
  const undo = vi.fn();
  const exclusive = () => ['the account'];
  const { agent, clock } = setUp([
    { name: 'book', execute: () => 'booked', exclusive, undo },
    { name: 'hold', execute: () => never, exclusive },
  ]);
  const first = agent.run('go');
  await first.outcome;
  agent.run('go');
  await flushMicrotasks();
  const undone = first.undo();
  await clock.advance(100);
  expect(await undone).toMatchObject([{ tool: 'book', state: 'failed' }]);
  expect(undo).not.toHaveBeenCalled();
});

test('failed calls are not undone, nor calls of tools without undo', async () => {
  const undo = vi.fn();
  const book = { name: 'book', execute: () => Promise.reject(new Error('full')), undo };
  for (const tool of [book, { name: 'book', execute: () => 'booked' }]) {
    const run = setUp([tool]).agent.run('go');
    await run.outcome;
    expect(await run.undo()).toEqual([]);
  }
  expect(undo).not.toHaveBeenCalled();
});

/** Tools that record their effects and undos; calls that share the key `k` run one at a time. */
function setUpOrder() {
  const log: string[] = [];
  const write = defineTool({
    name: 'write',
    description: 'Writes',
    inputSchema: z.object({ n: z.string(), after: z.custom<Promise<unknown>>().optional() }),
    execute: async ({ n, after }) => {
      await after;
      log.push(`did ${n}`);
      return 'ok';
    },
    undo: ({ input }) => void log.push(`undid ${input.n}`),
  });
  return { log, write: write as Tool };
}

test('calls are undone in the reverse of the order in which they ended, not in the order of the list', async () => {
  const { log, write } = setUpOrder();
  const slow = Promise.withResolvers<void>();
  const agent = createAgent({
    name: 'a',
    tools: [write],
    planner: {
      next(_, { turn }) {
        if (turn > 1) return reply('ok');
        return callTools([
          { id: 'child', tool: 'write', input: { n: 'child' }, dependsOn: ['parent'] },
          { id: 'parent', tool: 'write', input: { n: 'parent' } },
          { id: 'slow', tool: 'write', input: { n: 'slow', after: slow.promise } },
          { id: 'quick', tool: 'write', input: { n: 'quick' } },
        ]);
      },
    },
  });
  const run = agent.run('go');
  await expect.poll(() => log).toContain('did quick');
  slow.resolve();
  const undone = await run.undo();
  const did = log.slice(0, 4).map((line) => line.replace('did ', ''));
  expect(did).toEqual(['parent', 'quick', 'slow', 'child']);
  expect(log.slice(4)).toEqual(did.toReversed().map((n) => `undid ${n}`));
  expect(undone.map(({ callId }) => callId)).toEqual(did.toReversed());
});

test('calls of a sub-agent are undone in the same order, between those of its parent', async () => {
  const { log, write } = setUpOrder();
  const [in1, out1, in2] = [1, 2, 3].map(() => Promise.withResolvers<void>());
  const acting = (name: string, calls: readonly object[], tools: readonly Tool[]) =>
    createAgent({
      name,
      tools,
      planner: {
        next: (_, { turn }) =>
          calls[turn - 1] === undefined ? reply('ok') : callTools(calls[turn - 1] as Parameters<typeof callTools>[0]),
      },
    });
  const call = (n: string, after: Promise<unknown>) => ({ id: n, tool: 'write', input: { n, after } });
  const inner = acting('inner', [[call('in1', in1!.promise)], [call('in2', in2!.promise)]], [write]);
  const helper = createAgentTool(inner, { name: 'helper', description: 'Helps' }) as Tool;
  const asked = { id: 'h', tool: 'helper', input: { task: 'go' } };
  const events: string[] = [];
  const run = acting('outer', [[asked, call('out1', out1!.promise)]], [write, helper]).run('go', {
    hooks: {
      'undo-start': ({ callId }) => events.push(`start ${callId}`),
      'undo-end': ({ callId, state }) => events.push(`${state} ${callId}`),
    },
  });
  for (const [step, n] of [
    [in1, 'in1'],
    [out1, 'out1'],
    [in2, 'in2'],
  ] as const) {
    step!.resolve();
    await expect.poll(() => log).toContain(`did ${n}`);
  }
  const undone = await run.undo();
  expect(log.slice(3)).toEqual(['undid in2', 'undid out1', 'undid in1']);
  expect(events).toEqual(['start h', 'start out1', 'undone out1', 'undone h']);
  expect(undone).toMatchObject([
    { callId: 'out1', state: 'undone' },
    { callId: 'h', state: 'undone' },
  ]);
});
