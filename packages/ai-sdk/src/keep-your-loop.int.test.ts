// The recipe of docs/guides/your-own-loop.md, with the real `ai` package against the strict loopback provider.
import { CancellationToken } from '@whoa/core';
import {
  convertToModelMessages,
  generateText,
  isStepCount,
  type LanguageModel,
  streamText,
  tool,
  toUIMessageStream,
  type UIMessage,
} from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { aiSdkModel, formats } from '../../../test/ai-sdk/providers.ts';
import { type CallRecords, closeOpenCalls, createCallRecords, guardAiSdkTools } from './index.ts';
import { startLoopbackProvider } from './testing/index.ts';

const mode = { abortMs: 30 };

function setUp() {
  const started = Promise.withResolvers<void>();
  const fastEnded = Promise.withResolvers<void>();
  const tools = {
    // It never returns and never listens.
    slow: tool({
      inputSchema: z.object({}),
      execute: () => {
        started.resolve();
        return new Promise<string>(() => {});
      },
    }),
    fast: tool({
      inputSchema: z.object({}),
      execute: () => {
        fastEnded.resolve();
        return 'fast result';
      },
    }),
  };
  const running = Promise.all([started.promise, fastEnded.promise]);
  return { tools, calls: createCallRecords(), started: started.promise, running };
}

const say = (text: string): UIMessage => ({ id: text, role: 'user', parts: [{ type: 'text', text }] });

interface Turn {
  readonly model: LanguageModel;
  readonly tools: ReturnType<typeof setUp>['tools'];
  readonly calls: CallRecords;
  readonly token: CancellationToken;
}

async function turn(history: UIMessage[], { model, tools, calls, token }: Turn): Promise<UIMessage[]> {
  const result = streamText({
    model,
    messages: closeOpenCalls(await convertToModelMessages(history), calls),
    tools: guardAiSdkTools(tools, { token, calls }),
    abortSignal: token.signal,
    stopWhen: [isStepCount(5), () => token.isCancelled],
    maxRetries: 0,
    onError: () => {},
  });
  let after = history;
  const onEnd = ({ messages }: { messages: UIMessage[] }) => void (after = messages);
  for await (const part of toUIMessageStream({ stream: result.stream, originalMessages: history, onEnd }))
    expect(part.type).not.toBe('error');
  await calls.waitForIdle();
  return after;
}

const twoCalls = { parts: [{ text: 'Both.' }, { call: 'slow', id: 'call_slow' }, { call: 'fast', id: 'call_fast' }] };

describe.each(formats)('%s: a tool that never returns', (format) => {
  test('streamText: the run ends, and the next turn is accepted with an accurate history', async () => {
    await using provider = await startLoopbackProvider({ script: [twoCalls, { parts: [{ text: 'I see.' }] }] });
    const model = aiSdkModel(format, provider.url) as LanguageModel;
    const { tools, calls, running } = setUp();
    using token = new CancellationToken();
    const ending = turn([say('Go')], { model, tools, calls, token });
    await running;
    token.cancel({ kind: 'user' }, { mode });
    const history = await ending;
    expect(calls.find('call_slow')).toMatchObject({ state: 'unknown' });
    expect(calls.find('call_fast')).toMatchObject({ state: 'finished' });
    using next = new CancellationToken();
    const after = await turn([...history, say('And?')], { model, tools, calls, token: next });
    expect(provider.requests).toHaveLength(2);
    expect(provider.requests[1]!.refusal).toBeUndefined();
    const sent = JSON.stringify(provider.requests[1]!.body);
    for (const words of ['Both.', 'fast result', 'Outcome unknown', 'It may have taken effect'])
      expect(sent).toContain(words);
    expect(JSON.stringify(after.at(-1))).toContain('I see.');
    expect(token.statistics).toEqual({ children: 0, listeners: 0 });
  });

  test('generateText: it settles when the ladder ends', async () => {
    await using provider = await startLoopbackProvider({ script: [twoCalls] });
    const { tools, calls, started } = setUp();
    using token = new CancellationToken();
    const guarded = guardAiSdkTools(tools, { token, calls });
    const model = aiSdkModel(format, provider.url) as LanguageModel;
    const ending = generateText({ model, tools: guarded, prompt: 'Go', abortSignal: token.signal, maxRetries: 0 });
    await started;
    token.cancel({ kind: 'user' }, { mode });
    const { responseMessages } = await ending;
    expect(calls.find('call_slow')).toMatchObject({ state: 'unknown' });
    expect(JSON.stringify(closeOpenCalls(responseMessages, calls))).toContain('Outcome unknown');
  });

  test('a call that a drain kept from starting is reported as not started', async () => {
    await using provider = await startLoopbackProvider({ script: [twoCalls, { parts: [{ text: 'I see.' }] }] });
    const model = aiSdkModel(format, provider.url) as LanguageModel;
    const { tools, calls } = setUp();
    using token = new CancellationToken();
    token.cancel({ kind: 'shutdown' });
    const history = await turn([say('Go')], { model, tools, calls, token });
    expect(calls.records().map(({ state }) => state)).toEqual(['not-started', 'not-started']);
    // The drained turn asks the model for nothing more.
    expect(provider.requests).toHaveLength(1);
    using next = new CancellationToken();
    await turn([...history, say('And?')], { model, tools, calls, token: next });
    expect(provider.requests[1]!.refusal).toBeUndefined();
    expect(JSON.stringify(provider.requests[1]!.body)).toContain('Not started: cancelled (shutdown)');
  });
});
