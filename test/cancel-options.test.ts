// A misspelt option of a cancel would stop something less hard than was meant, so every way to cancel refuses it.
import { CancellationToken, createAgent, createConversations, createRuntime } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import { cancelTasks, createStoreConversations, createTaskStore } from '@whoa/tasks';
import { createCancellationRegistry, createCancelMessage, createEventChannel } from '@whoa/tasks/compat';
import { expect, onTestFinished, test } from 'vitest';

const wrong = { level: 'kill' } as object;

function createTestAgent() {
  return createAgent({ name: 'a', model: createScriptedModel([['ok']]) });
}

function openStore() {
  const store = createTaskStore('memory');
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

async function endedRun() {
  const run = createTestAgent().run('hello');
  await run.outcome;
  return run;
}

const ways: Readonly<Record<string, () => unknown>> = {
  'token.cancel': () => new CancellationToken().cancel({}, wrong),
  'token.cancelAfter': () => new CancellationToken().cancelAfter(1_000_000, {}, wrong),
  'run.cancel': async () => (await endedRun()).cancel({}, wrong),
  'run.cancelCall': async () => (await endedRun()).cancelCall('unknown', {}, wrong),
  'runtime.cancelCall': () => createRuntime({ tools: [] }).cancelCall('unknown', {}, wrong),
  'conversations.cancel': () => createConversations({ agent: createTestAgent() }).cancel('idle', {}, wrong),
  'store.cancel': () => openStore().cancel({ tenant: 't', id: 't-unknown' }, {}, wrong),
  'registry.cancel': () => createCancellationRegistry({ store: openStore(), tenant: 't' }).cancel('unknown', {}, wrong),
  'store conversations.cancel': () =>
    createStoreConversations({ store: openStore(), agent: createTestAgent() }).cancel('idle', {}, wrong),
  cancelTasks: () => cancelTasks(openStore(), { tenant: 't', ...wrong }),
  createCancelMessage: () => createCancelMessage({ tenant: 't', all: true }, wrong),
  'channel.emit': () =>
    createEventChannel().emit({ category: 'task', topic: '__cancel', tenant: 't', all: true, payload: wrong }),
};

test.each(Object.entries(ways))('%s refuses an unknown option', async (_, cancel) => {
  await expect(async () => await cancel()).rejects.toThrow(/^level: unknown setting; the settings are .*mode, undo/);
});
