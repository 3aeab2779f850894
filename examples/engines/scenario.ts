// Shared by the examples of this folder: an agent behind a runner, and another process that cancels.
import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import { createAgent } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import { createRunner, createTaskStore, followTask, type Runner, type TaskStore } from '@whoa/tasks';

export const tenant = 'acme';

/** A runner whose agent writes a short story, then a long one, then a short one. */
export function createStoryteller(url: string): { store: TaskStore; runner: Runner } {
  const store = createTaskStore(url);
  const long = ['Once upon a time ', { waitMs: 60_000 }, 'it ended.'];
  const model = createScriptedModel([['A fox ran.'], long, ['A dog barked.'], long]);
  const runner = createRunner({ store, agents: { storyteller: createAgent({ name: 'storyteller', model }) } });
  return { store, runner };
}

/** Resolves when the task of a key has written something. */
export async function waitForText(store: TaskStore, key: string): Promise<{ tenant: string; id: string }> {
  for (;;) {
    const task = await store.find({ tenant, key });
    if (task === undefined) {
      await wait(20);
      continue;
    }
    for await (const seen of followTask(store, { tenant, id: task.id })) {
      if (seen.type === 'entry' && seen.event.type === 'text') return { tenant, id: task.id };
    }
    throw new Error('the task ended before it wrote anything');
  }
}

/** Cancels the task of a key once it has written something. Any process can: it shares only the store. */
export async function cancelElsewhere(url: string, key: string): Promise<void> {
  const elsewhere = createTaskStore(url);
  const task = await waitForText(elsewhere, key);
  const receipt = await elsewhere.cancel(task, { kind: 'user', by: 'ann' }, { mode: 'now' });
  assert.equal(receipt.result, 'accepted');
  await elsewhere[Symbol.asyncDispose]();
}

/** Prints all tasks, oldest first. */
export async function printTasks(store: TaskStore): Promise<void> {
  const { tasks } = await store.list({ tenant });
  console.log(
    `${tasks.length} tasks: ${tasks
      .map(({ status }) => status)
      .toReversed()
      .join(', ')}`,
  );
}
