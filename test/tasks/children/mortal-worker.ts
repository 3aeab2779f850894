// Takes due tasks and works on them until it is killed. Logs the real effects of its tools, and the acknowledged appends.
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createAgent, defineTool } from '@whoa/core';
import type { InputSchema } from '@whoa/core/embed';
import { callTools, reply } from '@whoa/core/model';
import { createRunner } from '@whoa/tasks';
import { openStore } from '../open-store.ts';

const [file = '', folder = '', turns = ''] = process.argv.slice(2);
const anything: InputSchema<{ task?: string }> = {
  '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value: value as { task?: string } }) },
};
const effect = (line: string): void => appendFileSync(join(folder, 'effects.log'), `${line}\n`);

const tool = (name: string, replay: 'safe' | 'never') =>
  defineTool<{ task?: string }>({
    name,
    description: name,
    inputSchema: anything,
    inputJsonSchema: { type: 'object' },
    effects: 'read',
    replay,
    async execute({ task }, { callId }) {
      effect(`${replay} ${task} ${callId} begin`);
      await wait(5);
      effect(`${replay} ${task} ${callId} end`);
      return 'ok';
    },
  });

const agent = createAgent({
  name: 'assistant',
  tools: [tool('pay', 'never'), tool('look', 'safe')],
  planner: {
    next(history) {
      const task = String((history[0] as { content: string }).content);
      const turn = history.filter(({ role }) => role === 'assistant').length;
      if (turn >= Number(turns)) return reply(`done after ${turn} turns`);
      return callTools([
        { id: `pay-${turn}`, tool: 'pay', input: { task } },
        { id: `look-${turn}`, tool: 'look', input: { task } },
      ]);
    },
  },
});

const store = openStore(file, { maxAttempts: 10_000 });
const watched = Object.assign(Object.create(store) as typeof store, {
  append: async (...args: Parameters<typeof store.append>) => {
    const orders = await store.append(...args);
    const [{ id, epoch }, batch] = args;
    appendFileSync(join(folder, 'appends.log'), `${id} ${epoch} ${batch.after + batch.events.length}\n`);
    return orders;
  },
});
const others = [
  'take',
  'claim',
  'load',
  'heartbeat',
  'held',
  'sweep',
  'release',
  'finish',
  'cancel',
  'get',
  'read',
  'watch',
] as const;
for (const name of others) {
  Object.assign(watched, { [name]: (store[name] as (...args: unknown[]) => unknown).bind(store) });
}
const runner = createRunner({
  store: watched,
  agents: { assistant: agent },
  leaseMs: 400,
  pollIntervalMs: 40,
});
process.once('message', () => {
  runner[Symbol.asyncDispose]()
    .then(() => store[Symbol.asyncDispose]())
    .then(
      () => process.disconnect(),
      (error: unknown) => process.emitWarning(error as Error),
    );
});
await runner.serve({ concurrency: 4 });
process.send?.({ type: 'serving' });
