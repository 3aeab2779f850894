import { Queue as BullQueue, Worker } from 'bullmq';
import type { Queue } from './queue.ts';

const NAME = 'trivial';

/** BullMQ as its documentation shows it. */
export const bullmq: Queue = {
  async openCreator(url) {
    const queue = new BullQueue(NAME, { connection: connectionOf(url) });
    await queue.waitUntilReady();
    return {
      async create() {
        await queue.add(NAME, { input: 'x' });
      },
      [Symbol.asyncDispose]: () => queue.close(),
    };
  },
  async startWorker(url, { concurrency, work, onEnd, onClaims }) {
    const run = async (): Promise<string> => {
      onClaims(1);
      await work();
      return 'done';
    };
    const worker = new Worker(NAME, run, { connection: connectionOf(url), concurrency });
    worker.on('completed', onEnd);
    await worker.waitUntilReady();
    return { [Symbol.asyncDispose]: () => worker.close() };
  },
};

function connectionOf(url: string): { host: string; port: number; maxRetriesPerRequest: null } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port), maxRetriesPerRequest: null };
}
