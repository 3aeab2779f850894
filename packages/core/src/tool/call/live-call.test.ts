import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { CancelledError } from '../../stop/errors.ts';
import { CancellationToken } from '../../stop/token/token.ts';
import { createVirtualWorld, flushMicrotasks } from '../../testing/virtual-world.ts';
import type { RuntimeEvent } from '../events.ts';
import type { CallResult } from '../result.ts';
import { createRuntime, type RuntimeOptions } from '../runtime.ts';
import { defineTool, type Tool, type ToolContext } from '../tool.ts';
import type { Call } from './call.ts';
import { NESTED, type NestedContext, type ParentRun, type WithNested } from './nested.ts';
import { findUndoData } from './undo-data.ts';

const tool = (name: string, execute: (context: ToolContext) => unknown, rest: Partial<Tool> = {}): Tool =>
  ({
    ...defineTool({
      name,
      description: name,
      inputSchema: z.unknown(),
      execute: (_, context) => execute(context) as string,
    }),
    effects: 'read',
    ...rest,
  }) as Tool;

/** A tool whose calls are separate runs. */
const nestedTool = (name: string, execute: (context: InnerContext) => unknown, rest: Partial<Tool> = {}): Tool => {
  const nested: WithNested<Partial<Tool>, true> = { ...rest, [NESTED]: true };
  return tool(name, execute, nested);
};

type InnerContext = WithNested<ToolContext, NestedContext>;

const call = (id: string, toolName = id, rest: Partial<Call> = {}): Call => ({
  id,
  tool: toolName,
  input: {},
  ...rest,
});

function setUp(tools: readonly Tool[], options: Partial<RuntimeOptions> = {}) {
  const world = createVirtualWorld();
  const token = new CancellationToken({ name: 'run', clock: world.clock });
  const events: RuntimeEvent[] = [];
  const leaveRunning = vi.fn();
  const parent: ParentRun = { addUsage: () => {}, undoes: () => false, leaveRunning };
  const hooks = { any: (event: RuntimeEvent) => events.push(event) };
  const inner: WithNested<RuntimeOptions, ParentRun> = { tools, world, hooks, [NESTED]: parent, ...options };
  const runtime = createRuntime(inner);
  const execute = (...calls: Call[]): Promise<CallResult[]> =>
    runtime.execute(calls, { token }).catch((error: { partial: CallResult[] }) => error.partial);
  return { ...world, token, events, runtime, execute, leaveRunning };
}

const atAbort = (context: ToolContext, error: unknown): Promise<never> =>
  new Promise((_, reject) => context.signal.addEventListener('abort', () => reject(error as Error), { once: true }));

const withPartial = (message: string, partial: unknown): Error => Object.assign(new Error(message), { partial });

test('without hooks there are no events, and every call ends the same', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const { clock, token, execute, runtime } = setUp(
    [
      tool('talks', ({ update, emitNested, defer }) => {
        update('half');
        emitNested({ type: 'inner' });
        defer(() => Promise.reject(new Error('still locked')));
        return 'done';
      }),
      tool('pay', () => new Promise((resolve) => clock.setTimer(100, () => resolve('paid'))), {
        whenCancelled: 'finish',
        timeoutMs: 1_000,
      }),
      tool('deaf', () => new Promise((resolve) => clock.setTimer(200, () => resolve('late')))),
    ],
    { hooks: undefined },
  );
  const results = execute(call('talks'), call('pay'), call('deaf'));
  await flushMicrotasks();
  token.cancel({}, { mode: 'kill' });
  await clock.advance(200);
  expect((await results).map(({ state }) => state)).toEqual(['finished', 'finished', 'unknown']);
  expect(runtime.lateResults.entries()).toMatchObject([{ key: 'runtime/deaf', late: { state: 'finished' } }]);
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});

test('output and nested events after the end of a call are not reported', async () => {
  let late: (() => void) | undefined;
  const { execute, events } = setUp([
    tool('x', ({ update, emitNested }) => {
      late = () => {
        update('late');
        emitNested({ type: 'late' });
      };
      return 'done';
    }),
  ]);
  await execute(call('x'));
  const before = events.length;
  late?.();
  expect(events).toHaveLength(before);
});

test('an abandoned call’s output is kept, and its late end is reported like a result', async () => {
  const { clock, token, execute, events, runtime } = setUp(
    [
      tool('shows', ({ update }) => {
        update({ content: 'half', details: { done: 1 } });
        return new Promise((resolve) => clock.setTimer(100, () => resolve({ content: 'a key', secret: 1 })));
      }),
      tool('fails', () => new Promise((_, reject) => clock.setTimer(100, () => reject(new Error('late failure'))))),
    ],
    { redact: (text) => ({ text: text.replace('key', '***'), count: text.includes('key') ? 1 : 0 }) },
  );
  const results = execute(call('shows'), call('fails'));
  await flushMicrotasks();
  token.cancel({}, { mode: 'kill' });
  expect(await results).toMatchObject([
    { state: 'unknown', content: expect.stringMatching(/Output so far:\nhalf$/) as string, details: { done: 1 } },
    { state: 'unknown', content: expect.stringMatching(/It may have taken effect\.$/) as string },
  ]);
  await clock.advance(100);
  const late = [
    { state: 'finished', value: { content: 'a ***', redacted: 1 } },
    { state: 'failed', error: new Error('late failure') },
  ].map((end) => ({ at: clock.now(), ...end }));
  expect(events.flatMap((event) => (event.type === 'call-ended-late' ? [event.late] : []))).toStrictEqual(late);
  const findLate = (key: string) => runtime.lateResults.entries().find((entry) => entry.key === key)?.late;
  expect([findLate('runtime/shows'), findLate('runtime/fails')]).toStrictEqual(late);
});

test('a record has no empty fields', async () => {
  const { clock, token, execute } = setUp([
    tool('quick', () => 'done'),
    tool('obeys', (context) => atAbort(context, context.signal)),
  ]);
  const results = execute(call('quick'), call('obeys'));
  await flushMicrotasks();
  token.cancel({}, { mode: 'now' });
  const at = { startedAt: clock.now(), endedAt: clock.now() };
  const [quick, obeys] = await results;
  expect(quick).toStrictEqual({
    callId: 'quick',
    tool: 'quick',
    state: 'finished',
    content: 'done',
    isError: false,
    ...at,
  });
  expect(Object.keys(obeys!)).not.toContain('details');
});

test.each<[string, unknown]>([
  ['a text', 'half'],
  ['nothing', null],
  ['an object without content', { details: 1 }],
])('%s is not accepted as the partial result of a stopped call', async (_, partial) => {
  const { token, execute } = setUp([
    tool('odd', (context) => atAbort(context, new CancelledError({ kind: 'user', at: 0 }, { partial }))),
  ]);
  const results = execute(call('odd'));
  await flushMicrotasks();
  token.cancel({}, { mode: 'now' });
  const [odd] = await results;
  expect(odd?.content).toBe('Interrupted (user) before it finished.');
  expect(Object.keys(odd!)).not.toContain('error');
});

test('a run inside a call that fails returns its partial result', async () => {
  const fails = (name: string, error: unknown): Tool => nestedTool(name, () => Promise.reject(error as Error));
  const { execute } = setUp([
    fails('bare', new Error('no model')),
    fails('empty', withPartial('no model', { content: '' })),
    fails('some', withPartial('no model', { content: 'half', details: { turns: 1 } })),
    fails('nothing', null),
  ]);
  const results = await execute(call('bare'), call('empty'), call('some'), call('nothing'));
  const failed = results.map(({ startedAt: _, endedAt: __, callId: ___, tool: ____, ...said }) => said);
  expect(failed).toStrictEqual([
    { state: 'failed', content: 'no model', isError: true },
    { state: 'failed', content: 'no model', isError: true },
    { state: 'failed', content: 'It failed: no model. Output so far:\nhalf', isError: true, details: { turns: 1 } },
    { state: 'failed', content: 'null', isError: true },
  ]);
});

test('a run inside a call that answers the cancel with its own error was interrupted, and reports it', async () => {
  const { token, execute } = setUp([
    nestedTool('run', (context) => atAbort(context, withPartial('no undo', { content: 'half' })), { effects: 'write' }),
  ]);
  const results = execute(call('run'));
  await flushMicrotasks();
  token.cancel({}, { mode: 'now' });
  expect(await results).toMatchObject([
    {
      state: 'interrupted',
      content: 'Interrupted (user) before it finished, and reported: no undo. Output so far:\nhalf',
      error: 'no undo',
    },
  ]);
});

test('only calls that are runs get the context for runs', async () => {
  const given: unknown[] = [];
  const keep = (context: InnerContext): string => {
    given.push(context[NESTED]);
    return 'done';
  };
  await setUp([tool('plain', keep), nestedTool('run', keep)]).execute(call('plain'), call('run'));
  expect(given).toEqual([undefined, expect.objectContaining({ enter: expect.any(Function) as unknown })]);
});

test('the keys of a call that is a run are free when its own are, and those of its run', async () => {
  const lent = Promise.withResolvers<() => void>();
  const { execute, runtime } = setUp([
    nestedTool('idle', () => 'done', { exclusive: () => ['file'] }),
    nestedTool(
      'busy',
      async ({ token, [NESTED]: inside }) => {
        lent.resolve((await inside!.keys.acquire(['file'], { holder: 'inner', token })) as () => void);
        return 'done';
      },
      { exclusive: () => ['file'] },
    ),
  ]);
  expect(await execute(call('idle'))).toMatchObject([{ state: 'finished' }]);
  expect(await execute(call('busy'))).toMatchObject([{ state: 'finished' }]);
  const next = runtime.execute([call('next', 'idle')]);
  await flushMicrotasks();
  expect(runtime.cancelCall('next', 'still waiting')).toMatchObject({ result: 'accepted' });
  expect(await next).toMatchObject([{ state: 'not-started', reason: { message: 'still waiting' } }]);
  (await lent.promise)();
  expect(await execute(call('last', 'idle'))).toMatchObject([{ state: 'finished' }]);
});

test('a cleanup that does not end within its time is left running, one that fails is not', async () => {
  const { clock, execute, events, leaveRunning } = setUp(
    [
      tool('fails', ({ defer }) => {
        defer(() => Promise.reject(new Error('still locked')));
        return 'done';
      }),
      tool('hangs', ({ defer }) => {
        defer(() => new Promise(() => {}));
        return 'done';
      }),
    ],
    { cleanupTimeoutMs: 50 },
  );
  expect(await execute(call('fails'))).toMatchObject([{ state: 'finished' }]);
  expect(leaveRunning).not.toHaveBeenCalled();
  const hangs = execute(call('hangs'));
  await clock.advance(50);
  expect(events.at(-1)).toMatchObject({ type: 'wave-end' });
  expect(await hangs).toMatchObject([{ state: 'finished' }]);
  expect(leaveRunning.mock.calls).toEqual([['cleanup of hangs (hangs)', expect.any(Promise), 0]]);
});

test('a call that can be given no time limit is not started', async () => {
  const { clock: sound } = createVirtualWorld();
  const setTimer = (ms: number, callback: () => void): Disposable => {
    if (ms === 10) throw new Error('no timers');
    return sound.setTimer(ms, callback);
  };
  const token = new CancellationToken({ clock: { now: () => sound.now(), setTimer } });
  const { runtime } = setUp([tool('timed', () => expect.unreachable('must not start'), { timeoutMs: 10 })]);
  expect(await runtime.execute([call('timed')], { token })).toMatchObject([
    { state: 'not-started', content: 'Not started: no timers', isError: true },
  ]);
});

test('undo data is kept only for calls that can be undone', async () => {
  const { execute } = setUp([
    tool('plain', () => 'x'),
    tool('undoable', () => ({ content: 'x', details: 1 }), { undo() {} }),
  ]);
  const [plain, undoable] = await execute(call('plain'), call('undoable', 'undoable', { input: 7 }));
  expect(findUndoData(plain!)).toBeUndefined();
  expect(findUndoData(undoable!)).toMatchObject({ input: 7, keys: [], details: 1 });
});

test('an id is taken while its call is running, and free after it', async () => {
  const { execute, runtime } = setUp([tool('slow', () => flushMicrotasks().then(() => 'done'))]);
  const first = execute(call('1', 'slow'));
  await expect(runtime.execute([call('0', 'slow'), call('1', 'slow')])).rejects.toThrow(
    "A call with the id '1' is already running in this runtime",
  );
  expect(await first).toMatchObject([{ state: 'finished' }]);
  expect(await execute(call('1', 'slow'))).toMatchObject([{ state: 'finished' }]);
});

test('calls that share a key run in waves, which are reported with their calls', async () => {
  const { execute, events } = setUp([tool('edit', () => 'x')]);
  const keyed = (id: string): Call => call(id, 'edit', { exclusive: ['file'] });
  await execute(keyed('a'), call('b', 'edit'), keyed('c'));
  expect(events.flatMap((event) => (event.type === 'wave-start' ? [[event.wave, ...event.callIds]] : []))).toEqual([
    [0, 'a', 'b'],
    [1, 'c'],
  ]);
});

test('calls of a wave that was cancelled end after it', async () => {
  const { execute, events, token } = setUp(
    [
      tool('first', () => {
        token.cancel();
        return 'one';
      }),
    ],
    { concurrency: 1 },
  );
  await execute(call('1', 'first'), call('2', 'first'));
  expect(
    events.flatMap((event) =>
      event.type === 'call-end' ? [event.result.state] : event.type === 'wave-end' ? ['—'] : [],
    ),
  ).toEqual(['finished', '—', 'not-started']);
});
