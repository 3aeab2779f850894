import { Queue as BullQueue, createPostgresBackend, Worker } from 'bullmq';
import type { Queue } from './queue.ts';

const NAME = 'trivial';

/** BullMQ as its documentation shows it, on Redis or on Postgres. */
export const bullmq: Queue = {
  async openCreator(url) {
    const queue = openQueue(url);
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
    const worker = isRedis(url)
      ? new Worker(NAME, run, { connection: toConnection(url), concurrency })
      : new Worker(
          NAME,
          run,
          { connection: { connectionString: url, migrate: true }, concurrency },
          createPostgresBackend,
        );
    worker.on('completed', onEnd);
    await worker.waitUntilReady();
    return { [Symbol.asyncDispose]: () => worker.close() };
  },
};

function openQueue(url: string): Pick<BullQueue, 'add' | 'close' | 'waitUntilReady'> {
  if (isRedis(url)) return new BullQueue(NAME, { connection: toConnection(url) });
  return new BullQueue(NAME, { connection: { connectionString: url, migrate: true } }, createPostgresBackend);
}

function isRedis(url: string): boolean {
  return url.startsWith('redis');
}

export function toConnection(url: string): { host: string; port: number; maxRetriesPerRequest: null } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port), maxRetriesPerRequest: null };
}
