import { createAgent, SettingsError } from '@whoa/core';
import { reply } from '@whoa/core/model';
import { expect, test } from 'vitest';
import { createStoreConversations } from '../conversation/conversations.ts';
import { createTaskStore, type TaskStoreConfig } from '../stores/factory.ts';
import { createMemoryStore } from '../stores/memory.ts';
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
  expect(runner({ store: undefined })).toMatch(/^store: expected a task store .*, got undefined$/);
  expect(runner({ agents: { assistant: 5 } })).toBe('agents.assistant: expected an agent or a function, got 5');
  expect(runner({ agents: [] })).toBe('nothing was refused');
  expect(runner({ leaseMs: 0 })).toBe('leaseMs: expected more than 0 to 86400000 ms, got 0');
  expect(runner({ pollIntervalMs: Number.NaN })).toBe('pollIntervalMs: expected more than 0 to 86400000 ms, got NaN');
  expect(runner({ flushIntervalMs: -1 })).toBe('flushIntervalMs: expected 0 ms or more, or Infinity for never, got -1');
  expect(runner({ resume: 'never' })).toBe("resume: expected 'any' or 'same-version', got \"never\"");
  expect(runner({ lease: 5 })).toMatch(/^lease: unknown setting; the settings are .*leaseMs/);
  await using made = createRunner({ store, agents: { assistant: agent } });
  const task = { tenant: 't', agent: 'assistant', input: 'x' };
  await expect(made.run(task, { policy: 'wait' as 'queue' })).rejects.toThrow("policy: expected 'replace' or");
  await expect(made.run(task, { signal: {} as AbortSignal })).rejects.toThrow('signal: expected an AbortSignal');
  await expect(made.serve({ concurrency: 0 })).rejects.toThrow('concurrency: expected a whole number from 1, got 0');
  await expect(made.serve({ agents: 'a' as unknown as [] })).rejects.toThrow('agents: expected a list');
});

test('conversations on a store refuse settings that cannot work', async () => {
  const make = (options: object): string => refusal(() => createStoreConversations({ agent, store, ...options }));
  expect(make({ agent: {} })).toBe('agent: expected an agent (an object with run()), got an object');
  expect(make({ tenant: '' })).toBe('tenant: expected a non-empty string, got ""');
  expect(make({ policy: 'wait' })).toMatch(/^policy: expected 'replace' or/);
  expect(make({ onreply: () => {} })).toMatch(/^onreply: unknown setting; the settings are .*onReply/);
  await using conversations = createStoreConversations({ agent, store });
  await expect(conversations.processMessage('c', 'x', { debounceMs: -1 })).rejects.toThrow(
    'debounceMs: expected 0 ms or more, got -1',
  );
});

test('a store refuses settings that cannot work', () => {
  const make = (config: object): string => refusal(() => createTaskStore(config as TaskStoreConfig));
  expect(make({})).toMatch(/^backend: expected 'memory' or 'sqlite' or 'redis' or 'postgres', got undefined$/);
  expect(make({ backend: 'redis' })).toMatch(/^url: expected the address redis:\/\/host:port, .*, got undefined$/);
  expect(make({ backend: 'redis', url: [] })).toMatch(/^url: expected the address/);
  expect(make({ backend: 'redis', url: 'redis://x', sentinel: { nam: 'x' } })).toMatch(
    /^sentinel.nam: unknown setting/,
  );
  expect(make({ backend: 'sqlite', durability: 'high' })).toBe(
    "durability: expected 'process' or 'power', got \"high\"",
  );
  expect(make({ backend: 'memory', retentionMs: Number.NaN })).toMatch(/^retentionMs: expected more than 0 to \d+ ms/);
  expect(make({ backend: 'redis', url: 'redis://x', shards: 1.5 })).toBe(
    'shards: expected a number of shards, or what it was and is: [1, 16], got 1.5',
  );
  expect(make({ backend: 'postgres', maxConnections: 0 })).toBe(
    'maxConnections: expected a whole number from 1, got 0',
  );
});
