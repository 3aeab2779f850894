// You keep Temporal: an activity runs a task under the ids of its workflow and itself. A cancel through Whoa takes milliseconds;
// a cancel through Temporal arrives with a heartbeat. This runs the activity in Temporal's test environment, without a server.
//   npm install --no-save --prefix examples/engines --ignore-scripts
//   node examples/engines/temporal.mjs sqlite:stories.db
import { once } from 'node:events';
import { Context } from '@temporalio/activity';
import { ActivityCancellationDetails } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { CancellationToken } from '@whoa/core';
import { cancelElsewhere, createStoryteller, printTasks, tenant, waitForText } from './scenario.ts';

const [url = 'sqlite:stories.db'] = process.argv.slice(2);
const { store, runner } = createStoryteller(url);

/** Converts the cause of Temporal's cancel to a Whoa reason. `undefined`: the task continues elsewhere. */
function toReason({ workerShutdown, paused, reset, timedOut, notFound } = {}) {
  if (workerShutdown || paused || reset) return undefined;
  if (timedOut) return { kind: 'deadline', via: 'temporal' };
  if (notFound) return { kind: 'parent', via: 'temporal', message: 'the workflow is gone' };
  return { kind: 'user', via: 'temporal' };
}

async function tellStory(about) {
  const context = Context.current();
  const { workflowExecution, activityId, heartbeatTimeoutMs = 30_000 } = context.info;
  // An activity may run twice. Its task exists once: the second attempt finds it, and waits for it or returns its end.
  const key = `${workflowExecution.workflowId} ${workflowExecution.runId} ${activityId}`;
  const token = new CancellationToken();
  const onCancel = () => {
    const reason = toReason(context.cancellationDetails);
    // On a shutdown hand the task back: the next attempt, on another worker, continues it.
    if (reason === undefined) runner.stop().catch(console.error);
    else token.cancel(reason, { mode: 'now' });
  };
  context.cancellationSignal.addEventListener('abort', onCancel);
  if (context.cancellationSignal.aborted) onCancel();
  // Temporal reports a cancel only in response to a heartbeat.
  const beats = setInterval(() => context.heartbeat(), heartbeatTimeoutMs / 3);
  try {
    const { status, answer } = await runner.run({ tenant, agent: 'storyteller', input: about, key }, { token });
    // Temporal expects its own error if it requested the cancel.
    if (status === 'cancelled' && context.cancellationSignal.aborted) await context.cancelled;
    return { status, answer };
  } finally {
    clearInterval(beats);
    context.cancellationSignal.removeEventListener('abort', onCancel);
  }
}

/** Runs the activity as a worker does, and prints how it ended. */
async function runJob(about, { attempt = 1, during } = {}) {
  const workflowExecution = { workflowId: about, runId: 'one' };
  const environment = new MockActivityEnvironment({
    attempt,
    activityId: '1',
    workflowExecution,
    heartbeatTimeoutMs: 30,
  });
  const activity = environment.run(tellStory, about);
  const key = `${about} one 1`;
  await during?.(key, environment);
  const ended = await activity.then(
    () => 'completed',
    ({ name }) => name,
  );
  const { status, outcome } = await store.find({ tenant, key });
  const why = outcome.reason === undefined ? '' : `, reason ${outcome.reason.kind}`;
  console.log(`${about}: ${ended} at delivery ${attempt}, the task is ${status}${why}`);
}

await runJob('a fox');
await runJob('a dragon', { during: (key) => cancelElsewhere(url, key) });
await runJob('a dog');
await runJob('a dog', { attempt: 2 }); // As if Temporal had not heard of the end.
await runJob('a whale', {
  async during(key, environment) {
    await waitForText(store, key);
    await once(environment, 'heartbeat');
    environment.cancel('CANCELLED', new ActivityCancellationDetails({ timedOut: true }));
  },
});
await printTasks(store);

await runner.stop();
await store[Symbol.asyncDispose]();
