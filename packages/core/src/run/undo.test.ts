import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { createScriptedModel } from '../testing/scripted-model.ts';
import { createVirtualWorld, flushMicrotasks } from '../testing/virtual-world.ts';
import { defineTool, type Tool, type ToolDefinition } from '../tool/tool.ts';
import { createAgent } from './agent.ts';

const never = new Promise<never>(() => {});

function setUp(tools: readonly Partial<ToolDefinition<unknown>>[]) {
  const world = createVirtualWorld();
  const { clock } = world;
  const agent = createAgent({
    name: 'a',
    undoMs: 100,
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

test('a call that failed is not taken back, nor one whose tool does not say how', async () => {
  const undo = vi.fn();
  const book = { name: 'book', execute: () => Promise.reject(new Error('full')), undo };
  for (const tool of [book, { name: 'book', execute: () => 'booked' }]) {
    const run = setUp([tool]).agent.run('go');
    await run.outcome;
    expect(await run.undo()).toEqual([]);
  }
  expect(undo).not.toHaveBeenCalled();
});
