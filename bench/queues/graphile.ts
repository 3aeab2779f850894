import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import type { Queue } from './queue.ts';

const NAME = 'trivial';
const silent = new Logger(() => () => {});

/** graphile-worker, which takes and completes jobs in batches. */
export const graphile: Queue = {
  async openCreator(url) {
    const utils = await makeWorkerUtils({ connectionString: url, logger: silent });
    await utils.migrate();
    return {
      async create() {
        await utils.addJob(NAME, { input: 'x' });
      },
      [Symbol.asyncDispose]: async () => {
        await utils.release();
      },
    };
  },
  async startWorker(url, { concurrency, work, onEnd, onClaims }) {
    const runner = await run({
      logger: silent,
      noHandleSignals: true,
      preset: {
        worker: {
          connectionString: url,
          concurrentJobs: concurrency,
          localQueue: { size: concurrency + 1 },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
        },
      },
      taskList: {
        [NAME]: async () => {
          onClaims(1);
          await work();
        },
      },
    });
    runner.events.on('job:complete', onEnd);
    return { [Symbol.asyncDispose]: () => runner.stop() };
  },
};
