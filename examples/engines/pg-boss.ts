// You keep pg-boss: a job runs a task under the job's id. The task can be cancelled from anywhere, and the job ends cleanly.
//   node examples/engines/pg-boss.ts postgres://localhost/app
import { setTimeout as wait } from 'node:timers/promises';
import { PgBoss } from 'pg-boss';
import { cancelElsewhere, createStoryteller, printTasks, tenant } from './scenario.ts';

const [url = 'postgres://localhost/postgres'] = process.argv.slice(2);
const { store, runner } = createStoryteller(url);
const boss = new PgBoss({ connectionString: url, application_name: 'story', monitorIntervalSeconds: 1 });
boss.on('error', (error) => console.error(error));
await boss.start();
await boss.createQueue('stories', { retryLimit: 3, retryDelay: 0 });

let losesItsAnswer = false;

await boss.work<{ about: string }>('stories', { pollingIntervalSeconds: 0.5 }, async ([job]) => {
  const { id, data } = job!;
  // A job may be delivered twice. Its task exists once: the second delivery finds it, and waits for it or returns its end.
  const { status, answer, msg } = await runner.run({ tenant, agent: 'storyteller', input: data.about, key: id });
  if (losesItsAnswer) {
    losesItsAnswer = false;
    throw new Error('the connection broke before pg-boss heard of the end');
  }
  // Return a cancelled task: pg-boss would run a job that throws again. A failed task stays failed under this key.
  if (status === 'failed') throw new Error(msg);
  return { status, answer };
});

/** Sends a job, and prints how it ended. */
async function runJob(about: string, during?: (jobId: string) => Promise<void>): Promise<void> {
  const id = (await boss.send('stories', { about }))!;
  await during?.(id);
  for (;;) {
    const [job] = await boss.findJobs<unknown>('stories', { id });
    if (job?.state === 'completed' || job?.state === 'failed') {
      const { status } = job.output as { status: string };
      console.log(`${about}: ${job.state} at delivery ${job.retryCount + 1}, the task is ${status}`);
      return;
    }
    await wait(100);
  }
}

await runJob('a fox');
await runJob('a dragon', (jobId) => cancelElsewhere(url, jobId));
losesItsAnswer = true;
await runJob('a dog');
await printTasks(store);

// Stop the runner first: it returns its tasks to the store. Then the jobs can end.
await runner.stop();
await boss.stop({ close: true });
await store[Symbol.asyncDispose]();
