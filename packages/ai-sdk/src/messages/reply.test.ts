import { CancellationToken, isCancelledError } from '@whoa/core';
import type { ModelRequest } from '@whoa/core/model';
import { expect, test, vi } from 'vitest';
import { type AiSdkModel, fromAiSdk } from '../from-ai-sdk.ts';

const hello: ModelRequest = { messages: [{ role: 'user', content: 'Hello?' }], tools: [] };

/** A package that listens to nothing. */
function deafModel(stream: () => Promise<{ stream: ReadableStream }>): AiSdkModel {
  return { specificationVersion: 'v4', provider: 'deaf', modelId: 'm', doStream: stream } as unknown as AiSdkModel;
}

test('a package that never responds cannot block the cancel', async () => {
  const opening = Promise.withResolvers<{ stream: ReadableStream }>();
  const controller = new AbortController();
  const iterator = fromAiSdk(deafModel(() => opening.promise))
    .stream(hello, controller)
    [Symbol.asyncIterator]();
  const pending = iterator.next();
  controller.abort();
  await expect(pending).rejects.toMatchObject({ name: 'AbortError' });
  // A stream that arrives too late is discarded right away.
  const cancelled = Promise.withResolvers<void>();
  opening.resolve({ stream: new ReadableStream({ cancel: () => cancelled.resolve() }) });
  await cancelled.promise;
});

test('a stream whose cancel never returns cannot hold the cancel up', async () => {
  const stream = new ReadableStream({
    start: (controller) => controller.enqueue({ type: 'text-delta', id: '0', delta: 'Hi' }),
    cancel: () => new Promise(() => {}),
  });
  const controller = new AbortController();
  const iterator = fromAiSdk(deafModel(() => Promise.resolve({ stream })))
    .stream(hello, controller)
    [Symbol.asyncIterator]();
  expect(await iterator.next()).toEqual({ done: false, value: { type: 'text', text: 'Hi' } });
  const pending = iterator.next();
  controller.abort();
  await expect(pending).rejects.toMatchObject({ name: 'AbortError' });
});

test('parts that had been read before the cancel are passed on first', async () => {
  let enqueue: (part: unknown) => void = () => {};
  const stream = new ReadableStream({
    start(controller) {
      enqueue = (part) => controller.enqueue(part);
    },
  });
  const controller = new AbortController();
  const iterator = fromAiSdk(deafModel(() => Promise.resolve({ stream })))
    .stream(hello, controller)
    [Symbol.asyncIterator]();
  const first = iterator.next();
  enqueue({ type: 'tool-call', toolCallId: 'a', toolName: 'bash', input: '{}' });
  expect((await first).value).toMatchObject({ type: 'call-start' });
  controller.abort();
  expect((await iterator.next()).value).toMatchObject({ type: 'call-arguments' });
  expect((await iterator.next()).value).toMatchObject({ type: 'call-end' });
  await expect(iterator.next()).rejects.toMatchObject({ name: 'AbortError' });
  expect((await iterator.next()).done).toBe(true);
});

test('the reason of a token travels with the error', async () => {
  using token = new CancellationToken();
  const iterator = fromAiSdk(deafModel(() => new Promise(() => {})))
    .stream(hello, token)
    [Symbol.asyncIterator]();
  const pending = iterator.next();
  token.cancel({ kind: 'superseded', by: 'ada' }, { mode: 'now' });
  const error = await pending.catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: 'AbortError', cause: { kind: 'superseded', by: 'ada' } });
  expect(isCancelledError(error)).toBe(false);
});

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 2 } };
const finish = { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage };

test('a reply that is complete ends, though its stream stays open', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const closed = vi.fn();
    const stream = new ReadableStream({ start: (controller) => controller.enqueue(finish), cancel: closed });
    const iterator = fromAiSdk(deafModel(() => Promise.resolve({ stream })))
      .stream(hello, new AbortController())
      [Symbol.asyncIterator]();
    expect((await iterator.next()).value).toMatchObject({ type: 'usage', outputTokens: 2 });
    expect((await iterator.next()).value).toEqual({ type: 'finish', stopReason: 'stop' });
    const end = iterator.next();
    await vi.advanceTimersByTimeAsync(500);
    expect(await end).toEqual({ done: true, value: undefined });
    expect(closed).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

test('a stream that breaks behind a complete reply harms nothing', async () => {
  let isRead = false;
  const stream = new ReadableStream({
    pull(controller) {
      if (isRead) controller.error(new Error('socket hang up'));
      else controller.enqueue(finish);
      isRead = true;
    },
  });
  const types: string[] = [];
  for await (const { type } of fromAiSdk(deafModel(() => Promise.resolve({ stream }))).stream(
    hello,
    new AbortController(),
  ))
    types.push(type);
  expect(types).toEqual(['usage', 'finish']);
});
