// A worker behind BullMQ whose agent counts until it is stopped.
import { createBullmqEngine } from '@whoa/bullmq';
import { createRunner, createTaskStore } from '@whoa/tasks';
import { Queue } from 'bullmq';
import { countingAgent } from './counting-agent.ts';

const [storeUrl = '', queueUrl = '', name = ''] = process.argv.slice(2);
const { hostname: host, port } = new URL(queueUrl);
const queue = new Queue(name, { connection: { host, port: Number(port) } });
const store = createTaskStore(storeUrl);
const engine = createBullmqEngine({ store, queue, agents: ['assistant'] });
const runner = createRunner({ store, agents: { assistant: countingAgent }, leaseMs: 1_000, pollIntervalMs: 200 });
await engine.serve(runner, { lockDuration: 1_000, stalledInterval: 300 });
