// The options of an application's own loop together with those of its turn, with each major of `ai`, typed as users write them.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { CancellationToken } from '@whoa/core';
import * as v7 from 'ai';
import { createAnthropic as createAnthropicV2 } from 'ai-sdk-anthropic-v2';
import { createAnthropic as createAnthropicV3 } from 'ai-sdk-anthropic-v3';
import { createOpenAI as createOpenAiV2 } from 'ai-sdk-openai-v2';
import { createOpenAI as createOpenAiV3 } from 'ai-sdk-openai-v3';
import * as v5 from 'ai-v5';
import * as v6 from 'ai-v6';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createCallRecords, createStoppableTurn } from '../index.ts';
import { type ScriptedResponse, startLoopbackProvider } from '../testing/index.ts';

const inputSchema = z.object({});
const history = [{ role: 'user' as const, content: 'Look' }];
const LOOK: ScriptedResponse = { parts: [{ text: 'Let me see. ' }, { call: 'look' }] };
const SEEN: ScriptedResponse = { parts: [{ text: 'I have seen it.' }] };

interface Wanted {
  readonly url: string;
  readonly token: CancellationToken;
  readonly format?: 'responses' | 'anthropic';
  readonly look?: (signal: AbortSignal) => unknown;
  /** The application's own signal. */
  readonly signal?: AbortSignal;
  /** After how many steps the application stops. */
  readonly steps?: number;
}

/** What the application's callbacks heard. */
interface Heard {
  readonly prepared: unknown[];
  readonly finished: unknown[];
  readonly words: string[];
  readonly ends: string[];
}

const ended = (heard: Heard, name: string) => (): void => void heard.ends.push(name);
const listen = (): Heard => ({ prepared: [], finished: [], words: [], ends: [] });
/** The options that are the same in each major. */
const shared = (heard: Heard, { format, signal }: Wanted) => ({
  maxRetries: 0,
  onAbort: ended(heard, 'abort'),
  onError: ended(heard, 'error'),
  providerOptions: {
    openai: { user: 'ada', store: true },
    ...(format === 'anthropic' && { anthropic: { thinking: { type: 'enabled', budgetTokens: 1_024 } } }),
  },
  ...(signal && { abortSignal: signal }),
});

const runs = {
  async 5(wanted: Wanted) {
    const { url, token, format, look = () => 'seen', steps } = wanted;
    const heard = listen();
    const settings = { baseURL: url, apiKey: 'none' };
    const tools = { look: v5.tool({ inputSchema, execute: (_, { abortSignal }) => look(abortSignal!) }) };
    const turn = createStoppableTurn({
      history: history as v5.ModelMessage[],
      tools,
      calls: createCallRecords(),
      token,
    });
    const result = v5.streamText(
      turn.with({
        model:
          format === 'anthropic'
            ? createAnthropicV2(settings)('claude-sonnet-4-5')
            : createOpenAiV2(settings).responses('gpt-5'),
        prepareStep: ({ stepNumber }) => ({
          activeTools: heard.prepared.push(stepNumber) > 0 ? ['look' as const] : [],
        }),
        onStepFinish: ({ finishReason }) => void heard.finished.push(finishReason),
        onFinish: ended(heard, 'finish'),
        experimental_transform: v5.smoothStream({ delayInMs: null }),
        ...shared(heard, wanted),
        ...(steps !== undefined && { stopWhen: v5.stepCountIs(steps) }),
      }),
    );
    for await (const part of result.fullStream) if (part.type === 'text-delta') heard.words.push(part.text);
    return { heard, settled: await turn.settled };
  },
  async 6(wanted: Wanted) {
    const { url, token, format, look = () => 'seen', steps } = wanted;
    const heard = listen();
    const settings = { baseURL: url, apiKey: 'none' };
    const tools = { look: v6.tool({ inputSchema, execute: (_, { abortSignal }) => look(abortSignal!) }) };
    const turn = createStoppableTurn({
      history: history as v6.ModelMessage[],
      tools,
      calls: createCallRecords(),
      token,
    });
    const result = v6.streamText(
      turn.with({
        model:
          format === 'anthropic'
            ? createAnthropicV3(settings)('claude-sonnet-4-5')
            : createOpenAiV3(settings).responses('gpt-5'),
        prepareStep: ({ stepNumber }) => ({
          activeTools: heard.prepared.push(stepNumber) > 0 ? ['look' as const] : [],
        }),
        onStepFinish: ({ finishReason }) => void heard.finished.push(finishReason),
        onFinish: ended(heard, 'finish'),
        experimental_transform: v6.smoothStream({ delayInMs: null }),
        ...shared(heard, wanted),
        ...(steps !== undefined && { stopWhen: v6.stepCountIs(steps) }),
      }),
    );
    for await (const part of result.fullStream) if (part.type === 'text-delta') heard.words.push(part.text);
    return { heard, settled: await turn.settled };
  },
  async 7(wanted: Wanted) {
    const { url, token, format, look = () => 'seen', steps } = wanted;
    const heard = listen();
    const settings = { baseURL: url, apiKey: 'none' };
    const tools = { look: v7.tool({ inputSchema, execute: (_, { abortSignal }) => look(abortSignal!) }) };
    const turn = createStoppableTurn({
      history: history as v7.ModelMessage[],
      tools,
      calls: createCallRecords(),
      token,
    });
    const result = v7.streamText(
      turn.with({
        model:
          format === 'anthropic'
            ? createAnthropic(settings)('claude-sonnet-4-5')
            : createOpenAI(settings).responses('gpt-5'),
        prepareStep: ({ stepNumber }) => ({
          activeTools: heard.prepared.push(stepNumber) > 0 ? ['look' as const] : [],
        }),
        onStepEnd: ({ finishReason }) => void heard.finished.push(finishReason),
        onEnd: ended(heard, 'finish'),
        experimental_transform: v7.smoothStream({ delayInMs: null }),
        ...shared(heard, wanted),
        ...(steps !== undefined && { stopWhen: v7.isStepCount(steps) }),
      }),
    );
    for await (const part of result.stream) if (part.type === 'text-delta') heard.words.push(part.text);
    return { heard, settled: await turn.settled };
  },
};

describe.each([5, 6, 7] as const)('ai %i', (major) => {
  const run = runs[major];

  test('callbacks, transform and provider options of both have effect', async () => {
    await using provider = await startLoopbackProvider({ script: [LOOK, SEEN] });
    using token = new CancellationToken();
    const { heard, settled } = await run({ url: provider.url, token });
    expect(heard.prepared).toEqual([0, 1]);
    expect(heard.finished).toEqual(['tool-calls', 'stop']);
    expect(heard.ends).toEqual(['finish']);
    // Whole words, and the turn has kept them all.
    expect(heard.words.join('|')).toContain('I |have |seen |it.');
    expect(settled.messages.map(({ role }) => role)).toEqual(['assistant', 'tool', 'assistant']);
    expect(JSON.stringify(settled.messages)).toContain('I have seen it.');
    // A reply that is cut off is not stored by the provider, so the turn decides about `store`.
    for (const { body } of provider.requests) expect(body).toMatchObject({ user: 'ada', store: false });
    expect(token.statistics).toEqual({ children: 0, listeners: 0 });
  });

  test('provider options are merged by provider, so thinking stays on', async () => {
    await using provider = await startLoopbackProvider({ script: [LOOK, SEEN] });
    using token = new CancellationToken();
    await run({ url: provider.url, token, format: 'anthropic' });
    expect(provider.requests[0]!.body).toMatchObject({ thinking: { type: 'enabled', budget_tokens: 1_024 } });
  });

  test("the application's own rule ends the loop, and no default of the turn does", async () => {
    await using one = await startLoopbackProvider({ script: [LOOK, SEEN] });
    using token = new CancellationToken();
    expect((await run({ url: one.url, token, steps: 1 })).heard.finished).toEqual(['tool-calls']);
    await using many = await startLoopbackProvider({ script: ({ index }) => (index < 24 ? LOOK : SEEN) });
    expect((await run({ url: many.url, token, steps: 50 })).heard.finished).toHaveLength(25);
    await using whole = await startLoopbackProvider({ script: () => LOOK });
    expect((await run({ url: whole.url, token })).heard.finished).toHaveLength(20);
  });

  test('a cancel stops the loop between its steps, whatever the application adds', async () => {
    await using provider = await startLoopbackProvider({ script: [LOOK, SEEN] });
    using token = new CancellationToken();
    const look = () => {
      token.cancel('enough', { mode: 'graceful' });
      return 'seen';
    };
    const { heard, settled } = await run({ url: provider.url, token, look, steps: 9 });
    expect([provider.requests.length, heard.prepared]).toEqual([1, [0]]);
    expect(settled).toMatchObject({ reason: { message: 'enough' }, calls: [{ tool: 'look', state: 'finished' }] });
  });

  test.each(['during', 'before'] as const)(
    "the application's own signal ends the turn (%s), and nothing listens to it afterwards",
    async (when) => {
      await using provider = await startLoopbackProvider({ script: [LOOK, SEEN] });
      using token = new CancellationToken();
      const own = new AbortController();
      if (when === 'before') own.abort();
      const look = (signal: AbortSignal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error));
          own.abort();
        });
      const { settled } = await run({ url: provider.url, token, look, signal: own.signal }).catch((error: unknown) => {
        if (when === 'before') return { settled: { calls: [] } };
        throw error;
      });
      expect(settled.calls).toMatchObject(when === 'before' ? [] : [{ tool: 'look', state: 'interrupted' }]);
      expect([token.isCancelled, token.statistics]).toEqual([false, { children: 0, listeners: 0 }]);
    },
  );
});

test('a tool of the options replaces that of the turn, and keeps its bound', async () => {
  await using provider = await startLoopbackProvider({ script: [{ parts: [{ call: 'look' }] }, SEEN] });
  using token = new CancellationToken();
  const look = (said: string) =>
    v7.tool({
      inputSchema,
      execute: async () => {
        token.cancel('user', { mode: 'now' });
        await Promise.resolve();
        return said;
      },
    });
  const calls = createCallRecords();
  const turn = createStoppableTurn({
    history: history as v7.ModelMessage[],
    tools: { look: look('of the turn'), other: look('other') },
    mustFinish: { look: { timeoutMs: 10_000 } },
    calls,
    token,
  });
  const model = createOpenAI({ baseURL: provider.url, apiKey: 'none' }).chat('gpt-4o');
  const own = { look: look('of this reply'), other: turn.tools.other };
  const options = turn.with({ model, tools: own });
  expect(options.tools.other).toBe(turn.tools.other);
  await v7.streamText(options).consumeStream();
  expect((await turn.settled).calls).toMatchObject([{ tool: 'look', state: 'finished', output: 'of this reply' }]);
});

test('tools that only the options have are guarded too, and messages are those of the turn', async () => {
  await using provider = await startLoopbackProvider({ script: [{ parts: [{ call: 'more' }] }, SEEN] });
  using token = new CancellationToken();
  const turn = createStoppableTurn({
    history: history as v7.ModelMessage[],
    tools: {},
    calls: createCallRecords(),
    token,
  });
  const more = v7.tool({
    inputSchema,
    execute: () => {
      token.cancel('user', { mode: { abortMs: 20 } });
      // Deaf: it never returns.
      return new Promise<string>(() => {});
    },
  });
  const model = createOpenAI({ baseURL: provider.url, apiKey: 'none' }).chat('gpt-4o');
  const messages = [{ role: 'user' as const, content: 'Mine' }];
  await v7.streamText({ ...turn.with({ model, tools: { more }, messages }) }).consumeStream();
  expect((await turn.settled).calls).toMatchObject([{ tool: 'more', state: 'unknown' }]);
  expect(JSON.stringify(provider.requests[0]!.body)).toContain('Look');
  expect(Object.keys(turn)).not.toContain('with');
});
