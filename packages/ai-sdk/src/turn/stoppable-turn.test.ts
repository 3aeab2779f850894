import { getEventListeners } from 'node:events';
import { CancellationToken } from '@whoa/core';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { describe, expect, test } from 'vitest';
import type { Execute } from '../tools/ai-sdk-tool.ts';
import { createCallRecords } from './call-records.ts';
import { createStoppableTurn, type StoppableTurnOptions } from './stoppable-turn.ts';

const history = [{ role: 'user', content: 'Go' }];

type Options = StoppableTurnOptions<{ work: { execute: Execute } }, (typeof history)[0]>;

function setUp(
  execute: Execute = () => 'done',
  options: Partial<Omit<Options, 'token'>> & { readonly token?: undefined } = {},
) {
  const { clock } = createVirtualWorld();
  const token = new CancellationToken({ clock });
  const calls = createCallRecords();
  const turn = createStoppableTurn({ history, tools: { work: { execute } }, calls, token, ...options } as Options);
  const state = { isSettled: false };
  const watch = () => {
    turn.settled.then(
      () => (state.isSettled = true),
      () => {},
    );
    return flushMicrotasks();
  };
  const run = () => turn.tools.work.execute({}, { toolCallId: 'a', messages: history });
  return { clock, token, calls, turn, run, watch, state };
}

/** What `streamText` does with the turn's stream, read to its end. */
function openStream(turn: ReturnType<typeof setUp>['turn']) {
  const { readable, writable } = turn.experimental_transform() as TransformStream<string, string>;
  const writer = writable.getWriter();
  const reading = (async () => {
    const seen: string[] = [];
    for await (const part of readable) seen.push(part);
    return seen;
  })();
  return { writer, reading };
}

test('a turn spreads only the options of a loop', () => {
  const { turn } = setUp();
  expect(Object.keys({ ...turn }).sort()).toEqual([
    'abortSignal',
    'experimental_transform',
    'messages',
    'onStepFinish',
    'prepareStep',
    'providerOptions',
    'stopWhen',
    'tools',
  ]);
  expect(turn.messages).toEqual(history);
});

describe('settled', () => {
  test('waits for the end of the stream, however early it is awaited', async () => {
    const { turn, run, watch, state, token } = setUp();
    const awaiting = watch();
    const { writer, reading } = openStream(turn);
    await awaiting;
    await writer.write('a');
    expect(await run()).toBe('done');
    expect(state.isSettled).toBe(false);
    await writer.write('b');
    await writer.close();
    expect(await reading).toEqual(['a', 'b']);
    expect(await turn.settled).toMatchObject({ calls: [{ tool: 'work', state: 'finished' }] });
    expect(token.statistics).toEqual({ children: 0, listeners: 0 });
  });

  test('waits for a call that outlives the stream', async () => {
    const held = Promise.withResolvers<string>();
    const { turn, run, watch, state } = setUp(() => held.promise);
    const { writer, reading } = openStream(turn);
    const ending = run();
    await writer.close();
    await reading;
    await watch();
    expect(state.isSettled).toBe(false);
    held.resolve('done');
    await ending;
    expect(await turn.settled).toMatchObject({ calls: [{ state: 'finished' }] });
  });

  test('the turn settles by the end of the ladder even if no one reads the stream and the tool ignores its signal', async () => {
    const { turn, run, watch, state, token, clock } = setUp(() => new Promise(() => {}));
    const { writable } = turn.experimental_transform() as TransformStream<string, string>;
    const writing = writable
      .getWriter()
      .write('unread')
      .catch(() => {});
    const ending = Promise.resolve(run()).catch(() => {});
    await watch();
    token.cancel({ kind: 'user' });
    await clock.advance(11_999);
    expect(state.isSettled).toBe(false);
    await clock.advance(1);
    expect(await turn.settled).toMatchObject({ reason: { kind: 'user' }, calls: [{ state: 'unknown' }] });
    await ending;
    expect(clock.pending).toBe(0);
    expect(writing).toBeInstanceOf(Promise);
  });

  test.each(['graceful', 'now', 'kill'] as const)('waits for a tool that cancels its own turn (%s)', async (mode) => {
    const held = Promise.withResolvers<string>();
    const { turn, run, token, calls, clock } = setUp(() => {
      token.cancel({ kind: 'user' }, { mode });
      return held.promise;
    });
    const { writer, reading } = openStream(turn);
    const ending = Promise.resolve(run()).catch(() => {});
    expect(turn.abortSignal.aborted).toBe(mode !== 'graceful');
    await writer.close();
    await reading;
    if (mode === 'graceful') held.resolve('done');
    await clock.advance(2_000);
    await ending;
    const settled = await turn.settled;
    expect(settled.calls.map(({ state }) => state)).toEqual([mode === 'graceful' ? 'finished' : 'unknown']);
    expect(settled.calls).toEqual(calls.records());
  });

  test('a turn without a stream settles when it is awaited and no call runs; a call after that is rejected', async () => {
    const { turn, run, calls } = setUp();
    expect(await run()).toBe('done');
    const settled = await turn.settled;
    expect(settled.calls).toHaveLength(1);
    await expect(run()).rejects.toMatchObject({ code: 'CANCELLED', reason: { kind: 'parent' } });
    expect(settled.calls).toHaveLength(1);
    expect(calls.records().map(({ state }) => state)).toEqual(['finished', 'not-started']);
  });

  test('a result cannot be changed, and is the same every time it is read', async () => {
    const { turn, token } = setUp();
    token.cancel({ kind: 'user' }, { mode: 'now' });
    const { settled } = turn;
    const first = await settled;
    token.cancel({ kind: 'shutdown' }, { mode: 'kill' });
    expect(await settled).toBe(first);
    expect(await settled.finally(() => {})).toBe(first);
    expect(await settled.catch(() => {})).toBe(first);
    expect(Object.isFrozen(first)).toBe(true);
    expect(Object.isFrozen(first.calls)).toBe(true);
  });

  test('a settled turn leaves nothing on the signal of a request', async () => {
    const controller = new AbortController();
    const turn = createStoppableTurn({ history, tools: {}, calls: createCallRecords(), signal: controller.signal });
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1);
    await turn.settled;
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  });

  test('an abort without a stream disposes the turn, though no one waits for it', () => {
    const { token, turn, clock } = setUp();
    token.cancel({ kind: 'user' }, { mode: 'now' });
    expect(turn.abortSignal.aborted).toBe(true);
    expect(token.statistics).toEqual({ children: 0, listeners: 0 });
    token[Symbol.dispose]();
    expect(clock.pending).toBe(0);
  });
});

describe('a drain', () => {
  function drained() {
    const held = Promise.withResolvers<string>();
    const { turn, run, ...rest } = setUp(() => held.promise);
    const { writer, reading } = openStream(turn);
    const ending = Promise.resolve(run());
    rest.token.cancel({ kind: 'user' }, { mode: { drainMs: 4_000, abortMs: 500 } });
    expect(turn.abortSignal.aborted).toBe(false);
    const end = () => {
      held.resolve('done');
      return ending;
    };
    return { ...rest, turn, writer, reading, end };
  }

  test('a drain becomes an abort when the last call has ended and text continues', async () => {
    const { turn, writer, reading, end, token, clock } = drained();
    await end();
    await writer.write('result');
    expect(turn.abortSignal.aborted).toBe(false);
    await clock.advance(0);
    expect(turn.abortSignal.aborted).toBe(true);
    expect(token).toMatchObject({ level: 'drain', reason: { kind: 'user' } });
    await writer.close();
    expect(await reading).toEqual(['result']);
    expect(await turn.settled).toMatchObject({ reason: { kind: 'user' }, calls: [{ state: 'finished' }] });
    token[Symbol.dispose]();
    expect(clock.pending).toBe(0);
  });

  test('a turn lets a loop end that has finished its reply', async () => {
    const { turn, writer, reading, end, token, clock } = drained();
    await end();
    await writer.close();
    await reading;
    await turn.settled;
    expect(turn.abortSignal.aborted).toBe(false);
    token[Symbol.dispose]();
    expect(clock.pending).toBe(0);
  });

  test('waits for the other calls', async () => {
    const held = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
    let started = 0;
    const { turn, run, token, clock } = setUp(() => held[started++]!.promise);
    const endings = [run(), run()];
    token.cancel({ kind: 'user' }, { mode: { drainMs: 4_000, abortMs: 500 } });
    held[0]!.resolve('done');
    await endings[0];
    await clock.advance(3_000);
    expect(turn.abortSignal.aborted).toBe(false);
    held[1]!.resolve('done');
    await endings[1];
    await clock.advance(0);
    expect(turn.abortSignal.aborted).toBe(true);
  });

  test('a drain becomes an abort before the model is asked again', async () => {
    const { turn, end } = drained();
    await end();
    turn.prepareStep({ messages: history });
    expect(turn.abortSignal.aborted).toBe(true);
  });
});

test('a turn’s added messages do not depend on messages that the caller adds meanwhile', async () => {
  const own = [...history];
  const { turn, token } = setUp(() => 'done', { history: own });
  const { writer, reading } = openStream(turn);
  const call = { toolCallId: 'a', toolName: 'work', input: {} };
  const parts = [{ type: 'start-step' }, { type: 'tool-call', ...call }];
  for (const part of parts) await writer.write(part as never);
  await turn.tools.work.execute({}, { toolCallId: 'a', messages: history });
  own.push({ role: 'user', content: 'And?' });
  token.cancel({ kind: 'user' }, { mode: 'now' });
  await writer.close();
  await reading;
  expect((await turn.settled).messages).toEqual([
    { role: 'assistant', content: [{ type: 'tool-call', ...call }] },
    {
      role: 'tool',
      content: [{ type: 'tool-result', toolCallId: 'a', toolName: 'work', output: { type: 'text', value: 'done' } }],
    },
  ]);
});

test('the loop stops at its number of steps, or when the turn is cancelled at any level', () => {
  const { turn, token } = setUp(undefined, { maxSteps: 2 });
  expect(turn.stopWhen({ steps: [1] })).toBe(false);
  expect(turn.stopWhen({ steps: [1, 2] })).toBe(true);
  token.cancel({ kind: 'user' });
  expect(turn.stopWhen({ steps: [] })).toBe(true);
});

test('the history of a later step is closed and valid, too', () => {
  const { turn } = setUp();
  const open = { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'a b', toolName: 'work', input: {} }] };
  const { messages } = turn.prepareStep({ messages: [...history, open] });
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  expect(JSON.stringify(messages)).not.toContain('a b');
});

test.each<[string, Record<string, unknown>, RegExp]>([
  ['nothing that could stop it', { token: undefined }, /^token: .* needs a token or a signal/],
  [
    'a tool that is not there',
    { mustFinish: { wrok: { timeoutMs: 1 } } },
    /^mustFinish: there is no tool 'wrok'; did you mean 'work'\?/,
  ],
  [
    'no bound for a tool',
    { mustFinish: { work: 10_000 } },
    /^mustFinish\.work: expected an object with timeoutMs, got 10000/,
  ],
  [
    'a misspelt bound',
    { mustFinish: { work: { timeout: 1 } } },
    /^mustFinish\.work\.timeout: .*did you mean 'timeoutMs'/,
  ],
  ['an unknown option', { mustfinish: {} }, /^mustfinish: unknown setting; did you mean 'mustFinish'/],
  ['no bound', { mustFinish: { work: {} } }, /mustFinish\.work\.timeoutMs: expected .*, got undefined/],
  ['a bound that never ends', { mustFinish: { work: { timeoutMs: Infinity } } }, /timeoutMs: .* got Infinity/],
  ['no steps', { maxSteps: 0 }, /^maxSteps: expected a whole number from 1.*, got 0/],
  ['a number that is none', { maxSteps: Number.NaN }, /^maxSteps: .* got NaN/],
])('%s is rejected when the turn is made', (_, wrong, words) => {
  expect(() => setUp(undefined, wrong)).toThrow(words);
});
