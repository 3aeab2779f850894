import { getEventListeners } from 'node:events';
import { CallTimeoutError, CancellationToken, CancelledError, isCancelledError, type StopMode } from '@whoa/core';
import { createVirtualWorld, flushMicrotasks, type VirtualClock } from '@whoa/core/testing';
import { describe, expect, test, vi } from 'vitest';
import { closeOpenCalls } from '../messages/close-open-calls.ts';
import { createCallRecords } from '../turn/call-records.ts';
import type { AiSdkCallOptions, Execute } from './ai-sdk-tool.ts';
import { type GuardToolsOptions, guardAiSdkTools } from './guard-ai-sdk-tools.ts';

const REPLY = {
  role: 'assistant',
  content: [{ type: 'tool-call', toolCallId: 'a', toolName: 'slow', input: { x: 1 } }],
};

function setUp(execute: Execute, options: Partial<GuardToolsOptions> = {}) {
  const { clock } = createVirtualWorld();
  const token = new CancellationToken({ clock });
  const calls = createCallRecords();
  const tools = guardAiSdkTools({ slow: { description: 'Slow', execute } }, { token, calls, ...options });
  const run = (call: Partial<AiSdkCallOptions> = {}) => tools.slow.execute({ x: 1 }, { toolCallId: 'a', ...call });
  return { clock, token, calls, tools, run };
}

async function settle(work: unknown): Promise<{ value?: unknown; error?: unknown }> {
  try {
    return { value: await work };
  } catch (error) {
    return { error };
  }
}

test('a tool that is left alone returns and fails as it would', async () => {
  const { run, calls, token } = setUp((input, options) => Promise.resolve({ input, ...options }));
  expect(await run({ messages: [] })).toMatchObject({ input: { x: 1 }, toolCallId: 'a', messages: [] });
  expect(calls.find('a')).toMatchObject({ tool: 'slow', state: 'finished', output: { input: { x: 1 } } });
  // A key for its effect, which a provider can know it by.
  const { effectKey } = calls.find('a')!;
  expect(calls.find('a')).toMatchObject({ output: { effectKey } });
  await run({ toolCallId: 'b' });
  expect(calls.find('b')!.effectKey).not.toBe(effectKey);
  const boom = new Error('boom');
  const failing = setUp(() => {
    throw boom;
  });
  expect(await settle(failing.run())).toEqual({ error: boom });
  expect(failing.calls.find('a')).toMatchObject({ toolCallId: 'a', tool: 'slow', state: 'failed', error: boom });
  expect(token.statistics).toEqual({ children: 0, listeners: 0 });
});

describe('a deaf tool', () => {
  test('a tool that ignores its signal delays a stop no longer than the ladder; its late result reaches only the records', async () => {
    const held = Promise.withResolvers<string>();
    const { run, clock, token, calls } = setUp(() => held.promise);
    let isQuiet = false;
    const ending = settle(run());
    const quiet = calls.waitForIdle().then(() => (isQuiet = true));
    token.cancel({ kind: 'user' }, { mode: 'now' });
    await clock.advance(1_999);
    expect(isQuiet).toBe(false);
    await clock.advance(1);
    const { error } = await ending;
    await quiet;
    expect(error).toMatchObject({ code: 'CANCELLED', partial: { state: 'unknown' }, reason: { kind: 'user' } });
    expect(calls.find('a')).toMatchObject({ state: 'unknown', reason: { kind: 'user' } });
    held.resolve('at last');
    await flushMicrotasks();
    expect(calls.find('a')).toMatchObject({ state: 'unknown', late: { state: 'finished', value: 'at last' } });
    expect(clock.pending).toBe(0);
  });

  test('past its own time limit it is given up and the loop continues', async () => {
    const { run, clock, calls } = setUp(() => new Promise(() => {}), { bounds: { slow: { timeoutMs: 300 } } });
    const ending = settle(run());
    await clock.advance(2_300);
    expect((await ending).error).toBeInstanceOf(CallTimeoutError);
    expect(calls.find('a')).toMatchObject({ state: 'unknown', reason: { kind: 'deadline' } });
  });

  test('the signal of the loop alone bounds it too', async () => {
    const { clock } = createVirtualWorld();
    using token = new CancellationToken({ clock });
    const controller = new AbortController();
    const { run } = setUp(() => new Promise(() => {}), { token });
    const ending = settle(run({ abortSignal: controller.signal }));
    controller.abort();
    await clock.advance(2_000);
    expect(isCancelledError((await ending).error)).toBe(true);
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  });
});

test('a tool that listens is interrupted immediately', async () => {
  const { run, token, calls } = setUp(
    (_, { abortSignal }) =>
      new Promise((_resolve, reject) =>
        abortSignal!.addEventListener('abort', () => reject(abortSignal!.reason as Error), { once: true }),
      ),
  );
  const ending = settle(run());
  token.cancel({ kind: 'superseded' }, { mode: 'now' });
  token.cancel({ kind: 'user' }, { mode: 'kill' });
  expect((await ending).error).toMatchObject({ partial: { state: 'interrupted' }, reason: { kind: 'superseded' } });
  expect(calls.find('a')).toMatchObject({ state: 'interrupted', reason: { kind: 'superseded' } });
});

test('cancelled before it starts, it does not start', async () => {
  const execute = vi.fn();
  const { run, token, calls } = setUp(execute);
  token.cancel({ kind: 'user' });
  expect((await settle(run())).error).toMatchObject({ code: 'CANCELLED' });
  expect(execute).not.toHaveBeenCalled();
  expect(calls.find('a')).toMatchObject({ state: 'not-started' });
});

test('a drain lets it finish', async () => {
  const held = Promise.withResolvers<string>();
  const { run, token, clock } = setUp(() => held.promise);
  const ending = settle(run());
  token.cancel({ kind: 'user' });
  await clock.advance(9_000);
  held.resolve('done');
  expect(await ending).toEqual({ value: 'done' });
});

test('a tool that must finish gets no signal, and the cancel that waits for it reports it', async () => {
  const held = Promise.withResolvers<string>();
  const onWait = vi.fn();
  let signal: AbortSignal | undefined;
  const { run, token, clock, calls } = setUp(
    (_, { abortSignal }) => {
      signal = abortSignal;
      return held.promise;
    },
    { bounds: { slow: { whenCancelled: 'finish', timeoutMs: 10_000 } }, onWait },
  );
  const ending = settle(run());
  token.cancel({ kind: 'user' }, { mode: 'kill' });
  await clock.advance(9_999);
  expect(signal?.aborted).toBe(false);
  expect(onWait).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({ toolCallId: 'a', tool: 'slow', level: 'kill' }),
  );
  held.resolve('booked');
  expect(await ending).toEqual({ value: 'booked' });
  expect(calls.find('a')).toMatchObject({ state: 'finished', output: 'booked' });
});

describe('a tool that streams', () => {
  async function take(stream: unknown, seen: unknown[]): Promise<void> {
    for await (const value of stream as AsyncIterable<unknown>) seen.push(value);
  }

  test('a guarded streaming tool shows its output so far; the last output is its result', async () => {
    const { run, calls } = setUp(async function* () {
      yield 'one';
      await flushMicrotasks();
      yield 'two';
    });
    const seen: unknown[] = [];
    await take(run(), seen);
    expect(seen).toEqual(['one', 'two']);
    expect(calls.find('a')).toMatchObject({ state: 'finished', output: 'two' });
  });

  test('a tool that streams never waits for its reader, who then misses the oldest values', async () => {
    const { run, calls } = setUp(async function* () {
      for (let step = 0; step < 1_000; step++) yield await Promise.resolve(step);
    });
    const stream = run();
    await calls.waitForIdle();
    const seen: unknown[] = [];
    await take(stream, seen);
    expect(seen).toHaveLength(100);
    expect(seen.at(-1)).toBe(999);
  });

  test('a streaming tool that fails keeps its output before the failure', async () => {
    const { run } = setUp(async function* () {
      yield 'one';
      await flushMicrotasks();
      throw new Error('boom');
    });
    const seen: unknown[] = [];
    await expect(take(run(), seen)).rejects.toThrow('boom');
    expect(seen).toEqual(['one']);
  });

  test('a streaming tool that ends before its reader starts leaves no rejection behind', async () => {
    // An unhandled rejection fails the file.
    const failing = setUp(async function* () {
      await Promise.resolve();
      yield* [];
      throw new Error('boom');
    });
    const failed = failing.run();
    await flushMicrotasks();
    await expect(take(failed, [])).rejects.toThrow('boom');

    const { run, token, calls } = setUp(async function* (_, { abortSignal }) {
      yield 'one';
      await new Promise((_resolve, reject) =>
        abortSignal!.addEventListener('abort', () => reject(abortSignal!.reason as Error), { once: true }),
      );
    });
    run();
    await flushMicrotasks();
    token.cancel({ kind: 'user' }, { mode: 'now' });
    await flushMicrotasks();
    expect(calls.find('a')).toMatchObject({ state: 'interrupted' });
  });

  test('a tool that streams continues when its reader leaves', async () => {
    const held = Promise.withResolvers<void>();
    const { run, calls } = setUp(async function* () {
      yield 'one';
      await held.promise;
      yield 'two';
    });
    const reader = (run() as AsyncIterable<unknown>)[Symbol.asyncIterator]();
    expect(await reader.next()).toEqual({ done: false, value: 'one' });
    const pending = reader.next();
    expect(await reader.return?.()).toEqual({ done: true, value: undefined });
    expect(await pending).toEqual({ done: true, value: undefined });
    expect(calls.find('a')).toMatchObject({ state: 'running' });
    held.resolve();
    await calls.waitForIdle();
    expect(calls.find('a')).toMatchObject({ state: 'finished', output: 'two' });
  });

  /** A tool that ignores its signal and sends one mail per step. */
  function mailer(clock: VirtualClock) {
    const sent: number[] = [];
    let cleaned = false;
    const tool = async function* () {
      try {
        for (let step = 1; step <= 9; step++) {
          sent.push(step);
          yield `sent ${step}`;
          await new Promise<void>((resolve) => void clock.setTimer(100, resolve));
        }
      } finally {
        cleaned = true;
      }
    };
    return { sent, tool, isCleaned: () => cleaned };
  }

  test.each<[string, StopMode, Partial<GuardToolsOptions>, number, object]>([
    ['asked to stop now, returns at its next value', 'now', {}, 3, { state: 'interrupted' }],
    ['killed, is abandoned and returns at its next value', 'kill', {}, 3, { state: 'unknown' }],
    ['asked to drain, continues to its end', 'graceful', {}, 9, { state: 'finished', output: 'sent 9' }],
    [
      'that must finish, continues to its end',
      'now',
      { bounds: { slow: { whenCancelled: 'finish', timeoutMs: 5_000 } } },
      9,
      { state: 'finished', output: 'sent 9' },
    ],
    [
      'still running when its drain is over, returns at its next value',
      { drainMs: 400, abortMs: 2_000 },
      {},
      7,
      { state: 'interrupted' },
    ],
  ])('a streaming tool, %s', async (_, mode, options, steps, record) => {
    const { clock } = createVirtualWorld();
    const { sent, tool, isCleaned } = mailer(clock);
    using token = new CancellationToken({ clock });
    const { run, calls } = setUp(tool, { token, ...options });
    const ending = settle(take(run(), []));
    await clock.advance(120);
    token.cancel({ kind: 'user' }, { mode });
    await clock.advance(3_000);
    const { error } = await ending;
    expect(sent).toHaveLength(steps);
    expect(isCleaned()).toBe(true);
    expect(calls.find('a')).toMatchObject(record);
    expect(error === undefined).toBe(steps === 9);
    const told = JSON.stringify(closeOpenCalls([{ role: 'user', content: 'Go' }, REPLY], calls));
    if (calls.find('a')?.state === 'interrupted') expect(told).toContain(String.raw`Output so far:\nsent ${steps}`);
  });

  test('a streaming tool that is cancelled while its value is shown is not asked for another', async () => {
    let steps = 0;
    const { run, token, calls } = setUp(async function* () {
      while (steps < 1_000) yield await Promise.resolve(++steps);
    });
    const reading = (async () => {
      for await (const value of run() as AsyncIterable<unknown>) token.cancel(`at ${String(value)}`, { mode: 'now' });
    })();
    await expect(reading).rejects.toMatchObject({ partial: { state: 'interrupted' } });
    const taken = steps;
    await flushMicrotasks();
    expect(steps).toBe(taken);
    expect(calls.find('a')).toMatchObject({ state: 'interrupted' });
  });

  test('a streaming tool that ignores its signal ends with the ladder, and later values are dropped', async () => {
    const held = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    const { run, clock, token, calls } = setUp(async function* () {
      try {
        yield 'one';
        await held.promise;
        yield 'two';
      } finally {
        left.resolve();
      }
    });
    const seen: unknown[] = [];
    const ending = settle(take(run(), seen));
    await flushMicrotasks();
    token.cancel({ kind: 'user' }, { mode: 'now' });
    await clock.advance(2_000);
    expect((await ending).error).toMatchObject({ partial: { state: 'unknown' } });
    held.resolve();
    await left.promise;
    expect(seen).toEqual(['one']);
    expect(calls.find('a')).toMatchObject({ state: 'unknown' });
  });
});

test('500 calls leave nothing on a token or a signal', async () => {
  const { run, token, clock } = setUp(() => 'quick');
  const { signal } = new AbortController();
  for (let round = 0; round < 500; round++) await run({ toolCallId: `call-${round}`, abortSignal: signal });
  expect(token.statistics).toEqual({ children: 0, listeners: 0 });
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  expect(clock.pending).toBe(0);
});

test('tools that run elsewhere stay as they are; bounds for a tool that is not there are rejected', () => {
  const elsewhere = { description: 'In the browser' };
  expect(guardAiSdkTools({ elsewhere }, {}).elsewhere).toBe(elsewhere);
  expect(() => guardAiSdkTools({ elsewhere }, { bounds: { elsewere: { timeoutMs: 1 } } })).toThrow(
    /no tool 'elsewere'; did you mean 'elsewhere'\? The tools are elsewhere/,
  );
});

test('the oldest records of ended calls are dropped first, and never one of a call that runs', () => {
  const calls = createCallRecords({ maxRecords: 2 });
  for (const toolCallId of ['a', 'b', 'c']) {
    const { callId } = calls.begin({ toolCallId, tool: 't' });
    if (toolCallId !== 'a') calls.update(callId, { state: 'finished' });
  }
  expect(calls.records().map(({ toolCallId }) => toolCallId)).toEqual(['a', 'c']);
});

test('a late result of a call changes nothing of a newer call with the same id', async () => {
  const held = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const calls = createCallRecords();
  let started = 0;
  const tools = { book: { execute: () => held[started++]!.promise } };
  using first = new CancellationToken();
  using second = new CancellationToken();
  const run = (token: CancellationToken) =>
    settle((guardAiSdkTools(tools, { token, calls }).book.execute as Execute)({}, { toolCallId: 'call_0' }));
  const given = run(first);
  first.cancel({ kind: 'user' }, { mode: 'kill' });
  await given;
  const ending = run(second);
  let isQuiet = false;
  const quiet = calls.waitForIdle().then(() => (isQuiet = true));
  held[0]!.resolve('first, late');
  await flushMicrotasks();
  expect(isQuiet).toBe(false);
  expect(calls.find('call_0')).toMatchObject({ state: 'running' });
  expect(calls.records()[0]).toMatchObject({ state: 'unknown', late: { value: 'first, late' } });
  held[1]!.resolve('second');
  expect(await ending).toEqual({ value: 'second' });
  await quiet;
  expect(calls.records().map(({ state, output }) => [state, output])).toEqual([
    ['unknown', undefined],
    ['finished', 'second'],
  ]);
});

test('a tool that fails with the cancel of something else has failed', async () => {
  using other = new CancellationToken();
  other.cancel({ kind: 'user', message: 'not ours' });
  const error = new CancelledError(other.reason!, { partial: { state: 'interrupted' } });
  const { run, calls } = setUp(() => Promise.reject(error));
  expect(await settle(run())).toEqual({ error });
  expect(calls.find('a')).toMatchObject({ state: 'failed', error });
});

test('an interrupted tool’s error is kept', async () => {
  const { run, token, calls } = setUp(
    (_, { abortSignal }) =>
      new Promise((_resolve, reject) =>
        abortSignal!.addEventListener('abort', () => reject(new Error('half written')), { once: true }),
      ),
  );
  const ending = settle(run());
  token.cancel({ kind: 'user' }, { mode: 'now' });
  await ending;
  expect(calls.find('a')).toMatchObject({ state: 'interrupted', error: { message: 'half written' } });
});

test('a tool that stops at its own time limit was interrupted by it', async () => {
  const { run, clock, calls } = setUp(
    (_, { abortSignal }) =>
      new Promise((_resolve, reject) =>
        abortSignal!.addEventListener('abort', () => reject(abortSignal!.reason as Error), { once: true }),
      ),
    { bounds: { slow: { timeoutMs: 300 } } },
  );
  const ending = settle(run());
  await clock.advance(300);
  expect((await ending).error).toBeInstanceOf(CallTimeoutError);
  expect(calls.find('a')).toMatchObject({ state: 'interrupted', reason: { kind: 'deadline' } });
});

describe('a call that was approved', () => {
  const messages = [
    { role: 'user', content: 'Go' },
    {
      role: 'assistant',
      content: [
        { type: 'tool-call', toolCallId: 'a', toolName: 'slow', input: { x: 1 } },
        { type: 'tool-approval-request', approvalId: 'p', toolCallId: 'a' },
      ],
    },
    { role: 'tool', content: [{ type: 'tool-approval-response', approvalId: 'p', approved: true }] },
  ];

  test('runs once, however often its loop asks, and gives the same result', async () => {
    const execute = vi.fn(() => 'paid');
    const { run, calls } = setUp(execute);
    expect(await run({ messages })).toBe('paid');
    expect(await run({ messages })).toBe('paid');
    expect(await run({ messages: structuredClone(messages) })).toBe('paid');
    expect(execute).toHaveBeenCalledTimes(1);
    expect(calls.records()).toMatchObject([{ state: 'finished', trace: { approvalId: 'p' } }]);
  });

  test('runs once when its history is sent twice at the same time', async () => {
    const held = Promise.withResolvers<string>();
    const execute = vi.fn(() => held.promise);
    const { run } = setUp(execute);
    const first = run({ messages });
    expect(() => run({ messages })).toThrow('Outcome unknown: it is still running.');
    held.resolve('paid');
    expect(await first).toBe('paid');
    expect(execute).toHaveBeenCalledTimes(1);
  });

  test('an approved call is not run again after it failed or was stopped, and reports how it ended', async () => {
    const failing = setUp(() => {
      throw new Error('declined');
    });
    expect(await settle(failing.run({ messages }))).toMatchObject({ error: { message: 'declined' } });
    expect(() => failing.run({ messages })).toThrow('declined');
    const stopped = setUp(() => expect.unreachable('it must not start'));
    stopped.token.cancel({ kind: 'user' });
    expect(await settle(stopped.run({ messages }))).toMatchObject({ error: { code: 'CANCELLED' } });
    expect(() => stopped.run({ messages })).toThrow('Not started: cancelled (user). It had no effect.');
    expect(stopped.calls.records()).toHaveLength(1);
  });

  test('a later call of the same turn that got its id again is another call', async () => {
    const { run, calls, tools } = setUp((input) => `paid ${(input as { x: number }).x}`);
    expect(await run({ messages })).toBe('paid 1');
    // `ai` 7 passes the messages of the turn's start to the calls of its first reply.
    expect(await tools.slow.execute({ x: 2 }, { toolCallId: 'a', messages })).toBe('paid 2');
    expect(calls.records().map(({ trace }) => trace.approvalId)).toEqual(['p', undefined]);
  });

  test('the same call under another approval is another call', async () => {
    const execute = vi.fn(() => 'paid');
    const { run, calls } = setUp(execute);
    await run({ messages });
    await run({ messages: JSON.parse(JSON.stringify(messages).replaceAll('"p"', '"q"')) as typeof messages });
    await run({ messages: messages.slice(0, 1) });
    expect(execute).toHaveBeenCalledTimes(3);
    expect(calls.records().map(({ trace }) => trace.approvalId)).toEqual(['p', 'q', undefined]);
  });
});
