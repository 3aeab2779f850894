import { createAgent, SettingsError } from '@whoa/core';
import { reply } from '@whoa/core/model';
import { expect, test } from 'vitest';
import { createStoreConversations } from '../conversation/conversations.ts';
import { createTaskStore } from '../ledger/factory.ts';
import { createMemoryStore } from '../ledger/memory.ts';
import type { TaskStoreConfig } from '../ledger/store-config.ts';
import { createRunner } from './store-runner.ts';

const store = createMemoryStore();
const agent = createAgent({ name: 'assistant', planner: { next: () => reply('done') } });

const refusal = (make: () => unknown): string => {
  try {
    make();
  } catch (error) {
    expect(error).toBeInstanceOf(SettingsError);
    return (error as Error).message;
  }
  return 'nothing was refused';
};

test('a runner refuses settings that cannot work', async () => {
  const runner = (options: object): string =>
    refusal(() => createRunner({ store, agents: { assistant: agent }, ...options }));
  expect(runner({ store: undefined })).toMatch(
    /^store: expected a task store, as from createTaskStore .*, got undefined$/,
  );
  expect(runner({ agents: { assistant: 5 } })).toBe('agents.assistant: expected an agent or a function, got 5');
  // A wrong argument may be an address with a password.
  expect(runner({ store: 'postgres://u:secret@h' })).toMatch(/^store: expected a task store.*, got a string$/);
  const named = 'expected agents by their names, such as { assistant: agent }';
  expect(runner({ agents: [agent] })).toBe(`agents: ${named}, got a list`);
  expect(runner({ agents: undefined })).toBe(`agents: ${named}, got undefined`);
  expect(runner({ agent })).toMatch(/^agent: unknown setting; did you mean 'agents'\?/);
  expect(runner({ leaseMs: 0 })).toBe('leaseMs: expected more than 0 to 86400000 ms, got 0');
  expect(runner({ pollIntervalMs: Number.NaN })).toBe('pollIntervalMs: expected more than 0 to 86400000 ms, got NaN');
  expect(runner({ resume: 'never' })).toBe("resume: expected 'any' or 'same-version', got \"never\"");
  expect(runner({ lease: 5 })).toMatch(/^lease: unknown setting; did you mean 'leaseMs'/);
  await using made = createRunner({ store, agents: { assistant: agent } });
  const task = { tenant: 't', agent: 'assistant', input: 'x' };
  await expect(made.run(task, { policy: 'wait' as 'queue' })).rejects.toThrow("policy: expected 'replace' or");
  await expect(made.run(task, { signal: {} as AbortSignal })).rejects.toThrow('signal: expected an AbortSignal');
  await expect(made.serve({ concurrency: 0 })).rejects.toThrow('concurrency: expected a whole number from 1, got 0');
  await expect(made.serve({ agents: 'a' as unknown as [] })).rejects.toThrow('agents: expected a list');
  await made.serve();
  await expect(made.serve({ concurrency: 2 })).rejects.toThrow('serve: this runner serves already; create another one');
  const unknown = made.run({ ...task, agent: 'assistent' });
  await expect(unknown).rejects.toMatchObject({ code: 'INVALID_SETTING', field: 'agent' });
});

test('conversations on a store refuse settings that cannot work', async () => {
  const make = (options: object): string => refusal(() => createStoreConversations({ agent, store, ...options }));
  expect(make({ agent: {} })).toBe('agent: expected an agent (an object with run()), got an object');
  expect(make({ tenant: '' })).toBe('tenant: expected a non-empty string, got ""');
  expect(make({ policy: 'wait' })).toMatch(/^policy: expected 'replace' or/);
  expect(make({ onreply: () => {} })).toMatch(/^onreply: unknown setting; did you mean 'onReply'/);
  await using conversations = createStoreConversations({ agent, store });
  await expect(conversations.processMessage('c', 'x', { debounceMs: -1 })).rejects.toThrow(
    'debounceMs: expected 0 ms or more, got -1',
  );
});

test('a store refuses settings that cannot work', () => {
  const make = (config: object): string => refusal(() => createTaskStore(config as TaskStoreConfig));
  expect(make({})).toMatch(/^backend: expected 'memory' or 'sqlite' or 'postgres', got undefined$/);
  expect(make({ backend: 'postgres', url: [] })).toMatch(/^url: expected an address such as/);
  expect(make({ backend: 'postgres', url: 'b:5432' })).toMatch(/^url: .*; write 'postgres:\/\/b:5432'$/);
  expect(make({ backend: 'postgres', url: 'redis://x' })).toMatch(/^url: .* got an address that starts with 'redis:'$/);
  expect(make({ backend: 'postgres', shards: 2 })).toMatch(/^shards: unknown setting/);
  expect(make({ backend: 'sqlite', durability: 'high' })).toBe(
    "durability: expected 'process' or 'power', got \"high\"",
  );
  expect(make({ backend: 'memory', retentionMs: Number.NaN })).toMatch(/^retentionMs: expected more than 0 to \d+ ms/);
  expect(make({ backend: 'postgres', maxConnections: 0 })).toBe(
    'maxConnections: expected a whole number from 1, got 0',
  );
});
