import { getEventListeners } from 'node:events';
import { CancellationToken } from '@whoa/core';
import { ModelError, type ModelPart, type ModelRequest } from '@whoa/core/model';
import { describe, expect, test } from 'vitest';
import { loopbackModel, spoken } from '../../../../test/ai-sdk/providers.ts';
import { type ScriptedResponse, startLoopbackProvider } from '../testing/index.ts';

const tools = [{ name: 'bash', description: 'Runs a command', inputJsonSchema: { type: 'object', properties: {} } }];
const hello: ModelRequest = { messages: [{ role: 'user', content: 'Hello?' }], tools };
const stall = { stall: true } as const;

interface Stage {
  readonly name: string;
  readonly answer: ScriptedResponse;
  /** What must have been read before the cancel. */
  readonly shown: { text?: string; thinking?: string; arguments?: string };
}

const stages: readonly Stage[] = [
  { name: 'before the headers', answer: { beforeHeaders: stall }, shown: {} },
  { name: 'before the first word', answer: { parts: [stall] }, shown: {} },
  { name: 'in mid-text', answer: { parts: [{ text: ['Hel', 'lo', stall] }] }, shown: { text: 'Hello' } },
  {
    name: 'in mid-thinking',
    answer: { parts: [{ thinking: ['Let ', 'me see', stall] }] },
    shown: { thinking: 'Let me see' },
  },
  {
    name: 'in mid-arguments',
    answer: { parts: [{ text: 'Look:' }, { call: 'bash', arguments: ['{"command":', '"rm -', stall] }] },
    shown: { text: 'Look:', arguments: '{"command":"rm -' },
  },
  {
    name: 'between a call and the next word',
    answer: { parts: [{ call: 'bash', input: { command: 'ls' } }, stall, { text: 'So' }] },
    shown: { arguments: '{"command":"ls"}' },
  },
];

/** Reads until the server has stalled and everything it sent before has arrived. */
async function readUntilShown(iterator: AsyncIterator<ModelPart>, shown: Stage['shown'], format: string) {
  const parts: ModelPart[] = [];
  // Thoughts do not show through the Chat Completions package.
  const wanted = Object.values(format === 'chat' ? { ...shown, thinking: '' } : shown).join('').length;
  const length = () =>
    parts
      .map((part) => (part.type.match(/^(text|thinking|call-arguments)$/) ? (part as { text: string }).text : ''))
      .join('').length;
  while (length() < wanted) parts.push((await iterator.next()).value as ModelPart);
  return parts;
}

const toText = (parts: readonly ModelPart[], type: ModelPart['type']): string =>
  parts.map((part) => (part.type === type && 'text' in part ? part.text : '')).join('');

describe.each(spoken)('%s (%s): cancelled', (format, version) => {
  test.each(stages)('$name, it ends immediately, the connection closes, what was read is kept', async (stage) => {
    await using provider = await startLoopbackProvider({ script: [stage.answer] });
    using token = new CancellationToken();
    const { signal } = token;
    const iterator = loopbackModel(format, provider.url, version).stream(hello, { signal })[Symbol.asyncIterator]();
    // Anthropic reports usage before the first word.
    const countsEarly = format === 'anthropic' && stage.name !== 'before the headers';
    const early = countsEarly ? [(await iterator.next()).value as ModelPart] : [];
    const parts = [...early, ...(await readUntilShown(iterator, stage.shown, format))];
    const pending = iterator.next();
    const request = await provider.waitForRequest(0);
    await request.waitForStall();
    token.cancel({ kind: 'user', message: 'stop that' }, { mode: 'now' });
    token.cancel({ kind: 'user', message: 'I said stop' }, { mode: 'kill' });
    // It may still have read something before the cancel; then that comes first.
    let rejection: unknown;
    for (let next: Promise<IteratorResult<ModelPart>> = pending; rejection === undefined; next = iterator.next()) {
      const end = await next.then(
        (value) => value,
        (error: unknown) => void (rejection = error),
      );
      if (end?.done === false) parts.push(end.value);
      else expect(end).toBeUndefined();
    }
    expect(rejection).toBe(signal.reason);
    expect(rejection).not.toBeInstanceOf(ModelError);
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(await request.waitForClose()).toBe('client');
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    for (const type of ['text', 'thinking'] as const) {
      if (type === 'thinking' && format === 'chat') continue;
      expect(toText(parts, type)).toBe(stage.shown[type] ?? '');
    }
    const isWhole = stage.name.startsWith('between');
    if (!isWhole) expect(parts.some(({ type }) => type === 'call-end')).toBe(false);
    if (countsEarly) expect(parts[0]).toEqual({ type: 'usage', inputTokens: 11, outputTokens: 1 });
  });

  test('before it began, it sends nothing', async () => {
    await using provider = await startLoopbackProvider({ script: [] });
    using token = new CancellationToken();
    token.cancel({ kind: 'user' }, { mode: 'now' });
    const iterator = loopbackModel(format, provider.url, version).stream(hello, token)[Symbol.asyncIterator]();
    await expect(iterator.next()).rejects.toBe(token.signal.reason);
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(provider.requests).toHaveLength(0);
    expect(provider.openConnections).toBe(0);
  });

  test('after the end, nothing happens', async () => {
    await using provider = await startLoopbackProvider({ script: [{ parts: [{ text: 'All of it' }] }] });
    using token = new CancellationToken();
    const iterator = loopbackModel(format, provider.url, version).stream(hello, token)[Symbol.asyncIterator]();
    const parts: ModelPart[] = [];
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) parts.push(next.value);
    token.cancel({ kind: 'user' }, { mode: 'kill' });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(toText(parts, 'text')).toBe('All of it');
    expect(await provider.requests[0]!.waitForClose()).toBe('server');
  });

  test('200 times under one token, it leaves nothing there and no answer under way', async () => {
    await using provider = await startLoopbackProvider({ script: () => ({ parts: [{ text: ['Hi', stall] }] }) });
    using root = new CancellationToken();
    const model = loopbackModel(format, provider.url, version);
    for (let round = 0; round < 200; round++) {
      using token = root.child();
      const iterator = model.stream(hello, token)[Symbol.asyncIterator]();
      await readUntilShown(iterator, { text: 'Hi' }, format);
      token.cancel({ kind: 'user' }, { mode: 'now' });
      await expect(iterator.next()).rejects.toBe(token.signal.reason);
      expect(getEventListeners(token.signal, 'abort')).toHaveLength(0);
    }
    expect(root.statistics).toEqual({ children: 0, listeners: 0 });
    await provider.waitForIdle();
    for (const request of provider.requests) expect(request.closedBy).toBe('client');
  });

  test('a reader that leaves closes the connection, also while a read is pending', async () => {
    await using provider = await startLoopbackProvider({ script: [{ parts: [{ text: ['Hi', stall] }] }] });
    const { signal } = new AbortController();
    const iterator = loopbackModel(format, provider.url, version).stream(hello, { signal })[Symbol.asyncIterator]();
    await readUntilShown(iterator, { text: 'Hi' }, format);
    const pending = iterator.next();
    expect(await iterator.return!()).toEqual({ done: true, value: undefined });
    expect(await pending).toEqual({ done: true, value: undefined });
    expect(await provider.requests[0]!.waitForClose()).toBe('client');
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  test('a reply that drips in byte by byte is stopped between two bytes', async () => {
    await using provider = await startLoopbackProvider({
      script: [{ parts: [{ text: ['slow', ...Array<string>(1_000).fill('er')] }], pace: { intervalMs: 1, bytes: 64 } }],
    });
    const controller = new AbortController();
    const iterator = loopbackModel(format, provider.url, version).stream(hello, controller)[Symbol.asyncIterator]();
    await readUntilShown(iterator, { text: 'slow' }, format);
    controller.abort();
    await expect(iterator.next()).rejects.toMatchObject({ name: 'AbortError' });
    const request = provider.requests[0]!;
    expect(await request.waitForClose()).toBe('client');
    expect(request.words).toMatch(/^slow(er)*$/);
    expect(request.words.length).toBeLessThan(2_004);
  });

  test('a reason of any kind arrives unchanged, never as a failure', async () => {
    await using provider = await startLoopbackProvider({ script: () => ({ parts: [{ text: ['Hi', stall] }] }) });
    for (const reason of [new Error('superseded'), 'a plain text', new DOMException('late', 'TimeoutError')]) {
      const controller = new AbortController();
      const iterator = loopbackModel(format, provider.url, version).stream(hello, controller)[Symbol.asyncIterator]();
      await readUntilShown(iterator, { text: 'Hi' }, format);
      controller.abort(reason);
      await expect(iterator.next()).rejects.toBe(reason);
    }
    await provider.waitForIdle();
  });
});
