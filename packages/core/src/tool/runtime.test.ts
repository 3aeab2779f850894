import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { CancelledError } from '../stop/errors.ts';
import { CancellationToken } from '../stop/token/token.ts';
import { createVirtualWorld, flushMicrotasks } from '../testing/virtual-world.ts';
import type { Call } from './call/call.ts';
import type { RuntimeEvent } from './events.ts';
import type { CallResult } from './result.ts';
import { createRuntime, type RuntimeOptions } from './runtime.ts';
import { createInterruptedError, defineTool, type Tool, type ToolContext } from './tool.ts';

const anything = z.object({}).loose();

type Execute = (input: Record<string, unknown>, context: ToolContext) => ReturnType<Tool['execute']>;

function tool(name: string, execute: Execute, rest: Partial<Tool> = {}): Tool {
  return {
    ...defineTool({ name, description: name, inputSchema: anything, effects: 'read', execute }),
    ...rest,
  } as Tool;
}

const call = (id: string, toolName: string, rest: Partial<Call> = {}): Call => ({
  id,
  tool: toolName,
  input: {},
  ...rest,
});

function setUp(tools: readonly Tool[], options: Partial<RuntimeOptions> = {}) {
  const world = createVirtualWorld();
  const { clock } = world;
  const token = new CancellationToken({ name: 'run', clock });
  const events: RuntimeEvent[] = [];
  const runtime = createRuntime({
    tools,
    world,
    hooks: { any: (event) => events.push(event) },
    ...options,
  });
  const execute = (calls: readonly Call[]) => settle(runtime.execute(calls, { token }));
  return { clock, token, events, runtime, execute };
}

interface Settled {
  status: 'done' | 'cancelled';
  calls: readonly CallResult[];
  error?: CancelledError;
}

async function settle(execution: Promise<CallResult[]>): Promise<Settled> {
  try {
    return { status: 'done', calls: await execution };
  } catch (error) {
    if (!(error instanceof CancelledError)) throw error;
    return { status: 'cancelled', calls: error.partial as CallResult[], error };
  }
}

const states = ({ calls }: Settled) => calls.map(({ state }) => state);

/** A tool that ends at a given time and ignores cancels. */
const slow = (
  name: string,
  ms: number,
  clock: () => { setTimer(ms: number, callback: () => void): unknown },
  rest: Partial<Tool> = {},
) => tool(name, () => new Promise((resolve) => clock().setTimer(ms, () => resolve(`${name} done`))), rest);

test('calls run in waves and their results come in the order of the calls', async () => {
  const order: string[] = [];
  const log = tool('log', (input) => {
    order.push(input['say'] as string);
    return { content: input['say'] as string, details: { shown: true } };
  });
  const { runtime, events } = setUp([log]);
  const results = await runtime.execute([
    call('c', 'log', { input: { say: 'three' }, dependsOn: ['a', 'b'] }),
    call('a', 'log', { input: { say: 'one' } }),
    call('b', 'log', { input: { say: 'two' }, dependsOn: ['a'] }),
  ]);
  expect(order).toEqual(['one', 'two', 'three']);
  expect(results.map(({ callId, content, state }) => [callId, content, state])).toEqual([
    ['c', 'three', 'finished'],
    ['a', 'one', 'finished'],
    ['b', 'two', 'finished'],
  ]);
  expect(results[0]).toMatchObject({ details: { shown: true }, isError: false });
  expect(events.filter(({ type }) => type === 'wave-start')).toHaveLength(3);
});

test('cancel during wave 1 execution: the wave finishes, the next never starts', async () => {
  const never = vi.fn();
  const { clock, token, execute } = setUp([slow('lookup', 6_000, () => clock), tool('book', never)]);
  const result = execute([call('1', 'lookup'), call('2', 'lookup'), call('3', 'book', { dependsOn: ['1', '2'] })]);
  await clock.advance(1_000);
  token.cancel({ kind: 'superseded' });
  await clock.advance(5_000);
  const settled = await result;
  expect(settled.status).toBe('cancelled');
  expect(states(settled)).toEqual(['finished', 'finished', 'not-started']);
  expect(settled.calls[0]?.content).toBe('lookup done');
  expect(settled.calls[2]).toMatchObject({
    content: 'Not started: cancelled (superseded). It had no effect.',
    isError: true,
  });
  expect(settled.error?.reason).toBe(token.reason);
  expect(never).not.toHaveBeenCalled();
});

test('cancel between waves keeps the waves that finished', async () => {
  const { token, execute } = setUp([
    tool('first', () => {
      token.cancel({ kind: 'user' });
      return 'one';
    }),
    tool('second', () => expect.fail('must not start')),
  ]);
  const settled = await execute([call('1', 'first'), call('2', 'second', { dependsOn: ['1'] })]);
  expect(settled).toMatchObject({ status: 'cancelled', calls: [{ content: 'one' }, { state: 'not-started' }] });
});

test('multiple rapid cancellations: one reason, every call with one result', async () => {
  const { clock, token, execute, events } = setUp([slow('slow', 100, () => clock)]);
  const result = execute([call('1', 'slow')]);
  await flushMicrotasks();
  for (let i = 0; i < 50; i++) token.cancel({ message: `${i}` });
  await clock.advance(100);
  expect((await result).error?.reason.message).toBe('0');
  expect(events.filter(({ type }) => type === 'call-end')).toHaveLength(1);
});

test('cancel after completion changes nothing', async () => {
  const { token, execute, events } = setUp([tool('quick', () => 'done')]);
  const settled = await execute([call('1', 'quick')]);
  const before = JSON.stringify([settled, events]);
  token.cancel({}, { mode: 'kill' });
  await flushMicrotasks();
  expect(JSON.stringify([settled, events])).toBe(before);
  expect(states(settled)).toEqual(['finished']);
});

test('cancelled before the start, nothing starts', async () => {
  const { token, execute, events } = setUp([tool('x', () => expect.fail('must not start'))]);
  token.cancel();
  expect(states(await execute([call('1', 'x'), call('2', 'x')]))).toEqual(['not-started', 'not-started']);
  expect(events.map(({ type }) => type)).toEqual(['cancel-requested', 'level-changed', 'call-end', 'call-end']);
});

test('cancelled in the same tick, nothing starts', async () => {
  const { token, execute } = setUp([tool('x', () => expect.fail('must not start'))]);
  const result = execute([call('1', 'x')]);
  token.cancel();
  expect(states(await result)).toEqual(['not-started']);
});

test('cancelled from inside a tool, that tool finishes and its waiting sisters do not start', async () => {
  const { token, execute } = setUp(
    [
      tool('first', () => {
        token.cancel();
        return 'one';
      }),
      tool('other', () => expect.fail('must not start')),
    ],
    { concurrency: 1 },
  );
  expect(states(await execute([call('1', 'first'), call('2', 'other')]))).toEqual(['finished', 'not-started']);
});

test('cancelled from the hook for the start of a call, neither that call nor the next one runs', async () => {
  const { token, execute } = setUp([tool('x', () => expect.fail('must not run'))], {
    concurrency: 1,
    hooks: { 'call-start': () => token.cancel() },
  });
  expect(states(await execute([call('1', 'x'), call('2', 'x')]))).toEqual(['not-started', 'not-started']);
});

test.each(['interrupt', 'finish'] as const)(
  'a call that has ended gets no cancel from the hook for its end (%s)',
  async (whenCancelled) => {
    let signal: AbortSignal | undefined;
    const heard: string[] = [];
    const x = tool(
      'x',
      (_input, context) => {
        signal = context.signal;
        return 'done';
      },
      { whenCancelled, timeoutMs: 1_000 },
    );
    const { token, execute } = setUp([x], {
      hooks: {
        any: ({ type }) => {
          heard.push(type);
          if (type === 'call-end') token.cancel({}, { mode: 'kill' });
        },
      },
    });
    expect(states(await execute([call('1', 'x')]))).toEqual(['finished']);
    expect(heard).toEqual(['wave-start', 'call-start', 'call-end', 'cancel-requested', 'level-changed', 'wave-end']);
    expect(signal?.aborted).toBe(false);
  },
);

test('a call that could not drain is interrupted at the next level, with its output so far', async () => {
  const { clock, token, execute } = setUp([
    tool('read', (_input, { update, signal }) => {
      update({ content: 'line 1\n', details: { lines: 1 } });
      return new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
      );
    }),
  ]);
  const result = execute([call('1', 'read')]);
  await flushMicrotasks();
  token.cancel({ kind: 'user' });
  await clock.advance(100);
  token.cancel({ kind: 'shutdown' }, { mode: 'now' });
  const settled = await result;
  expect(settled.calls[0]).toMatchObject({
    state: 'interrupted',
    content: 'Interrupted (user) before it finished. Output so far:\nline 1\n',
    details: { lines: 1 },
    reason: { kind: 'user' },
    isError: true,
  });
});

test('a tool that stops on request returns its partial result', async () => {
  const { token, execute } = setUp([
    tool(
      'scan',
      (_input, context) =>
        new Promise((_, reject) => {
          context.token.onCancel(() =>
            reject(
              createInterruptedError(context.token, {
                content: [{ type: 'text', text: '3 files' }],
                details: { files: 3 },
              }),
            ),
          );
        }),
    ),
  ]);
  const result = execute([call('1', 'scan')]);
  await flushMicrotasks();
  token.cancel({}, { mode: 'now' });
  expect((await result).calls[0]).toMatchObject({
    state: 'interrupted',
    content: [{ text: 'Interrupted (user) before it finished. Output so far:\n' }, { text: '3 files' }],
    details: { files: 3 },
  });
});

test('a tool that can only disconnect from remote work reports its effect as unknown', async () => {
  const { token, execute } = setUp([
    tool(
      'remote',
      (_input, context) =>
        new Promise((_, reject) => {
          context.token.onCancel(() =>
            reject(createInterruptedError(context.token, { content: 'told it to stop' }, { effect: 'unknown' })),
          );
        }),
    ),
  ]);
  const result = execute([call('1', 'remote')]);
  await flushMicrotasks();
  token.cancel({}, { mode: 'now' });
  expect((await result).calls[0]).toMatchObject({ state: 'unknown', isError: true });
  expect((await result).calls[0]?.content).toContain('It may have taken effect. Output so far:\ntold it to stop');
});

test('a finish call is never cut, even when it hands its signal to fetch', async () => {
  let answer: (() => void) | undefined;
  const asked = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    answer = () => response.end('booked');
    asked.resolve();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const book = tool(
    'book',
    async (_input, { signal }) =>
      (await fetch(`http://127.0.0.1:${port}`, { signal, headers: { connection: 'close' } })).text(),
    { whenCancelled: 'finish', timeoutMs: 60_000 },
  );
  const { clock, token, execute, events } = setUp([book, tool('after', () => expect.fail('must not start'))]);
  const result = execute([call('1', 'book'), call('2', 'after', { dependsOn: ['1'] })]);
  await asked.promise;
  token.cancel({ kind: 'user' }, { mode: 'kill' });
  await clock.advance(1_000);
  answer?.();
  const settled = await result;
  expect(states(settled)).toEqual(['finished', 'not-started']);
  expect(settled.calls[0]?.content).toBe('booked');
  const [warning] = events.filter(({ type }) => type === 'call-waiting');
  expect(warning).toMatchObject({
    tool: 'book',
    level: 'kill',
    reason: { kind: 'user' },
    until: events[1]!.at + 60_000,
  });
  await new Promise((resolve) => server.close(resolve));
});

test('a tool that ignores its signal settles exactly when the ladder ends; its late result is fenced and reported', async () => {
  const { clock, token, execute, events, runtime } = setUp([slow('deaf', 20_000, () => clock)]);
  const result = execute([call('1', 'deaf')]);
  await flushMicrotasks();
  const start = clock.now();
  token.cancel();
  await clock.advance(12_000);
  const settled = await result;
  expect(settled.calls[0]).toMatchObject({ state: 'unknown', endedAt: start + 12_000, reason: { kind: 'user' } });
  expect(settled.calls[0]?.content).toContain('Outcome unknown');
  const before = JSON.stringify(settled);
  await clock.advance(8_000);
  expect(JSON.stringify(settled)).toBe(before);
  expect(events.at(-1)).toMatchObject({
    type: 'call-ended-late',
    callId: '1',
    late: { state: 'finished', at: start + 20_000 },
  });
  expect(runtime.lateResults.entries()).toMatchObject([{ key: 'runtime/1', late: { state: 'finished' } }]);
});

test('a tool that throws after the abort is interrupted, not failed', async () => {
  const { token, execute } = setUp([
    tool(
      'clumsy',
      (_input, { signal }) =>
        new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(new TypeError('x of undefined')), { once: true }),
        ),
    ),
  ]);
  const result = execute([call('1', 'clumsy')]);
  await flushMicrotasks();
  token.cancel({}, { mode: 'now' });
  expect((await result).calls[0]).toMatchObject({
    state: 'interrupted',
    content: 'Interrupted (user) before it finished, and reported: x of undefined.',
    error: 'x of undefined',
  });
});

test('a tool that throws has failed, and what needs it does not start', async () => {
  const { execute } = setUp([
    tool('bad', () => Promise.reject(new Error('no network'))),
    tool('odd', () => {
      // oxlint-disable-next-line typescript/only-throw-error -- tools may throw anything
      throw 'a text';
    }),
    tool('next', () => expect.fail('must not start')),
    tool('sorry', () => ({ content: 'not found', isError: true })),
  ]);
  const settled = await execute([
    call('1', 'bad'),
    call('2', 'odd'),
    call('3', 'next', { dependsOn: ['1'] }),
    call('4', 'sorry'),
    call('5', 'next', { dependsOn: ['4'] }),
  ]);
  expect(settled.calls.map(({ state, content, isError }) => [state, content, isError])).toEqual([
    ['failed', 'no network', true],
    ['failed', 'a text', true],
    ['not-started', "Not started: it needs '1', which did not succeed", true],
    ['finished', 'not found', true],
    ['not-started', "Not started: it needs '4', which did not succeed", true],
  ]);
});

test('a tool that returns nothing that can be read has finished all the same', async () => {
  const nothing = (value: unknown) => () => value as string;
  const { execute } = setUp([
    tool('forgets', nothing(undefined)),
    tool('nulls', nothing(null)),
    tool('empty', nothing({ content: undefined })),
  ]);
  const settled = await execute(['forgets', 'nulls', 'empty'].map((name) => call(name, name)));
  expect(settled.status).toBe('done');
  for (const result of settled.calls) {
    expect(result).toMatchObject({ state: 'finished', isError: false, content: 'It returned no content.' });
  }
});

test('plain data from a tool is its content as JSON, and its details', async () => {
  const data = { celsius: 21 } as unknown as string;
  const { execute } = setUp([tool('weather', () => data)]);
  const settled = await execute([call('weather', 'weather')]);
  expect(settled.calls).toMatchObject([{ state: 'finished', content: '{"celsius":21}', details: { celsius: 21 } }]);
});

test('a time-out ends one call; the others and the run go on', async () => {
  const { clock, token, execute } = setUp([
    tool(
      'obedient',
      (_i, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('x')))),
      {
        timeoutMs: 100,
      },
    ),
    slow('fine', 500, () => clock),
  ]);
  const result = execute([call('1', 'obedient'), call('2', 'fine')]);
  await clock.advance(500);
  const settled = await result;
  expect(settled.status).toBe('done');
  expect(states(settled)).toEqual(['interrupted', 'finished']);
  expect(settled.calls[0]?.reason).toMatchObject({ kind: 'deadline', message: 'obedient took longer than 100 ms' });
  expect(token.isCancelled).toBe(false);
});

test('the model gets errors for bad input and unknown tools, with what would be right', async () => {
  const strict = defineTool({
    name: 'strict',
    description: '',
    effects: 'read',
    inputSchema: z.object({ at: z.string(), list: z.array(z.number()) }),
    execute: () => expect.fail('must not start'),
  });
  const { execute } = setUp([strict as Tool]);
  const settled = await execute([call('1', 'strict', { input: { list: ['x'] } }), call('2', 'stict')]);
  expect(settled.calls[0]?.content).toMatch(/^Not started: at: .+; list\.0: .+/);
  expect(settled.calls[1]?.content).toBe("Not started: there is no tool 'stict'; the tools are strict");
  expect(states(settled)).toEqual(['not-started', 'not-started']);
});

test('calls that write wait for approval; the model gets the reason of a no', async () => {
  const asked: string[] = [];
  const answers: Record<string, boolean | string> = { yes: true, no: false, why: 'not today' };
  const { execute, events } = setUp(
    [tool('write', () => 'written', { effects: 'write' }), tool('read', () => 'read', { effects: 'read' })],
    {
      approve: ({ call: { id }, effects }) => {
        asked.push(`${id} ${effects}`);
        return answers[id]!;
      },
    },
  );
  const settled = await execute([call('yes', 'write'), call('no', 'write'), call('why', 'write'), call('r', 'read')]);
  expect(asked).toEqual(['yes write', 'no write', 'why write']);
  expect(settled.calls.map(({ content }) => content)).toEqual([
    'written',
    'Not started: denied by the user',
    'Not started: denied: not today',
    'read',
  ]);
  expect(events.filter(({ type }) => type === 'approval-answered')).toMatchObject([
    { callId: 'yes', approved: true },
    { callId: 'no', approved: false },
    { callId: 'why', approved: false },
  ]);
});

test('a cancel withdraws a pending question immediately, at any level, and the call was not started', async () => {
  let signal: AbortSignal | undefined;
  const { token, execute } = setUp([tool('write', () => expect.fail('must not start'), { effects: 'write' })], {
    approve: (_request, context) => {
      signal = context.signal;
      return new Promise(() => {});
    },
  });
  const result = execute([call('1', 'write')]);
  await flushMicrotasks();
  token.cancel();
  expect(signal?.aborted).toBe(true);
  expect(states(await result)).toEqual(['not-started']);
});

test('a call that was cancelled while its input was parsed is neither announced nor shown for approval', async () => {
  const looked = Promise.withResolvers<boolean>();
  const write = defineTool({
    name: 'write',
    description: '',
    inputSchema: z.unknown().refine(() => looked.promise),
    execute: () => expect.fail('must not start'),
  });
  const approve = vi.fn(() => true);
  const beforeCall = vi.fn();
  const { token, execute, events } = setUp([write], { approve, beforeCall });
  const result = execute([call('1', 'write')]);
  await flushMicrotasks();
  token.cancel();
  expect(states(await result)).toEqual(['not-started']);
  looked.resolve(true);
  await flushMicrotasks();
  expect(approve).not.toHaveBeenCalled();
  expect(beforeCall).not.toHaveBeenCalled();
  expect(events.at(-1)?.type).toBe('wave-end');
});

test('a yes that comes after the cancel begins nothing and writes nothing down', async () => {
  const yes = Promise.withResolvers<boolean>();
  const beforeCall = vi.fn();
  const { token, execute } = setUp([tool('write', () => expect.fail('must not start'), { effects: 'write' })], {
    approve: () => yes.promise,
    beforeCall,
  });
  const result = execute([call('1', 'write')]);
  await flushMicrotasks();
  token.cancel();
  expect(states(await result)).toEqual(['not-started']);
  yes.resolve(true);
  await flushMicrotasks();
  expect(beforeCall).not.toHaveBeenCalled();
});

test('keys that arrive with the cancel are released', async () => {
  const { token, runtime } = setUp([tool('edit', () => 'edited', { exclusive: () => ['file'] })]);
  const execution = settle(runtime.execute([call('1', 'edit')], { token }));
  await Promise.resolve();
  token.cancel();
  expect(states(await execution)).toEqual(['not-started']);
  expect((await runtime.execute([call('2', 'edit')]))[0]?.state).toBe('finished');
});

test('a tool that is wrapped may be handed a copy of its context', async () => {
  const read = tool(
    'read',
    (_input, { signal, update }) =>
      new Promise((_, reject) => {
        update({ content: 'half' });
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      }),
  );
  const { token, execute } = setUp([
    { ...read, execute: (input, context) => read.execute(input, { ...context, callId: 'another' }) },
  ]);
  const result = execute([call('1', 'read')]);
  await flushMicrotasks();
  token.cancel({}, { mode: 'now' });
  expect((await result).calls[0]).toMatchObject({
    state: 'interrupted',
    content: 'Interrupted (user) before it finished. Output so far:\nhalf',
  });
});

test('a single call can be cancelled while the others continue; a finish call rejects it', async () => {
  const { clock, execute, runtime } = setUp([
    tool(
      'a',
      (_i, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stop')))),
    ),
    slow('b', 100, () => clock),
    slow('pay', 100, () => clock, { whenCancelled: 'finish', timeoutMs: 1_000 }),
  ]);
  const result = execute([call('1', 'a'), call('2', 'b'), call('3', 'pay')]);
  await flushMicrotasks();
  expect(runtime.cancelCall('1', { by: 'anna' })).toMatchObject({ result: 'accepted', level: 'abort' });
  expect(runtime.cancelCall('3')).toEqual({ result: 'refused', message: 'pay must finish; it ends within 1000 ms' });
  expect(runtime.cancelCall('nobody')).toEqual({ result: 'too-late' });
  await clock.advance(100);
  const settled = await result;
  expect(states(settled)).toEqual(['interrupted', 'finished', 'finished']);
  expect(settled.calls[0]?.reason).toMatchObject({ kind: 'user', by: 'anna' });
  expect(runtime.cancelCall('1')).toEqual({ result: 'too-late' });
});

test('no more calls run at the same time than allowed', async () => {
  let running = 0;
  let most = 0;
  const { execute } = setUp(
    [
      tool('x', async () => {
        most = Math.max(most, ++running);
        await flushMicrotasks();
        running--;
        return 'x';
      }),
    ],
    { concurrency: 3 },
  );
  const settled = await execute(Array.from({ length: 20 }, (_, i) => call(`${i}`, 'x')));
  expect(most).toBe(3);
  expect(settled.calls.every(({ state }) => state === 'finished')).toBe(true);
});

test('exclusive keys keep calls apart, and an abandoned call keeps its keys until it really ends', async () => {
  const held: string[] = [];
  const { clock, token, runtime } = setUp([
    tool(
      'edit',
      async (input) => {
        held.push(`+${String(input['id'])}`);
        await new Promise<void>((resolve) => clock.setTimer(input['ms'] as number, resolve));
        held.push(`-${String(input['id'])}`);
        return 'edited';
      },
      { exclusive: () => ['file'] },
    ),
  ]);
  const both = runtime.execute([
    call('1', 'edit', { input: { id: 1, ms: 10 } }),
    call('2', 'edit', { input: { id: 2, ms: 10 } }),
  ]);
  await clock.advance(20);
  await both;
  expect(held).toEqual(['+1', '-1', '+2', '-2']);
  const abandoned = settle(runtime.execute([call('3', 'edit', { input: { id: 3, ms: 5_000 } })], { token }));
  await flushMicrotasks();
  token.cancel({}, { mode: 'kill' });
  expect(states(await abandoned)).toEqual(['unknown']);
  const next = runtime.execute([call('4', 'edit', { input: { id: 4, ms: 10 } })]);
  await clock.advance(4_999);
  expect(held.at(-1)).toBe('+3');
  await clock.advance(11);
  expect((await next)[0]?.state).toBe('finished');
  expect(held.slice(-4)).toEqual(['+3', '-3', '+4', '-4']);
});

test('waiting for an exclusive key ends: with a cancel, or after a minute', async () => {
  const { clock, token, runtime } = setUp([tool('edit', () => new Promise(() => {}), { exclusive: () => ['file'] })]);
  const holder = settle(runtime.execute([call('holder', 'edit')], { token }));
  await flushMicrotasks();
  const waiting = settle(runtime.execute([call('2', 'edit')]));
  const other = new CancellationToken({ clock });
  const cancelled = settle(runtime.execute([call('3', 'edit')], { token: other }));
  await flushMicrotasks();
  other.cancel();
  expect(states(await cancelled)).toEqual(['not-started']);
  await clock.advance(60_000);
  expect((await waiting).calls[0]?.content).toBe("Not started: file is still held by call 'holder'; try again later");
  token.cancel({}, { mode: 'kill' });
  await holder;
});

test('a cleanup that fails is reported, and the result does not change', async () => {
  const { execute, events } = setUp([
    tool('x', (_i, { defer }) => {
      defer(() => {
        throw new Error('still locked');
      });
      return 'fine';
    }),
  ]);
  expect((await execute([call('1', 'x')])).calls[0]?.content).toBe('fine');
  expect(events.find(({ type }) => type === 'cleanup-error')).toMatchObject({
    tool: 'x',
    error: { cause: { message: 'still locked' } },
  });
});

test('updates after the end are not shown', async () => {
  let late: (() => void) | undefined;
  const { execute, events } = setUp([
    tool('x', (_i, { update }) => {
      late = () => update({ content: 'late' });
      return 'done';
    }),
  ]);
  await execute([call('1', 'x')]);
  late?.();
  expect(events.some(({ type }) => type === 'call-update')).toBe(false);
});

test('a throwing hook affects nothing else and is reported', async () => {
  const errors: unknown[] = [];
  const { execute } = setUp([tool('x', () => 'done')], {
    hooks: {
      'call-start': () => {
        throw new Error('sync');
      },
      'call-end': () => Promise.reject(new Error('async')),
      'hook-error': ({ hook, error }) => errors.push([hook, (error as Error).message]),
    },
  });
  expect(states(await execute([call('1', 'x')]))).toEqual(['finished']);
  await flushMicrotasks();
  expect(errors).toEqual([
    ['call-start', 'sync'],
    ['call-end', 'async'],
  ]);
});

test('a plain signal may be given instead of a token', async () => {
  const controller = new AbortController();
  const { runtime } = setUp([
    tool(
      'x',
      (_i, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('x')))),
    ),
  ]);
  const result = settle(runtime.execute([call('1', 'x')], { signal: controller.signal }));
  await flushMicrotasks();
  controller.abort();
  expect(states(await result)).toEqual(['interrupted']);
});

test('invalid options are rejected when the runtime is created', async () => {
  const plain = { description: '', inputSchema: anything, execute: () => 'x' };
  expect(() => defineTool({ ...plain, name: 'no spaces' })).toThrow(
    'name: expected 1 to 64 of a-z, A-Z, 0-9, _ and -, the first a letter, got "no spaces"',
  );
  expect(() => defineTool({ ...plain, name: 'x', timeoutMs: 0 })).toThrow(
    'timeoutMs: expected more than 0 to 600000 ms, got 0',
  );
  expect(() => createRuntime({ tools: [tool('x', () => 'x'), tool('x', () => 'x')] })).toThrow(
    "two tools are named 'x'",
  );
  expect(() => createRuntime({ tools: [], concurrency: 0 })).toThrow('concurrency: expected a whole number');
  // @ts-expect-error A finish tool requires `timeoutMs`.
  expect(() => defineTool({ ...plain, name: 'pay', whenCancelled: 'finish' })).toThrow(
    "timeoutMs: 'pay' finishes when cancelled, so it needs a timeoutMs",
  );
  await expect(setUp([]).runtime.execute([call('1', 'x'), call('1', 'x')])).rejects.toThrow(
    "Two calls have the id '1'",
  );
});

test('a runtime leaves no timers, listeners or tokens behind', async () => {
  const { clock, token, execute } = setUp([tool('x', (_i, { signal }) => (signal.aborted ? 'a' : 'b'))]);
  await execute(Array.from({ length: 50 }, (_, i) => call(`${i}`, 'x')));
  expect(token.statistics).toEqual({ children: 0, listeners: 0 });
  expect(clock.pending).toBe(0);
});

test('a call starts only after its intent is written', async () => {
  const order: string[] = [];
  const book = tool('book', () => {
    order.push('begin');
    return 'booked';
  });
  const beforeCall = async ({ id }: Call): Promise<void> => {
    await Promise.resolve();
    order.push(`written ${id}`);
  };
  await createRuntime({ tools: [book], beforeCall }).execute([call('one', 'book')]);
  expect(order).toEqual(['written one', 'begin']);
});

test('a call that could not be written down is not started', async () => {
  const book = tool('book', () => expect.unreachable('must not start'));
  const runtime = createRuntime({ tools: [book], beforeCall: () => Promise.reject(new Error('the lease is lost')) });
  const [result] = await runtime.execute([call('one', 'book')]);
  expect(result).toMatchObject({ state: 'not-started', content: 'Not started: the lease is lost' });
});

test('a drain of a wave larger than the concurrency lets the calls that began finish; the others are not started', async () => {
  const { execute, token, clock } = setUp([], {
    concurrency: 3,
    tools: [tool('slow', () => new Promise((resolve) => clock.setTimer(1_000, () => resolve('done'))))],
  });
  const executing = execute(Array.from({ length: 8 }, (_, i) => call(`${i}`, 'slow')));
  await flushMicrotasks();
  token.cancel();
  await clock.advance(1_000);
  expect(states(await executing)).toEqual([
    ...Array.from({ length: 3 }, () => 'finished'),
    ...Array.from({ length: 5 }, () => 'not-started'),
  ]);
});

test('hooks receive the accepted cancel and each level, once and in rising order, even if they cancel harder', async () => {
  const told: string[] = [];
  const { execute, token, clock, runtime } = setUp([], {
    tools: [tool('deaf', () => new Promise(() => {}))],
    hooks: {
      'cancel-requested': ({ receipt, reason }) => {
        told.push(`${receipt}: ${reason.message}`);
        token.cancel('harder', { mode: 'kill' });
      },
      'level-changed': ({ level, at }) => told.push(`${level} at ${at - clock.now()}`),
    },
  });
  const executing = execute([call('1', 'deaf')]);
  await flushMicrotasks();
  token.cancel('enough');
  expect((await executing).status).toBe('cancelled');
  expect(told).toEqual(['accepted: enough', 'drain at 0', 'kill at 0']);
  expect(runtime.tools.size).toBe(1);
});

test('a runtime whose owner reports cancels does not report them itself', async () => {
  const { execute, token, events } = setUp([tool('deaf', () => new Promise(() => {}))], { emitsCancelEvents: false });
  const executing = execute([call('1', 'deaf')]);
  await flushMicrotasks();
  token.cancel({}, { mode: 'kill' });
  await executing;
  expect(events.map(({ type }) => type)).not.toContain('level-changed');
});

test('a wave of calls that all return immediately can still be cancelled from outside', async () => {
  const runtime = createRuntime({ tools: [tool('instant', () => 'done')] });
  const token = new CancellationToken();
  const calls = Array.from({ length: 100_000 }, (_, i) => call(`c${i}`, 'instant'));
  // No microtask may keep this from its turn for as long as all of them take.
  setImmediate(() => token.cancel({}, { mode: 'kill' }));
  const error: unknown = await runtime.execute(calls, { token }).catch((reason: unknown) => reason);
  const results = (error as CancelledError).partial as CallResult[];
  const states = new Set(results.map(({ state }) => state));
  expect([results.length, states]).toEqual([100_000, new Set(['finished', 'not-started'])]);
});
