import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { guard } from '../../stop/bounded/guard.ts';
import { createLateResults } from '../../stop/bounded/late-results.ts';
import { CallOutcomeUnknownError } from '../../stop/errors.ts';
import { CancellationToken } from '../../stop/token/token.ts';
import { createVirtualWorld, flushMicrotasks } from '../../testing/virtual-world.ts';
import type { RuntimeEvent } from '../events.ts';
import type { CallResult } from '../result.ts';
import { createRuntime, type RuntimeOptions } from '../runtime.ts';
import { createInterruptedError, defineTool, type Tool, type ToolContext } from '../tool.ts';

type Execute = (input: unknown, context: ToolContext) => unknown;

const tool = (name: string, execute: Execute, rest: Partial<Tool> = {}): Tool =>
  ({
    ...defineTool({ name, description: name, inputSchema: z.unknown(), execute: execute as Tool['execute'] }),
    ...rest,
  }) as Tool;

function setUp(tools: readonly Tool[], options: Partial<RuntimeOptions> = {}) {
  const world = createVirtualWorld();
  const token = new CancellationToken({ name: 'run', clock: world.clock });
  const events: RuntimeEvent[] = [];
  const runtime = createRuntime({ tools, world, hooks: { any: (event) => events.push(event) }, ...options });
  const execute = (...names: string[]): Promise<CallResult[]> =>
    runtime
      .execute(
        names.map((name) => ({ id: name, tool: name, input: {} })),
        { token },
      )
      .catch((error: { partial: CallResult[] }) => error.partial);
  const ends = (): string[] =>
    events.flatMap((event) => (event.type === 'call-end' ? [`${event.result.callId} ${event.result.state}`] : []));
  return { ...world, token, events, runtime, execute, ends };
}

const trap = (): never => {
  throw new Error('trap');
};
const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const cycle = (): object => {
  const one: Record<string, unknown> = {};
  one['self'] = one;
  return one;
};
const deep = (): object => {
  let one: object = {};
  for (let depth = 0; depth < 100_000; depth++) one = { one };
  return one;
};

const HOSTILE_INPUTS: Readonly<Record<string, () => unknown>> = {
  'a content of null': () => ({ content: null }),
  'a content that is an object': () => ({ content: { ok: true } }),
  'a content that is a number': () => ({ content: 42 }),
  'a content that is a bigint': () => ({ content: 10n }),
  'a content that is a symbol': () => ({ content: Symbol('s') }),
  'a list of null': () => ({ content: [null] }),
  'a sparse list': () => ({ content: Object.assign([], { length: 3 }) }),
  'a text part without text': () => ({ content: [{ type: 'text' }] }),
  'an image part without data': () => ({ content: [{ type: 'image' }] }),
  'a list of texts': () => ({ content: ['a', 'b'] }),
  'a content that throws when read': () => ({
    get content() {
      return trap();
    },
  }),
  'details with a bigint': () => ({ content: 'x', details: { n: 1n } }),
  'details in a circle': () => ({ content: 'x', details: cycle() }),
  'details of great depth': () => ({ content: 'x', details: deep() }),
  'details that throw when read': () => ({ content: 'x', details: { toJSON: trap } }),
  'details that are a function': () => ({ content: 'x', details: trap }),
  'no prototype': () => Object.create(null) as unknown,
  'a proxy that throws': () => new Proxy({}, { get: (_, key) => (key === 'then' ? undefined : trap()), has: trap }),
  'a symbol': () => Symbol('s'),
  NaN: () => Number.NaN,
  'a function': () => trap,
};

test.each(Object.entries(HOSTILE_INPUTS))(
  '%s as a result ends one call, and its siblings still finish',
  async (_, make) => {
    const { clock, execute, ends, token } = setUp([
      tool('quick', () => 'q'),
      tool('bad', make),
      tool('pay', () => new Promise((resolve) => clock.setTimer(100, () => resolve('paid'))), {
        whenCancelled: 'finish',
        timeoutMs: 5_000,
      }),
    ]);
    const results = execute('quick', 'bad', 'pay');
    await clock.advance(100);
    expect((await results).map(({ state }) => state)).toEqual(['finished', 'finished', 'finished']);
    expect(ends()).toEqual(['quick finished', 'bad finished', 'pay finished']);
    // The record is JSON through and through, whatever it was made from.
    const [, bad] = await results;
    expect(JSON.parse(JSON.stringify(bad))).toEqual(bad);
    expect(typeof bad?.content === 'string' || Array.isArray(bad?.content)).toBe(true);
    expect(token.statistics.children).toBe(0);
  },
);

const THROWN: Readonly<Record<string, [() => unknown, string]>> = {
  'no prototype': [() => Object.create(null) as unknown, '{}'],
  undefined: [() => undefined, 'undefined'],
  'a text': [() => 'just text', 'just text'],
  'a symbol': [() => Symbol('s'), 'Symbol(s)'],
  'a bigint': [() => 10n, '10'],
  'an error whose message is an object': [
    () => Object.assign(new Error('x'), { message: { code: -32_000 } }),
    '{"code":-32000}',
  ],
  'an error without a message': [() => new TypeError(), 'TypeError'],
  'an error whose message throws': [
    () => Object.defineProperty(new Error('x'), 'message', { get: trap }),
    'it threw something that could not be read',
  ],
  'a revoked proxy': [revoked, 'it threw something that could not be read'],
  'an object in a circle': [cycle, '[object Object]'],
};

test.each(Object.entries(THROWN))('%s as an error fails one call, with a message', async (_, [make, said]) => {
  const { execute, ends } = setUp([
    tool('bad', () => Promise.reject(make() as Error)),
    tool('sibling', () => flushMicrotasks().then(() => 'done')),
  ]);
  expect(await execute('bad', 'sibling')).toMatchObject([
    { state: 'failed', content: said, isError: true },
    { state: 'finished', content: 'done' },
  ]);
  expect(ends()).toEqual(['bad failed', 'sibling finished']);
});

test('the model learns that a result could not be read, and the call has finished', async () => {
  const { execute } = setUp([
    tool('bad', HOSTILE_INPUTS['a proxy that throws']!),
    tool('list', HOSTILE_INPUTS['a list of texts']!),
  ]);
  expect(await execute('bad', 'list')).toMatchObject([
    { state: 'finished', isError: true, content: 'It ended, but what it returned could not be read.' },
    {
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    },
  ]);
});

test('images and texts keep only the fields that a model needs', async () => {
  const image = { type: 'image', mediaType: 'image/png', data: 'AAAA', secret: 1 };
  const { execute } = setUp([tool('draw', () => ({ content: [image, { type: 'text', text: 'x', extra: 1 }, 7] }))]);
  expect((await execute('draw'))[0]?.content).toEqual([
    { type: 'image', mediaType: 'image/png', data: 'AAAA' },
    { type: 'text', text: 'x' },
    { type: 'text', text: '7' },
  ]);
});

test('a string is an update too, and the model learns that the call ran', async () => {
  const { token, execute, events } = setUp([
    tool('pay', (_, { update, signal }) => {
      (update as (shown: unknown) => void)('50 %');
      return new Promise((__, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    }),
  ]);
  const results = execute('pay');
  await flushMicrotasks();
  token.cancel({}, { mode: 'now' });
  expect(await results).toMatchObject([
    {
      state: 'interrupted',
      content: 'Interrupted (user) before it finished. It may have taken effect in part. Output so far:\n50 %',
    },
  ]);
  expect(events).toContainEqual(expect.objectContaining({ type: 'call-update', partial: { content: '50 %' } }));
});

test('an update that cannot be read affects nothing else', async () => {
  const { execute } = setUp([
    tool('odd', (_, { update }) => {
      for (const make of Object.values(HOSTILE_INPUTS)) (update as (shown: unknown) => void)(make());
      return 'done';
    }),
  ]);
  expect(await execute('odd')).toMatchObject([{ state: 'finished', content: 'done' }]);
});

test('only a tool that reads, or declares it, is sure to have left nothing half done', async () => {
  const obedient: Execute = (_, { signal }) =>
    new Promise((__, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  const sure: Execute = (_, { token: own }) =>
    new Promise((__, reject) =>
      own.onCancel(() => reject(createInterruptedError(own, { content: 'unchanged' }, { effect: 'none' }))),
    );
  const { token, execute } = setUp([
    tool('look', obedient, { effects: 'read' }),
    tool('edit', obedient, { effects: 'write' }),
    tool('sure', sure, { effects: 'write' }),
  ]);
  const results = execute('look', 'edit', 'sure');
  await flushMicrotasks();
  token.cancel({}, { mode: 'now' });
  expect((await results).map(({ content }) => content)).toEqual([
    'Interrupted (user) before it finished.',
    'Interrupted (user) before it finished. It may have taken effect in part.',
    'Interrupted (user) before it finished. Output so far:\nunchanged',
  ]);
});

test('the error that a call throws on abort is kept and reported', async () => {
  const { token, execute } = setUp([
    tool(
      'sql',
      (_, { signal }) =>
        new Promise((__, reject) =>
          signal.addEventListener('abort', () => reject(new Error('ROLLBACK FAILED: 3 rows are gone'))),
        ),
    ),
  ]);
  const results = execute('sql');
  await flushMicrotasks();
  token.cancel({}, { mode: 'now' });
  expect(await results).toMatchObject([
    {
      state: 'interrupted',
      error: 'ROLLBACK FAILED: 3 rows are gone',
      content:
        'Interrupted (user) before it finished, and reported: ROLLBACK FAILED: 3 rows are gone. It may have taken effect in part.',
    },
  ]);
});

test('a call that had failed before the cancel has failed, however long its cleanup takes', async () => {
  const { clock, token, execute } = setUp([
    tool('write', (_, { defer }) => {
      defer(() => new Promise((resolve) => clock.setTimer(300, () => resolve(undefined))));
      throw new Error('disk full');
    }),
  ]);
  const results = execute('write');
  await clock.advance(100);
  token.cancel({}, { mode: 'now' });
  await clock.advance(200);
  expect(await results).toMatchObject([{ state: 'failed', content: 'disk full' }]);
});

test('guarded work that failed before its time was up rejects with its own error', async () => {
  const { clock } = createVirtualWorld();
  const token = new CancellationToken({ clock });
  const fails = (options: { timeoutMs?: number }): Promise<unknown> =>
    guard(
      ({ defer }) => {
        defer(() => new Promise((resolve) => clock.setTimer(200, () => resolve(undefined))));
        throw new Error('real failure');
      },
      { name: 'work', token, ...options },
    ).catch((error: unknown) => error);
  const timed = fails({ timeoutMs: 100 });
  const cancelled = fails({});
  await clock.advance(50);
  token.cancel({}, { mode: 'now' });
  await clock.advance(200);
  expect([await timed, await cancelled]).toMatchObject([{ message: 'real failure' }, { message: 'real failure' }]);
});

test('the model learns only the kind of a cancel elsewhere', async () => {
  const other = new CancellationToken();
  other.cancel({ kind: 'user', message: 'Bob from legal said stop', by: 'bob' });
  const { execute } = setUp([tool('inner', () => guard(() => 'x', { name: 'inner', token: other }))]);
  expect((await execute('inner'))[0]).toMatchObject({ state: 'failed', content: 'Cancelled (user)' });
});

test('a record does not change when a tool changes its objects later', async () => {
  const details = { lines: ['one'] };
  const content = [{ type: 'text' as const, text: 'one' }];
  const { execute, token, events } = setUp([
    tool('finished', () => ({ content, details })),
    tool('deaf', (_, { update }) => {
      update({ content, details });
      return new Promise(() => {});
    }),
  ]);
  const results = execute('finished', 'deaf');
  await flushMicrotasks();
  token.cancel({}, { mode: 'kill' });
  const before = JSON.stringify([await results, events]);
  details.lines.push('two');
  content[0]!.text = 'two';
  expect(JSON.stringify([await results, events])).toBe(before);
  for (const result of await results) {
    expect(() => ((result as { state: string }).state = 'x')).toThrow(TypeError);
    expect(() => ((result.details as unknown as typeof details).lines[0] = 'x')).toThrow(TypeError);
    expect(Object.isFrozen(result.content)).toBe(true);
  }
});

test('late results that cannot be recorded change nothing for the calls', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const lateResults = {
    ...createLateResults(),
    abandon: () => trap(),
    returned: () => Promise.reject(new Error('also down')) as never,
  };
  let end: (() => void) | undefined;
  const { execute, token, ends, events } = setUp(
    [tool('quick', () => 'q'), tool('deaf', () => new Promise<void>((resolve) => (end = resolve)))],
    { lateResults },
  );
  const results = execute('quick', 'deaf');
  await flushMicrotasks();
  token.cancel({}, { mode: 'kill' });
  expect((await results).map(({ state }) => state)).toEqual(['finished', 'unknown']);
  expect(ends()).toEqual(['quick finished', 'deaf unknown']);
  end?.();
  await flushMicrotasks();
  expect(events.at(-1)).toMatchObject({ type: 'call-ended-late', callId: 'deaf' });
  expect(warned.mock.calls.map(([warning]) => (warning as Error).message)).toEqual([
    'Late results failed',
    'Late results failed',
  ]);
  warned.mockRestore();
});

test('an abandoned call gives its keys back when it ends, whatever it ends with', async () => {
  let end: ((value: unknown) => void) | undefined;
  const { runtime, token, clock } = setUp([
    tool('edit', () => new Promise((resolve) => (end = resolve)), { exclusive: () => ['file'] }),
    tool('next', () => 'done', { exclusive: () => ['file'] }),
  ]);
  const killed = runtime.execute([{ id: '1', tool: 'edit', input: {} }], { token }).catch(() => {});
  await flushMicrotasks();
  token.cancel({}, { mode: 'kill' });
  await killed;
  end?.(HOSTILE_INPUTS['a proxy that throws']!());
  await flushMicrotasks();
  const other = new CancellationToken({ clock });
  expect(await runtime.execute([{ id: '2', tool: 'next', input: {} }], { token: other })).toMatchObject([
    { state: 'finished' },
  ]);
});

test('a tool whose bound cannot hold is rejected when the runtime is made', () => {
  const boundless = { ...tool('boundless', () => 'x'), whenCancelled: 'finish' } as Tool;
  expect(() => setUp([boundless])).toThrow("timeoutMs: 'boundless' finishes when cancelled, so it needs a timeoutMs");
});

test.each([0, -1, Number.NaN, 1e12])('a cleanup may not have %s ms', (cleanupTimeoutMs) => {
  expect(() => setUp([], { cleanupTimeoutMs })).toThrow(
    `cleanupTimeoutMs: expected more than 0 to 600000 ms, got ${cleanupTimeoutMs}`,
  );
});

test.each(['a text', [7], { length: 1 }])(
  'exclusive keys that are not a list of texts (%j) reject the call',
  async (keys) => {
    const { execute } = setUp([tool('work', () => 'x', { exclusive: () => keys as never })]);
    expect(await execute('work')).toMatchObject([
      { state: 'not-started', content: "Not started: exclusive: 'work' must return a list of strings" },
    ]);
  },
);

test.each(['abort', 'kill'] as const)(
  'a call that is cancelled (%s) where its start is reported does not begin',
  async (level) => {
    const ran = vi.fn();
    const { execute, token } = setUp([tool('rm', ran), tool('pay', ran, { whenCancelled: 'finish', timeoutMs: 100 })], {
      hooks: { 'call-start': () => token.cancel({}, { mode: level === 'kill' ? 'kill' : 'now' }) },
    });
    expect((await execute('rm', 'pay')).map(({ state }) => state)).toEqual(['not-started', 'not-started']);
    expect(ran).not.toHaveBeenCalled();
  },
);

test('a call that was cancelled by a listener for its question needs no answer', async () => {
  const approve = vi.fn(() => true);
  const { execute, token } = setUp([tool('rm', () => 'x')], {
    approve,
    hooks: { 'approval-requested': () => token.cancel({}, { mode: 'kill' }) },
  });
  expect(await execute('rm')).toMatchObject([{ state: 'not-started', reason: { kind: 'user' } }]);
  expect(approve).not.toHaveBeenCalled();
});

test('a clock that fails once loses one call, and its siblings still finish', async () => {
  const { clock: sound } = createVirtualWorld();
  let fails = false;
  const now = (): number => {
    if (!fails) return sound.now();
    fails = false;
    return trap();
  };
  const token = new CancellationToken({ clock: { now, setTimer: (...args) => sound.setTimer(...args) } });
  const runtime = createRuntime({
    tools: [
      tool('breaks', async () => {
        await flushMicrotasks();
        fails = true;
        return 'x';
      }),
      tool('sibling', () =>
        flushMicrotasks()
          .then(flushMicrotasks)
          .then(() => 'done'),
      ),
    ],
  });
  const calls = ['breaks', 'sibling'].map((name) => ({ id: name, tool: name, input: {} }));
  expect(await runtime.execute(calls, { token })).toMatchObject([
    { state: 'unknown', content: 'Outcome unknown: trap. It may have taken effect.', isError: true },
    { state: 'finished' },
  ]);
});

test('a tool that cannot know whether it took effect ends unknown, not failed', async () => {
  const lost = defineTool({
    name: 'lost',
    description: '',
    inputSchema: z.object({}),
    execute: () => {
      throw new CallOutcomeUnknownError('the connection broke');
    },
  });
  const [result] = await createRuntime({ tools: [lost as Tool] }).execute([{ id: '1', tool: 'lost', input: {} }]);
  expect(result).toMatchObject({
    state: 'unknown',
    isError: true,
    content: 'Outcome unknown: the connection broke. It may have taken effect.',
  });
});

test.each<[string, unknown]>([
  ['no list', 7],
  ['a false length', falseLength()],
  ['a call that is none', [null]],
  ['a call without a text for its tool', [{ id: 'c', tool: Symbol('x'), input: {} }]],
  ['a revoked proxy', [revoked()]],
])('calls with %s are rejected in words, before any begins', async (_, calls) => {
  const { runtime, events } = setUp([]);
  await expect(runtime.execute(calls as never)).rejects.toMatchObject({ code: 'INVALID_SETTING' });
  expect(events).toEqual([]);
});

test('content of too many parts is cut, and reports it; a list that cannot be shown is named', async () => {
  const many = Array.from({ length: 10_005 }, () => ({ type: 'text', text: '' }));
  const { execute } = setUp([
    tool('many', () => ({ content: many })),
    tool('endless', () => ({ content: falseLength() })),
    tool('shown', () => ({ content: { list: [] }, details: falseLength() })),
    tool('inside', () => ({ content: [falseLength()] })),
  ]);
  const [cut, endless, shown, inside] = await execute('many', 'endless', 'shown', 'inside');
  expect(cut?.content).toHaveLength(10_001);
  expect(cut?.content.at(-1)).toEqual({ type: 'text', text: '[… 5 more parts cut …]' });
  expect(endless?.content.at(-1)).toMatchObject({ text: expect.stringContaining('more parts cut') as string });
  expect(shown).toMatchObject({ state: 'finished', details: { cut: 'it was not JSON' } });
  expect(inside?.content).toEqual([{ type: 'text', text: `(a list of ${2 ** 31})` }]);
});

test.each<[unknown, string]>([
  [undefined, 'undefined'],
  [null, 'null'],
  [{ type: 7 }, 'an object'],
])('a nested event must be an event, and %j is not one', async (event, got) => {
  const { execute, events } = setUp([
    tool('nests', (_, { emitNested }) => {
      emitNested({ type: 'inner' });
      emitNested(event as never);
    }),
  ]);
  expect(await execute('nests')).toMatchObject([
    { state: 'failed', content: `event: expected an event of a run inside the call, got ${got}` },
  ]);
  expect(events.filter(({ type }) => type === 'call-event')).toHaveLength(1);
});

test.each<[string, () => unknown]>([
  ['throws', trap],
  ['returns nothing', () => undefined],
  ['returns no text', () => ({ text: 7, count: 1 })],
  ['does not count', () => ({ text: 'x', count: Number.NaN })],
])('no part of a result passes if the redaction %s; the state of the call is kept', async (_, redact) => {
  const { execute, token, events, clock, runtime } = setUp(
    [
      tool('secret', () => ({ content: 'secret', details: { secret: 'secret' } })),
      tool('deaf', () => new Promise((resolve) => clock.setTimer(60_000, () => resolve('secret'))), {
        exclusive: () => ['key'],
      }),
    ],
    { redact: redact as never },
  );
  expect(await execute('secret')).toMatchObject([
    { state: 'finished', content: expect.stringContaining('redacted') as string },
  ]);
  const abandoned = execute('deaf');
  await flushMicrotasks();
  token.cancel('enough', { mode: 'kill' });
  expect(await abandoned).toMatchObject([{ state: 'unknown' }]);
  await clock.advance(60_000);
  expect(events.at(-1)).toMatchObject({ type: 'call-ended-late' });
  expect(JSON.stringify([events, runtime.lateResults.entries()])).not.toContain('"secret"}');
  // Its keys are free again.
  const next = await runtime.execute([{ id: 'next', tool: 'secret', input: {}, exclusive: ['key'] }]);
  expect(next).toMatchObject([{ state: 'finished' }]);
});

test('keys that are not a list of texts keep a call from starting', async () => {
  const { execute } = setUp([tool('keys', () => 'x', { exclusive: () => falseLength() as string[] })]);
  expect(await execute('keys')).toMatchObject([
    { state: 'not-started', content: expect.stringContaining('must return a list of strings') as string },
  ]);
});

function falseLength(): unknown[] {
  return new Proxy([], {
    get: (list, key) => (key === 'length' ? 2 ** 31 : key === '0' ? 'x' : (Reflect.get(list, key) as unknown)),
  });
}
