import { getEventListeners } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { CancellationToken, createAgent, defineTool, guard } from '@whoa/core';
import { callTools, reply } from '@whoa/core/model';
import { expect, test } from 'vitest';
import { z } from 'zod';

const MB = 1_048_576;

/** Bytes on the heap after a full garbage collection. */
async function heap(): Promise<number> {
  for (let i = 0; i < 4; i++) {
    global.gc!();
    await turn();
  }
  return process.memoryUsage().heapUsed;
}

async function growth(work: () => unknown): Promise<number> {
  await work();
  const before = await heap();
  await work();
  return (await heap()) - before;
}

test('200,000 children made and disposed under one root leave nothing', async () => {
  const root = new CancellationToken({ name: 'root' });
  const grown = await growth(() => {
    for (let i = 0; i < 200_000; i++) {
      const child = root.child();
      child.onCancel(() => {});
      child[Symbol.dispose]();
    }
  });
  console.log(`heap growth: ${(grown / MB).toFixed(2)} MB`);
  expect(grown).toBeLessThanOrEqual(MB);
  expect(root.statistics).toEqual({ children: 0, listeners: 0 });
});

test('40,000 runs under one root that each used their signal leave nothing', { timeout: 300_000 }, async () => {
  const root = new CancellationToken({ name: 'root' });
  const tool = defineTool({
    name: 'listen',
    description: 'Listens and never takes its listener off.',
    inputSchema: z.object({}),
    effects: 'read',
    execute: (_input, { signal }) => {
      signal.addEventListener('abort', () => {});
      return 'ok';
    },
  });
  const agent = createAgent({
    name: 'agent',
    tools: [tool],
    planner: {
      next: (_history, { turn: number }) =>
        number === 1 ? callTools([{ id: 'c', tool: 'listen', input: {} }]) : reply('ok'),
    },
  });
  const grown = await growth(async () => {
    for (let i = 0; i < 20_000; i++) await agent.run('x', { token: root }).outcome;
  });
  console.log(`heap growth: ${(grown / MB).toFixed(2)} MB`);
  expect(grown).toBeLessThanOrEqual(MB);
  expect(root.statistics).toEqual({ children: 0, listeners: 0 });
  expect(getEventListeners(root.signal, 'abort')).toHaveLength(0);
});

test('40,000 guarded calls on one long-lived signal leave no listener on it', async () => {
  const { signal } = new AbortController();
  const grown = await growth(async () => {
    for (let i = 0; i < 20_000; i++) await guard(() => i, { name: 'quick', signal });
  });
  expect(grown).toBeLessThanOrEqual(MB);
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});
