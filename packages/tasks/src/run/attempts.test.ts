// Unfinished work of an attempt must not reach the next one, which may start in the same worker before the first has ended.
import { createAgent, defineTool, type Tool } from '@whoa/core';
import { callTools, type Planner, reply } from '@whoa/core/model';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { alterStore } from '../../../../test/tasks/altered-store.ts';
import type { Batch } from '../delivery/worker-store.ts';
import { createMemoryStore } from '../ledger/memory.ts';
import type { TaskStore } from '../store.ts';
import { createRunner } from './store-runner.ts';

const TASK = { tenant: 'acme', agent: 'assistant', input: 'hello' };

const tool = (name: string, effects: 'read' | 'write', execute: () => Promise<string>): Tool =>
  defineTool({ name, description: name, inputSchema: z.object({}), effects, execute }) as Tool;

/** Calls one tool until it has finished, then replies. */
function calling(name: string): Planner {
  let calls = 0;
  return {
    next: (history) => {
      const isDone = history.some((message) => message.role === 'tool' && message.state === 'finished');
      return Promise.resolve(isDone ? reply('done') : callTools([{ id: `c${++calls}`, tool: name, input: {} }]));
    },
  };
}

const readRef = async (store: TaskStore) => ({
  tenant: 'acme',
  id: (await store.list({ tenant: 'acme' })).tasks[0]!.id,
});

test('a message is marked as read in the write that shows it was: whoever takes the task over reads it once', async () => {
  const world = createVirtualWorld();
  const memory = createMemoryStore({ world });
  const batches: Batch[] = [];
  const store = alterStore(memory, (name, call, args) => {
    if (name === 'append') batches.push(args[1] as Batch);
    return call();
  });
  const slow = Promise.withResolvers<string>();
  const started = Promise.withResolvers<void>();
  const tools = [
    tool('slow', 'read', () => {
      started.resolve();
      return slow.promise;
    }),
  ];
  const agent = createAgent({ name: 'assistant', planner: calling('slow'), tools, world });
  const runner = createRunner({ store, agents: { assistant: agent }, world });
  const running = runner.run(TASK);
  await started.promise;
  const sent = await memory.send(await readRef(memory), { type: 'steer', message: 'be brief' });
  await flushMicrotasks();
  slow.resolve('ok');
  await running;
  const shown = batches.filter(({ events }) => JSON.stringify(events).includes('steer-delivered'));
  expect(shown).toMatchObject([{ done: [(sent as { number: number }).number] }]);
  await runner[Symbol.asyncDispose]();
});
