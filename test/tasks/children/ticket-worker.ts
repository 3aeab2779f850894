// A worker behind BullMQ whose agent counts until it is stopped. Says when it begins, and when and why its token fires.
import { createBullmqEngine } from '@whoa/bullmq';
import { createAgent, sleep } from '@whoa/core';
import { createRunner, createTaskStore } from '@whoa/tasks';
import { Queue } from 'bullmq';

const [url = '', name = ''] = process.argv.slice(2);
const { hostname: host, port } = new URL(url);
const queue = new Queue(name, { connection: { host, port: Number(port) } });
const engine = createBullmqEngine({ store: createTaskStore(url), queue, agents: ['assistant'], reofferMs: 500 });
const agent = createAgent({
  name: 'assistant',
  planner: {
    async next(_history, { token, tell }) {
      token.onCancel((level, reason) => process.send!({ type: 'fired', level, reason }));
      process.send!({ type: 'working' });
      for (let count = 1; ; count++) {
        tell({ type: 'text', text: `${count} ` });
        await sleep(10, { clock: token.clock, token });
      }
    },
  },
});
const runner = createRunner({
  store: engine.store,
  agents: { assistant: agent },
  flushMs: 20,
  leaseMs: 1_000,
  pollMs: 200,
});
await engine.serve(runner, { lockDuration: 1_000, stalledInterval: 300 });
