// You keep Restate: a handler runs a task under the id of its invocation. A cancel through Whoa takes milliseconds, and the
// invocation ends cleanly; a cancel through Restate stops the task too.
//   npm install --no-save --prefix examples/engines --ignore-scripts
//   npx --prefix examples/engines restate-server
//   node examples/engines/restate.mjs sqlite:stories.db http://localhost:8080 http://localhost:9070
import { once } from 'node:events';
import { createServer } from 'node:http2';
import * as restate from '@restatedev/restate-sdk';
import { cancelElsewhere, createStoryteller, printTasks, tenant, waitForText } from './scenario.ts';

const [url, ingress, admin] = process.argv.slice(2);
const { store, runner } = createStoryteller(url);
let losesItsAnswer = false;
let deliveries = 0;

async function runTask(about, key) {
  deliveries++;
  // A closure may run twice. Its task exists once: the second run finds it, and waits for it or returns its end.
  const { status, answer } = await runner.run({ tenant, agent: 'storyteller', input: about, key });
  if (losesItsAnswer) {
    losesItsAnswer = false;
    throw new Error('the connection broke before Restate heard of the end');
  }
  return { status, answer };
}

async function stopTask(key) {
  const { id } = await store.find({ tenant, key });
  await store.cancel({ tenant, id }, { kind: 'parent', via: 'restate' }, { mode: 'now' });
  await runner.work({ tenant, id }); // Returns when the task has ended.
}

const stories = restate.service({
  name: 'stories',
  // A story may take longer than the defaults of one and ten minutes.
  options: { inactivityTimeout: { hours: 1 }, abortTimeout: { hours: 2 } },
  handlers: {
    async tell(context, about) {
      const key = context.request().id;
      try {
        return await context.run('agent', () => runTask(about, key), { initialRetryInterval: 50 });
      } catch (error) {
        // A cancel interrupts the wait, not the closure: stop the task.
        if (error instanceof restate.CancelledError) await context.run('stop', () => stopTask(key));
        throw error;
      }
    },
  },
});

const endpoint = createServer(restate.createEndpointHandler({ services: [stories] })).listen(0, '127.0.0.1');
await once(endpoint, 'listening');

async function post(address, body, method = 'POST') {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(address, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return { isOk: response.ok, ...(await response.json().catch(() => ({}))) };
}

await post(`${admin}/deployments`, { uri: `http://127.0.0.1:${endpoint.address().port}` });

/** Starts an invocation, and prints how it ended. */
async function runJob(about, during) {
  deliveries = 0;
  const { invocationId: key } = await post(`${ingress}/stories/tell/send`, about);
  await during?.(key);
  const response = await fetch(`${ingress}/restate/invocation/${key}/attach`);
  const { status } = await store.find({ tenant, key });
  console.log(`${about}: ${response.status} at delivery ${deliveries}, the task is ${status}`);
}

await runJob('a fox');
await runJob('a dragon', (key) => cancelElsewhere(url, key));
losesItsAnswer = true;
await runJob('a dog');
await runJob('a whale', async (key) => {
  await waitForText(store, key);
  await post(`${admin}/invocations/${key}/cancel`, undefined, 'PATCH');
});
await printTasks(store);

// Stop the runner first: it returns its tasks to the store. Then the closures can end.
await runner.stop();
endpoint.close();
await store[Symbol.asyncDispose]();
