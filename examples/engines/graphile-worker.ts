// You keep graphile-worker: a job runs a task under the job's id. The task can be cancelled from anywhere, and the job ends cleanly.
//   node examples/engines/graphile-worker.ts postgres://localhost/app
import { type Job, Logger, run } from 'graphile-worker';
import { cancelElsewhere, createStoryteller, printTasks, tenant } from './scenario.ts';

const [url = 'postgres://localhost/postgres'] = process.argv.slice(2);
const { store, runner } = createStoryteller(url);
let losesItsAnswer = false;

const worker = await run({
  connectionString: url,
  noHandleSignals: true,
  logger: new Logger(() => () => {}),
  taskList: {
    async tell_story(payload, { job }) {
      const { about } = payload as { about: string };
      // A job may be delivered twice. Its task exists once: the second delivery finds it, and waits for it or returns its end.
      const task = { tenant, agent: 'storyteller', input: about, key: toKey(job) };
      const { status, msg } = await runner.run(task);
      if (losesItsAnswer) {
        losesItsAnswer = false;
        throw new Error('the connection broke before the worker heard of the end');
      }
      // Return after a cancel: graphile-worker would run a job that throws again. A failed task stays failed under this key.
      if (status === 'failed') throw new Error(msg);
    },
  },
});

/** Ids of jobs are numbers; other senders use keys too. */
function toKey({ id }: Pick<Job, 'id'>): string {
  return `graphile-worker ${id}`;
}

/** Adds a job, and prints how it ended. */
async function runJob(about: string, during?: (key: string) => Promise<void>): Promise<void> {
  const ended = new Promise<Job>((resolve) => worker.events.once('job:success', ({ job }) => resolve(job)));
  const key = toKey(await worker.addJob('tell_story', { about }, { maxAttempts: 3 }));
  await during?.(key);
  const { attempts } = await ended;
  console.log(
    `${about}: completed at delivery ${attempts}, the task is ${(await store.find({ tenant, key }))?.status}`,
  );
}

await runJob('a fox');
await runJob('a dragon', (key) => cancelElsewhere(url, key));
losesItsAnswer = true;
await runJob('a dog');
await printTasks(store);

// Stop the runner first: it returns its tasks to the store. Then the jobs can end.
await runner.stop();
await worker.stop();
await store[Symbol.asyncDispose]();
