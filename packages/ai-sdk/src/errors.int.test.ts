import { ModelError, type ModelPart, type ModelRequest } from '@whoa/core/model';
import { describe, expect, test } from 'vitest';
import { loopbackModel, spoken } from '../../../test/ai-sdk/providers.ts';
import { type ScriptedResponse, startLoopbackProvider } from './testing/index.ts';

const hello: ModelRequest = { messages: [{ role: 'user', content: 'Hello?' }], tools: [] };

type Spoken = (typeof spoken)[number];

async function callAndFail([format, version]: Spoken, answer: ScriptedResponse) {
  await using provider = await startLoopbackProvider({ script: [answer] });
  const parts: ModelPart[] = [];
  try {
    const { signal } = new AbortController();
    for await (const part of loopbackModel(format, provider.url, version).stream(hello, { signal })) parts.push(part);
  } catch (error) {
    // Whatever went wrong, the connection is released.
    await provider.waitForIdle();
    return { parts, error: error as ModelError };
  }
  throw new Error('It did not fail');
}

describe.each(spoken)('%s (%s): a failure', (format, version) => {
  const mode: Spoken = [format, version];

  test.each([
    [429, true],
    [529, true],
    [500, true],
    [503, true],
    [400, false],
    [401, false],
    [404, false],
  ])('status %i: may be sent again: %s', async (status, isRetryable) => {
    const { error } = await callAndFail(mode, { status, message: 'Not now' });
    expect(error).toBeInstanceOf(ModelError);
    expect(error).toMatchObject({ status, isRetryable, retryAfterMs: undefined });
    expect(error.message).toMatch(new RegExp(`answered ${status}: Not now`));
  });

  test('an error contains how long the provider asked us to wait', async () => {
    const seconds = await callAndFail(mode, { status: 429, headers: { 'retry-after': '7' } });
    expect(seconds.error).toMatchObject({ isRetryable: true, retryAfterMs: 7_000 });
    const ms = await callAndFail(mode, { status: 529, headers: { 'retry-after-ms': '350', 'retry-after': '1' } });
    expect(ms.error).toMatchObject({ isRetryable: true, retryAfterMs: 350 });
    const date = 'Wed, 21 Oct 2026 07:28:00 GMT';
    const until = await callAndFail(mode, {
      status: 503,
      headers: { 'retry-after': 'Wed, 21 Oct 2026 07:28:30 GMT', date },
    });
    expect(until.error).toMatchObject({ retryAfterMs: 30_000 });
  });

  test('the vendor knows better than the status', async () => {
    const { error } = await callAndFail(mode, { status: 500, headers: { 'x-should-retry': 'false' } });
    expect(error.isRetryable).toBe(false);
  });

  test('a connection that breaks may be tried again; what arrived is there', async () => {
    const early = await callAndFail(mode, { parts: [{ cut: true }] });
    expect(early.error).toMatchObject({ name: 'ModelError', isRetryable: true });
    let open: () => void = () => {};
    const gate = new Promise<void>((resolve) => (open = resolve));
    await using provider = await startLoopbackProvider({
      script: [{ parts: [{ text: ['Half a ', { stall: gate }, { cut: true }] }] }],
    });
    const parts: ModelPart[] = [];
    const reading = (async () => {
      const { signal } = new AbortController();
      for await (const part of loopbackModel(format, provider.url, version).stream(hello, { signal })) {
        parts.push(part);
        if (part.type === 'text') open();
      }
    })();
    await expect(reading).rejects.toMatchObject({ name: 'ModelError', isRetryable: true });
    expect(parts.filter(({ type }) => type === 'text')).toEqual([{ type: 'text', text: 'Half a ' }]);
  });

  test('a stream that ends in good order but too early is a failure, not a reply', async () => {
    const { error } = await callAndFail(mode, { parts: [{ text: ['Half a ', { end: true }] }] });
    expect(error).toMatchObject({ name: 'ModelError', isRetryable: true });
    expect(error.message).toMatch(/was cut off/);
  });

  test('an empty body is a failure', async () => {
    const { error } = await callAndFail(mode, { parts: [{ end: true }] });
    expect(error).toMatchObject({ name: 'ModelError', isRetryable: true });
  });

  test('an unreadable frame may be retried as long as nothing was shown', async () => {
    const early = await callAndFail(mode, { parts: [{ malformed: '{"half": ' }, { stall: true }] });
    expect(early.error).toMatchObject({ name: 'ModelError', isRetryable: true });
    expect(early.error.message).toMatch(/sent an invalid reply/);
    const late = await callAndFail(mode, { parts: [{ text: ['Hi ', { malformed: '{"half": ' }, { stall: true }] }] });
    expect(late.error).toMatchObject({ name: 'ModelError', isRetryable: false });
  });

  test('a frame of another kind is a failure too', async () => {
    const { error } = await callAndFail(mode, { parts: [{ text: ['Hi ', { malformed: '[1, 2]' }, { stall: true }] }] });
    expect(error).toBeInstanceOf(ModelError);
  });

  test('a provider that gives up in mid-stream may be asked again', async () => {
    const late = await callAndFail(mode, { parts: [{ text: ['Hi ', { overloaded: true }] }] });
    expect(late.error).toMatchObject({ name: 'ModelError', isRetryable: true });
    const early = await callAndFail(mode, { parts: [{ overloaded: true }] });
    expect(early.error).toMatchObject({ name: 'ModelError', isRetryable: true });
  });

  test('a refused connection may be retried', async () => {
    const provider = await startLoopbackProvider({ script: [] });
    await provider.close();
    const { signal } = new AbortController();
    const iterator = loopbackModel(format, provider.url, version).stream(hello, { signal })[Symbol.asyncIterator]();
    await expect(iterator.next()).rejects.toMatchObject({ name: 'ModelError', isRetryable: true, status: undefined });
  });
});
