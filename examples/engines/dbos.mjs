// You keep DBOS: a step of a workflow runs a task under the workflow's id. A cancel through Whoa takes milliseconds, and the
// workflow ends cleanly; a cancel through DBOS reaches the task within a second.
//   npm install --no-save --prefix examples/engines --ignore-scripts
//   node examples/engines/dbos.mjs postgres://localhost/app
import { DBOS } from '@dbos-inc/dbos-sdk';
import { cancelElsewhere, createStoryteller, printTasks, tenant, waitForText } from './scenario.ts';

const [url = 'postgres://localhost/postgres'] = process.argv.slice(2);
const { store, runner } = createStoryteller(url);
let losesItsAnswer = false;
let deliveries = 0;

async function runTask(about) {
  deliveries++;
  // A step may run twice. Its task exists once: the second run finds it, and waits for it or returns its end.
  const task = { tenant, agent: 'storyteller', input: about, key: DBOS.workflowID };
  // The signal fires when the workflow is cancelled: then the task is cancelled too.
  const { status, answer } = await runner.run(task, { signal: DBOS.stepStatus.cancelSignal });
  if (losesItsAnswer) {
    losesItsAnswer = false;
    throw new Error('the connection broke before DBOS heard of the end');
  }
  return { status, answer };
}

const tellStory = DBOS.registerWorkflow(
  (about) => DBOS.runStep(() => runTask(about), { name: 'agent', retriesAllowed: true, intervalSeconds: 0.1 }),
  { name: 'tellStory' },
);

DBOS.setConfig({ name: 'stories', systemDatabaseUrl: url, logLevel: 'error' });
await DBOS.launch();

/** Starts a workflow, and prints how it ended. */
async function runJob(about, during) {
  deliveries = 0;
  const handle = await DBOS.startWorkflow(tellStory)(about);
  const key = handle.workflowID;
  await during?.(key);
  await handle.getResult().catch(() => {}); // A cancelled workflow has no result.
  const { id } = await store.find({ tenant, key });
  const { status: task } = await runner.work({ tenant, id }); // Returns when the task has ended.
  const { status } = await handle.getStatus();
  console.log(`${about}: ${status} at delivery ${deliveries}, the task is ${task}`);
}

await runJob('a fox');
await runJob('a dragon', (key) => cancelElsewhere(url, key));
losesItsAnswer = true;
await runJob('a dog');
await runJob('a whale', async (key) => {
  await waitForText(store, key);
  await DBOS.cancelWorkflow(key);
});
await printTasks(store);

// Stop the runner first: it returns its tasks to the store. Then the workflows can end.
await runner.stop();
await DBOS.shutdown();
await store[Symbol.asyncDispose]();
