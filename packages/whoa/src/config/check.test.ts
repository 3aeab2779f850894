import { createMemoryStore, type TaskStore, type TaskStoreConfig } from '@whoa/tasks';
import { expect, expectTypeOf, onTestFinished, test } from 'vitest';
import { checkConfig } from './check.ts';
import { defineConfig, type WhoaConfig } from './config.ts';

const check = (config: object) => (): void => checkConfig(config, 'whoa.config.ts');

test('a configuration with everything in it is well', () => {
  const store = createMemoryStore();
  onTestFinished(() => store[Symbol.asyncDispose]());
  const agents = { reviewer: () => Promise.reject(new Error('not now')) };
  const rest = { model: 'openai:gpt-5', instructions: 'Be brief.', policy: 'replace', ladder: { drainMs: 1_000 } };
  const approvals = [
    { decision: 'allow', tool: 'bash', command: 'npm test' },
    { decision: 'deny', path: '**/*.lock' },
  ];
  expect(check({ agents, store, approvals, ...rest })).not.toThrow();
  expect(check({ store: { backend: 'sqlite' }, ladder: 'now', policy: 'reject' })).not.toThrow();
  expect(check({ store: { backend: 'sqlite', file: '/srv/tasks.db' }, ladder: {} })).not.toThrow();
  expect(check({ store: { backend: 'redis', url: 'redis://localhost' }, policy: undefined })).not.toThrow();
});

test.each<[object, string]>([
  [
    { queue: {} },
    'queue: there is no such field; use model, instructions, agents, store, policy, ladder, sandbox, approvals',
  ],
  [{ model: 7 }, "model: write a text, such as 'anthropic:claude-sonnet-4-5'"],
  [{ instructions: '' }, "instructions: write a text, such as 'Answer in French.'"],
  [{ agents: [], model: null }, 'model: write a text'],
  [{ agents: 'mine' }, 'agents: write { name: agent }'],
  [{ agents: { mine: {} } }, "agents: 'mine' is no agent; write createAgent({ … })"],
  [{ store: 'redis://localhost' }, "store: write { backend: 'sqlite', file: '/…/tasks.db' }"],
  [{ store: { url: 'x' } }, 'store: backend: undefined is none of sqlite, redis, postgres, memory'],
  [{ store: { backend: 'mysql' } }, "store: backend: 'mysql' is none of"],
  [{ store: { backend: 'sqlite', file: 'tasks.db' } }, "store: file: write a whole path; 'tasks.db' would be another"],
  [{ policy: 'steer' }, "policy: 'steer' is none of queue, replace, reject (every prompt of an editor"],
  [{ policy: 'wait' }, "policy: 'wait' is none of queue, replace, reject"],
  [{ ladder: 'soon' }, "ladder: write 'graceful', 'now', 'kill' or { drainMs: 5_000, abortMs: 2_000 }"],
  [{ ladder: { drain: 5 } }, "ladder: there is no 'drain'"],
  [{ ladder: { drainMs: '5s' } }, "ladder: drainMs: write milliseconds from 0 to 3600000, not '5s'"],
  [{ ladder: { abortMs: -1 } }, 'ladder: abortMs: write milliseconds'],
  [{ approvals: { allow: 'bash' } }, "approvals: write [{ decision: 'allow', tool: 'bash', command: 'npm test' }]"],
  [{ approvals: [{ decision: 'yes' }] }, "approvals: rule 1: decision: 'yes' is none of allow, ask, deny"],
  [
    { approvals: [{ decision: 'allow', commands: 'x' }] },
    "approvals: rule 1: there is no 'commands'; use decision, tool",
  ],
  [{ approvals: [{ decision: 'ask', tool: '' }] }, 'approvals: rule 1: tool: write a text'],
  [
    { approvals: [{ decision: 'ask', command: 'ls', path: 'a' }] },
    'approvals: rule 1: write command or path, not both',
  ],
  ...['a; b', 'a && b', 'A=1 a', '$(a)', ' '].map((command): [object, string] => [
    { approvals: [{ decision: 'deny' }, { decision: 'allow', command }] },
    'approvals: rule 2: command: write the first words of one command',
  ]),
])('%o is refused, and the field is named', (config, words) => {
  expect(check(config)).toThrow(expect.objectContaining({ name: 'UsageError', code: 'CONFIG' }));
  expect(check(config)).toThrow(`whoa.config.ts: ${words}`);
});

test('what is written is checked while it is written', () => {
  expectTypeOf<WhoaConfig['store']>().toEqualTypeOf<TaskStoreConfig | TaskStore | undefined>();
  expectTypeOf<WhoaConfig['policy']>().toEqualTypeOf<'queue' | 'replace' | 'reject' | undefined>();
  expectTypeOf(defineConfig).toBeCallableWith({ store: { backend: 'sqlite', file: '/srv/tasks.db' }, ladder: 'now' });
  expectTypeOf(defineConfig).toBeCallableWith({ ladder: { drainMs: 1_000, abortMs: 500 } });
  // @ts-expect-error: no such backend
  defineConfig({ store: { backend: 'mysql' } });
  // @ts-expect-error: not in an editor
  defineConfig({ policy: 'steer' });
  // @ts-expect-error: no such field
  defineConfig({ queue: {} });
});
