import { expect, test, vi } from 'vitest';
import { CancellationToken } from '../../stop/token/token.ts';
import { createVirtualWorld, flushMicrotasks } from '../../testing/virtual-world.ts';
import type { TurnEvent } from '../report/events.ts';
import type { Model, ModelPart } from './model.ts';
import { ModelError } from './model.ts';
import { type ReplyError, streamReply } from './stream-reply.ts';

const FINISH: ModelPart = { type: 'finish', stopReason: 'stop' };
const words = (text: string): ModelPart => ({ type: 'text', text });

function setUp(stream: (signal: AbortSignal, token: CancellationToken) => AsyncIterable<ModelPart>) {
  const { clock } = createVirtualWorld();
  const token = new CancellationToken({ clock });
  const events: TurnEvent[] = [];
  const leaveRunning = vi.fn();
  const model: Model = { name: 'm', source: { provider: 'p' }, stream: (_, { signal }) => stream(signal, token) };
  const ask = () =>
    streamReply(
      model,
      { messages: [{ role: 'tool', callId: 'taken', tool: 't', content: '', isError: false }], tools: [] } as never,
      { token, emit: (event) => events.push(event), leaveRunning, idleTimeoutMs: 5_000 },
    );
  const failure = (): Promise<ReplyError> =>
    ask().then(
      () => expect.unreachable('must fail'),
      (error: unknown) => error as ReplyError,
    );
  return { clock, token, events, leaveRunning, ask, failure };
}

async function* parts(...given: ModelPart[]): AsyncGenerator<ModelPart> {
  for (const part of given) yield await Promise.resolve(part);
}

test('the visible parts of a reply are reported as they arrive, under unique ids', async () => {
  const { ask, events, leaveRunning } = setUp(() =>
    parts(
      { type: 'thinking', text: 'hm' },
      { type: 'thinking-end' },
      words('So'),
      { type: 'call-start', callId: 'taken', tool: 't' },
      { type: 'call-arguments', callId: 'taken', text: '{}' },
      { type: 'call-end', callId: 'taken', tool: 't', input: {} },
      { type: 'usage', inputTokens: 1, outputTokens: 2 },
      FINISH,
    ),
  );
  expect(await ask()).toMatchObject({ stopReason: 'tool-use', provider: 'p', usage: { isComplete: true } });
  expect(events).toStrictEqual([
    { type: 'thinking', text: 'hm' },
    { type: 'text', text: 'So' },
    { type: 'call-planned', callId: 'taken-2', tool: 't' },
  ]);
  expect(leaveRunning).not.toHaveBeenCalled();
});

test.each<[string, ModelPart[], object]>([
  ['before anything', [], { hasShown: false, hasStarted: false, content: [] }],
  ['before any word', [{ type: 'usage', inputTokens: 1 }], { hasShown: false, hasStarted: true, content: [] }],
  ['after words', [words('So')], { hasShown: true, hasStarted: true, content: [{ type: 'text', text: 'So' }] }],
])(
  'a stream that ends %s is reported as cut off, with its text',
  async (_, given, { content, ...had }: { content?: unknown }) => {
    const error = await setUp(() => parts(...given)).failure();
    expect(error).toMatchObject({
      name: 'ReplyError',
      code: 'REPLY_TRUNCATED',
      message: 'The stream ended before the reply was complete',
      cause: { isRetryable: true },
      partial: { role: 'assistant', content, stopReason: 'error' },
      ...had,
    });
  },
);

test.each<[ModelPart, string]>([
  [{ type: 'text' } as ModelPart, "The model sent a 'text' whose text is not a string"],
  [{ type: 'thinking', text: 7 } as never, "The model sent a 'thinking' whose text is not a string"],
  [{ type: 'call-start', callId: 'c' } as never, "The model sent a 'call-start' whose tool is not a string"],
  [{ type: 'call-arguments', text: '' } as never, "The model sent a 'call-arguments' whose callId is not a string"],
  [{ type: 'call-end', callId: 'c' } as never, "The model sent a 'call-end' whose tool is not a string"],
  [{ type: 'finish', stopReason: 'error' }, "The model's reply was cut off"],
])('%j fails the reply permanently', async (part, message) => {
  const error = await setUp(() => parts(words('So'), part)).failure();
  expect(error).toMatchObject({ message, cause: { isRetryable: false }, partial: { stopReason: 'error' } });
  expect(error.cause).toBeInstanceOf(ModelError);
});

test('the arguments of calls count into the length of a reply, which may reach its limit', async () => {
  const text = 'x'.repeat(2_000_000);
  const given: ModelPart[] = [words(text), { type: 'call-arguments', callId: 'c', text }];
  expect(await setUp(() => parts(...given, FINISH)).ask()).toMatchObject({ stopReason: 'stop' });
  expect(await setUp(() => parts(...given, words('x'), FINISH)).failure()).toMatchObject({
    message: 'The reply is longer than 4000000 characters',
    cause: { isRetryable: false },
    partial: { content: [{ text }] },
  });
});

test('cancelled, it is what had come, and what still runs is named', async () => {
  const { ask, token, leaveRunning } = setUp(async function* () {
    yield words('So');
    await new Promise(() => {});
  });
  const reply = ask();
  await flushMicrotasks();
  token.cancel();
  expect(await reply).toMatchObject({ content: [{ text: 'So' }], stopReason: 'aborted', usage: { isComplete: false } });
  expect(leaveRunning.mock.calls).toEqual([['model stream', expect.any(Promise)]]);
});

test('a stream that was cancelled before its first part is not read', async () => {
  const next = vi.fn(() => new Promise<never>(() => {}));
  const { ask, token } = setUp(() => ({ [Symbol.asyncIterator]: () => ({ next }) }));
  token.cancel();
  expect(await ask()).toMatchObject({ content: [], stopReason: 'aborted' });
  expect(next).not.toHaveBeenCalled();
});

test('cancelled where the model cannot even begin, it is a reply without words', async () => {
  const { ask } = setUp((_, token) => {
    token.cancel();
    throw new Error('no network');
  });
  expect(await ask()).toMatchObject({ content: [], stopReason: 'aborted' });
});

test('a model that cannot even begin fails the reply, and nothing of it is left', async () => {
  const { failure, token } = setUp(() => {
    throw new Error('no network');
  });
  expect(await failure()).toMatchObject({ message: 'no network', hasStarted: false, hasShown: false });
  expect(token.statistics).toEqual({ children: 0, listeners: 0 });
});

test('a whole reply stays whole if its stream fails, falls silent or is cancelled then', async () => {
  const whole = { content: [{ text: 'So' }], stopReason: 'stop' };
  const failing = setUp(async function* () {
    yield* parts(words('So'), FINISH);
    throw new Error('reset');
  });
  expect(await failing.ask()).toMatchObject(whole);
  expect(failing.leaveRunning).not.toHaveBeenCalled();
  const open = (): AsyncIterable<ModelPart> =>
    (async function* () {
      yield* parts(words('So'), FINISH);
      await new Promise(() => {});
    })();
  const silent = setUp(open);
  const reply = silent.ask();
  await silent.clock.advance(1_000);
  expect(await reply).toMatchObject(whole);
  const cancelled = setUp(open);
  const other = cancelled.ask();
  await flushMicrotasks();
  cancelled.token.cancel();
  expect(await other).toMatchObject(whole);
});

test('a stream is silent when nothing came for the whole time, counted from the last part', async () => {
  let wire: AbortSignal | undefined;
  const { ask, clock } = setUp((signal) => {
    wire = signal;
    return (async function* () {
      for (let n = 0; n < 3; n++) {
        await new Promise<void>((resolve) => clock.setTimer(4_000, resolve));
        yield words('x');
      }
      await new Promise(() => {});
    })();
  });
  const reply = ask().catch((error: unknown) => error);
  await clock.advance(12_000 + 4_999);
  expect(await Promise.race([reply, flushMicrotasks().then(() => 'waits')])).toBe('waits');
  await clock.advance(1);
  expect(await reply).toMatchObject({
    message: 'The model sent nothing for 5000 ms',
    cause: { isRetryable: true },
    partial: { content: [{ text: 'xxx' }] },
  });
  expect(wire?.reason).toMatchObject({ message: 'Cancelled (deadline)' });
  expect(clock.pending).toBe(0);
});

test('the signal of a stream fires when it is no longer read, and nothing is left', async () => {
  let fired: AbortSignal | undefined;
  const { ask, token, clock } = setUp((signal) => {
    fired = signal;
    return parts(words('So'), FINISH);
  });
  await ask();
  expect(fired?.aborted).toBe(true);
  expect(token.statistics).toEqual({ children: 0, listeners: 0 });
  expect(clock.pending).toBe(0);
});
