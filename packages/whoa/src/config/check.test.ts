import { createMemoryStore, type TaskStore, type TaskStoreConfig } from '@whoa/tasks';
import { expect, expectTypeOf, onTestFinished, test } from 'vitest';
import { checkConfig } from './check.ts';
import { defineConfig, type WhoaConfig } from './config.ts';

const check = (config: object) => (): void => checkConfig(config, 'whoa.config.ts');

test('a configuration with everything in it is well', () => {
  const store = createMemoryStore();
  onTestFinished(() => store[Symbol.asyncDispose]());
  const agents = { reviewer: () => Promise.reject(new Error('not now')) };
  const rest = { model: 'openai:gpt-5', instructions: 'Be brief.', policy: 'replace', stopMode: { drainMs: 1_000 } };
  const approvals = [
    { decision: 'allow', tool: 'bash', command: 'npm test' },
    { decision: 'deny', path: '**/*.lock' },
  ];
  expect(check({ agents, store, approvals, ...rest })).not.toThrow();
  expect(check({ sandbox: 'read-only' })).not.toThrow();
  expect(check({ waitForProvider: { maxMs: 3_600_000, backoffMs: 1_000 } })).not.toThrow();
  expect(check({ sandbox: { kind: 'workspace', network: { allow: ['example.com'] }, readable: [] } })).not.toThrow();
  expect(check({ store: { backend: 'sqlite' }, stopMode: 'now', policy: 'reject' })).not.toThrow();
  expect(check({ store: { backend: 'sqlite', file: '/srv/tasks.db' }, stopMode: {} })).not.toThrow();
  expect(check({ store: { backend: 'postgres', url: 'postgres://localhost' }, policy: undefined })).not.toThrow();
  for (const store of ['postgres://host/agents', 'sqlite:/srv/tasks.db', 'memory:', 'memory']) {
    expect(check({ store })).not.toThrow();
  }
});

test.each<[object, string]>([
  [
    { queue: {} },
    "unknown field 'queue'; use model, contextTokens, instructions, agents, store, engine, policy, stopMode, resume, waitForProvider",
  ],
  [{ engine: 'bullmq' }, "engine: expected bullmq({ connection: 'redis://…' }) from '@whoa/bullmq'"],
  [{ engine: {} }, 'engine: expected bullmq({'],
  [{ resume: 'never' }, "resume: expected one of any, same-version, got 'never'"],
  [{ waitForProvider: 600_000 }, 'waitForProvider: expected { maxMs: 600_000 }'],
  [{ waitForProvider: {} }, 'waitForProvider: maxMs: expected { maxMs: 600_000 }'],
  [{ waitForProvider: { maxMs: 0 } }, 'waitForProvider: maxMs: expected'],
  [
    { waitForProvider: { maxMs: 1, max: 1 } },
    "waitForProvider: unknown field 'max'; use maxMs, backoffMs, maxBackoffMs",
  ],
  [{ model: 7 }, "model: expected a string, such as 'anthropic:claude-sonnet-4-5'"],
  [{ contextTokens: '200k' }, 'contextTokens: expected a whole number of tokens, such as 200_000'],
  [{ contextTokens: 10 }, 'contextTokens: expected a whole number of tokens'],
  [{ instructions: '' }, "instructions: expected a string, such as 'Answer in French.'"],
  [{ agents: [], model: null }, 'model: expected a string'],
  [{ agents: 'mine' }, 'agents: expected { name: agent }'],
  [{ agents: { mine: {} } }, "agents: 'mine' is not an agent; write createAgent({ … })"],
  [
    { store: 'mysql://u:p@localhost' },
    "store: expected 'memory', 'sqlite:FILE' or 'postgres://HOST/DATABASE', got an address that starts with 'mysql:'",
  ],
  [{ store: 'sqlite:tasks.db' }, "store: expected an absolute path, such as 'sqlite:/srv/tasks.db', got 'tasks.db'"],
  [{ store: 'localhost:6379' }, "store: expected 'memory', 'sqlite:FILE' or"],
  [{ store: '' }, 'store: expected'],
  [{ store: 7 }, 'store: expected'],
  [{ store: { url: 'x' } }, "store: backend: expected 'memory' or 'sqlite' or 'postgres', got undefined"],
  [
    { store: { backend: 'postgres', url: 'localhost:5432' } },
    "store: url: expected an address such as 'postgres://host/database'",
  ],
  [{ store: { backend: 'sqlite', fil: '/a' } }, "store: fil: unknown setting; did you mean 'file'?"],
  [{ store: { backend: 'sqlite', file: 'tasks.db' } }, 'store: expected an absolute path, such as'],
  [
    { policy: 'steer' },
    "policy: expected one of queue, replace, reject, got 'steer' (an editor expects a response to every prompt",
  ],
  [{ policy: 'wait' }, "policy: expected one of queue, replace, reject, got 'wait'"],
  [{ stopMode: 'soon' }, "stopMode: expected 'graceful', 'now', 'kill' or { drainMs: 5_000, abortMs: 2_000 }"],
  [{ stopMode: { drain: 5 } }, "stopMode: unknown field 'drain'"],
  [{ stopMode: { drainMs: '5s' } }, "stopMode: drainMs: expected milliseconds from 0 to 3600000, got '5s'"],
  [{ stopMode: { abortMs: -1 } }, 'stopMode: abortMs: expected milliseconds'],
  [{ stopMode: [] }, "stopMode: expected 'graceful', 'now', 'kill' or { drainMs"],
  [{ sandbox: 'strong' }, "sandbox: expected 'workspace', 'read-only', 'none', or { kind: 'workspace', network: … }"],
  [{ sandbox: { network: { allow: [] } } }, "sandbox: kind: expected 'workspace'"],
  [{ sandbox: { kind: 'none', net: 1 } }, "sandbox: unknown field 'net'; use kind, readable, network, limits"],
  [{ sandbox: { kind: 'workspace', network: 'all' } }, "sandbox: network: expected { allow: ['api.example.com'] }"],
  [{ approvers: ['ann'] }, 'approvers: expected (question, principal) => true or false'],
  [{ starterMayAnswer: 'no' }, 'starterMayAnswer: expected true or false'],
  [{ webhooks: 'https://example.com' }, "webhooks: expected [{ url: 'https://…', secret: 'whsec_…' }]"],
  [{ webhooks: [{ secret: 's' }] }, 'webhooks: entry 1: url: expected a string that is not empty'],
  [{ webhooks: [{ url: 'u', secret: 7 }] }, "webhooks: entry 1: secret: expected 'whsec_…', or a list"],
  [{ webhooks: [{ url: 'u', secret: 's', event: [] }] }, "webhooks: entry 1: unknown field 'event'; use url, secret"],
  [{ webhooks: [{ url: 'u', secret: 's', events: ['end'] }] }, 'webhooks: entry 1: events: entry 1: expected one of'],
  [{ approvals: ['bash'] }, "approvals: rule 1: expected [{ decision: 'allow'"],
  [{ approvals: { allow: 'bash' } }, "approvals: expected [{ decision: 'allow', tool: 'bash', command: 'npm test' }]"],
  [{ approvals: [{ decision: 'yes' }] }, "approvals: rule 1: decision: expected one of allow, ask, deny, got 'yes'"],
  [
    { approvals: [{ decision: 'allow', commands: 'x' }] },
    "approvals: rule 1: unknown field 'commands'; use decision, tool",
  ],
  [{ approvals: [{ decision: 'ask', tool: '' }] }, 'approvals: rule 1: tool: expected a string'],
  [
    { approvals: [{ decision: 'ask', command: 'ls', path: 'a' }] },
    'approvals: rule 1: expected command or path, not both',
  ],
  ...['a; b', 'a && b', 'A=1 a', '$(a)', ' '].map((command): [object, string] => [
    { approvals: [{ decision: 'deny' }, { decision: 'allow', command }] },
    'approvals: rule 2: command: expected the first words of one command',
  ]),
  [{ drainMs: -1 }, 'drainMs: expected milliseconds from 0 to 3600000, got -1'],
  [{ drainMs: '5s' }, "drainMs: expected milliseconds from 0 to 3600000, got '5s'"],
])('%o is rejected, and the field is named', (config, words) => {
  expect(check(config)).toThrow(expect.objectContaining({ name: 'UsageError', code: 'CONFIG' }));
  expect(check(config)).toThrow(`whoa.config.ts: ${words}`);
});

test('the compiler checks a configuration as it is written', () => {
  expectTypeOf<WhoaConfig['store']>().toEqualTypeOf<string | TaskStoreConfig | TaskStore | undefined>();
  expectTypeOf<WhoaConfig['policy']>().toEqualTypeOf<'queue' | 'replace' | 'reject' | undefined>();
  expectTypeOf(defineConfig).toBeCallableWith({ store: { backend: 'sqlite', file: '/srv/tasks.db' }, stopMode: 'now' });
  expectTypeOf(defineConfig).toBeCallableWith({ stopMode: { drainMs: 1_000, abortMs: 500 } });
  // @ts-expect-error: no such backend
  defineConfig({ store: { backend: 'mysql' } });
  // @ts-expect-error: not in an editor
  defineConfig({ policy: 'steer' });
  // @ts-expect-error: no such field
  defineConfig({ queue: {} });
});
