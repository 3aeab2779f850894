// Every way to cancel a task: an event in its process, your own checker, a store for cancels, and a registry.
//   node examples/cancel-tasks.ts
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createAgent } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import { createRunner, createTaskStore } from '@whoa/tasks';
import {
  createCancellationRegistry,
  createCancellationStore,
  createCancelMessage,
  createEventChannel,
} from '@whoa/tasks/compat';

// The store is chosen by its configuration: memory, sqlite, redis or postgres.
const folder = mkdtempSync(join(tmpdir(), 'whoa-'));
const config = { backend: 'sqlite', file: join(folder, 'tasks.db') } as const;
const store = createTaskStore(config);
const tenant = 'acme';

const channel = createEventChannel();
const unwanted = new Set<string | undefined>(); // This would be your own table.
// Whoever knows a task's id can ask for its cancel here. On redis: { backend: 'redis', url: 'redis://127.0.0.1:6379' }.
const cancellationConfig = { backend: 'sqlite', file: join(folder, 'cancellations.db') } as const;
const cancellations = createCancellationStore(cancellationConfig);
const story = ['Once upon a time ', { waitMs: 60_000 }, 'it ended.'];
const storyteller = createAgent({ name: 'storyteller', model: createScriptedModel([story, story, story, story]) });
const runner = createRunner({
  store,
  agents: { storyteller },
  channel,
  cancellationChecker: (_taskId, { key }) => unwanted.has(key),
  cancellations,
  hooks: { 'checker-error': ({ id, error }) => console.error(`the checker failed for ${id}`, error) },
});

/** Starts a job, and calls `onStarted` as soon as it has started. */
async function runJob(key: string, onStarted: (taskId: string) => unknown): Promise<void> {
  const receipt = await store.create({ tenant, agent: 'storyteller', input: 'Tell me a story', key });
  assert(receipt.result === 'created');
  const { id } = receipt.task;
  const answer = await runner.runExisting({ tenant, id }, { onEvent: ({ type }) => type === 'text' && onStarted(id) });
  console.log(`${key}: ${answer.status}`);
}

// 1. An event. It selects a task, a conversation or all tasks of a tenant, and stops them now.
await runJob('by event', (taskId) => channel.emit(createCancelMessage({ tenant, taskId }, { msg: 'cancel by user' })));

// 2. A checker. It is called before the work, before each turn and wave, and once a second in between.
await runJob('by checker', () => unwanted.add('by checker'));
unwanted.add('never begun');
await runJob('never begun', () => assert.fail('it must not begin'));

// 3. A store for cancels. It could be opened in another process; it knows nothing of the task store.
const frontend = createCancellationStore(cancellationConfig);
await runJob('by cancellation store', async (taskId) => {
  assert.equal((await frontend.get(taskId))?.status, 'running');
  const receipt = await frontend.cancel(taskId, 'no longer needed');
  assert.equal(receipt.result, 'set');
});

// 4. A registry. It could be in another process: only the store is shared.
const sharedStore = createTaskStore(config);
const elsewhere = createCancellationRegistry({ store: sharedStore, tenant });
await runJob('by registry', () => elsewhere.cancel('by registry', { message: 'user request' }));

// 5. Your own loop. The registry keeps its lease; the loop stops when its token fires, and reports its end.
const registry = createCancellationRegistry({ store, tenant });
const work = await registry.register({ key: 'own loop' });
assert(work.result === 'registered');
for (let row = 1; !work.token.isCancelled; row++) {
  if (row === 3) await elsewhere.cancel('own loop', { message: 'wrong file' });
  await wait(20);
}
console.log(`own loop: ${(await elsewhere.get('own loop'))?.status}`);
await work.setStatus('cancelled');

// Any process can read how they ended, for as long as the store keeps tasks.
for (const key of ['by event', 'by checker', 'never begun', 'by cancellation store', 'by registry', 'own loop']) {
  const known = await elsewhere.get(key);
  assert(known?.status === 'cancelled' && (await elsewhere.isCancelled(key)));
  console.log(`${key}: ${known.status}, ${known.reason?.message ?? `via ${known.reason?.via}`}`);
}

for (const one of [registry, elsewhere, runner, sharedStore, store, cancellations, frontend])
  await one[Symbol.asyncDispose]();
rmSync(folder, { recursive: true });
