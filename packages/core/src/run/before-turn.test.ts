import { expect, test } from 'vitest';
import { createVirtualWorld, flushMicrotasks } from '../testing/virtual-world.ts';
import { createAgent } from './agent.ts';
import { callTools, type Planner, reply } from './reply/planner.ts';
import type { RunOptions } from './setup.ts';

function start(beforeTurn: RunOptions['beforeTurn']) {
  const world = createVirtualWorld();
  const planned: number[] = [];
  const planner: Planner = {
    next: (_history, { turn }) => {
      planned.push(turn);
      return turn === 3 ? reply('done') : callTools([{ id: `${turn}`, tool: 'none', input: {} }]);
    },
  };
  const run = createAgent({ name: 'a', planner, world }).run('x', { beforeTurn });
  return { run, planned, world };
}

test('each turn waits for what is to be done before it', async () => {
  const asked: number[] = [];
  const { run, planned } = start(async (turn) => {
    expect(planned).toHaveLength(turn - 1);
    await flushMicrotasks();
    asked.push(turn);
  });
  expect((await run.outcome).status).toBe('success');
  expect([asked, planned]).toEqual([
    [1, 2, 3],
    [1, 2, 3],
  ]);
});

test('a cancel before a turn prevents it, even while it waits for work that ignores its signal', async () => {
  const { run, planned } = start((turn) => (turn === 2 ? new Promise(() => {}) : undefined));
  await flushMicrotasks();
  run.cancel();
  expect(await run.outcome).toMatchObject({ status: 'cancelled', isComplete: false, turns: 1 });
  expect(planned).toEqual([1]);
});

test('the run fails with the error that is thrown before a turn', async () => {
  const { run } = start(() => Promise.reject(new Error('no turn')));
  expect(await run.outcome).toMatchObject({ status: 'failed', error: { message: 'no turn' }, turns: 0 });
});
