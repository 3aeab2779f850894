import { PgBoss } from 'pg-boss';
import type { Queue } from './queue.ts';

const NAME = 'trivial';

/** pg-boss, a batch of jobs at a time, woken by the database. */
export const pgBoss: Queue = {
  async openCreator(url) {
    const boss = await open(url);
    await boss.createQueue(NAME, { notify: true });
    return {
      async create() {
        await boss.send(NAME, { input: 'x' });
      },
      [Symbol.asyncDispose]: () => boss.stop({ graceful: false }),
    };
  },
  async startWorker(url, { concurrency, work, onEnd, onClaims }) {
    const boss = await open(url);
    await boss.createQueue(NAME, { notify: true });
    await boss.work(NAME, { batchSize: concurrency, pollingIntervalSeconds: 0.5 }, async (jobs) => {
      onClaims(jobs.length);
      await Promise.all(jobs.map(work));
      // They end together with the batch, a moment later.
      for (let i = 0; i < jobs.length; i++) onEnd();
    });
    return { [Symbol.asyncDispose]: () => boss.stop({ graceful: false }) };
  },
};

async function open(url: string): Promise<PgBoss> {
  const boss = new PgBoss({ connectionString: url, useListenNotify: true, supervise: false, schedule: false });
  boss.on('error', (error) => console.error(error));
  await boss.start();
  return boss;
}
