// BullMQ alone: a job runs the agent, and a Relay carries cancels to the worker that has the job.
import { Queue, QueueEvents, Relay, UnrecoverableError, Worker } from 'bullmq';
import { createBooker, SILENCE_TIMEOUT_MS } from './agent.ts';
import type { Side, StartWorker } from './side.ts';

const QUEUE = 'bookings';
const CANCELS = 'cancels';

export const startBullmqWorker: StartWorker = async (url, folder) => {
  const connection = toConnection(url);
  const booker = createBooker(folder);
  const worker = new Worker<{ request: string }, string>(
    QUEUE,
    async ({ data }, _lock, signal) => {
      const { status, text } = await booker.run(data.request, { ...(signal && { signal }) }).outcome;
      // Without this, BullMQ would try a cancelled job again.
      if (status === 'cancelled') throw new UnrecoverableError('cancelled');
      return text;
    },
    {
      connection,
      concurrency: 10,
      lockDuration: SILENCE_TIMEOUT_MS,
      stalledInterval: SILENCE_TIMEOUT_MS / 2,
      maxStalledCount: 5,
    },
  );
  worker.on('error', () => {});
  const relay = new Relay({ connection, namespace: QUEUE });
  await relay.subscribe<string>(CANCELS, ({ data }) => {
    worker.cancelJob(data);
  });
  await worker.waitUntilReady();
};

export async function openBullmq(url: string): Promise<Side> {
  const connection = toConnection(url);
  const queue = new Queue<{ request: string }, string>(QUEUE, { connection });
  // Each job with a waiting caller listens to it.
  queue.setMaxListeners(0);
  const events = new QueueEvents(QUEUE, { connection });
  const relay = new Relay({ connection, namespace: QUEUE });
  await Promise.all([queue.waitUntilReady(), events.waitUntilReady(), relay.waitUntilReady()]);
  return {
    name: 'BullMQ',
    // A queue can drop a waiting job with the same name. It has no rule for one that already runs.
    async start(request) {
      return (await queue.add('booking', { request })).id!;
    },
    async cancel(id) {
      const { nodes } = await relay.publish(CANCELS, id);
      return `sent to ${nodes} workers`;
    },
    async ended(id) {
      const job = (await queue.getJob(id))!;
      try {
        return { status: 'completed', answer: await job.waitUntilFinished(events) };
      } catch (error) {
        return { status: `failed: ${(error as Error).message}` };
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([relay.close(), events.close(), queue.close()]);
    },
  };
}

function toConnection(url: string): { host: string; port: number; maxRetriesPerRequest: null } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port), maxRetriesPerRequest: null };
}
