// A Whoa agent with models and tools of the AI SDK.
import { createAgent } from '@whoa/core';
import { jsonSchema, tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { loopbackModel, spoken } from '../../../../test/ai-sdk/providers.ts';
import { startLoopbackProvider } from '../testing/index.ts';
import { fromAiSdkTools } from './from-ai-sdk-tools.ts';

test.each(spoken)('%s (%s): an agent works with AI SDK tools, and is stopped among them', async (format, version) => {
  await using provider = await startLoopbackProvider({
    script: [
      {
        parts: [
          { thinking: 'Both.' },
          { call: 'add', id: 'call_a', input: { a: 1, b: 2 } },
          { call: 'wait', id: 'call_b', input: {} },
        ],
      },
      { parts: [{ text: 'Three, and I stopped waiting.' }] },
    ],
  });
  const waiting = Promise.withResolvers<void>();
  const tools = fromAiSdkTools({
    add: tool({
      description: 'Adds',
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      execute: ({ a, b }) => ({ sum: a + b }),
    }),
    wait: tool({
      description: 'Waits',
      inputSchema: jsonSchema({ type: 'object', properties: {} }),
      execute: (_input: unknown, { abortSignal }) =>
        new Promise<string>((_resolve, reject) => {
          abortSignal!.addEventListener('abort', () => reject(abortSignal!.reason as Error), { once: true });
          waiting.resolve();
        }),
    }),
  });
  const agent = createAgent({ name: 'assistant', model: loopbackModel(format, provider.url, version), tools });
  const run = agent.run('Add and wait');
  await waiting.promise;
  run.cancel({ kind: 'user' }, { mode: 'now' });
  const outcome = await run.outcome;
  expect(outcome.status).toBe('cancelled');
  expect(outcome.calls.map(({ tool: name, state }) => [name, state])).toEqual([
    ['add', 'finished'],
    ['wait', 'interrupted'],
  ]);
  const next = await agent.run('And?', { history: outcome.messages }).outcome;
  expect(next).toMatchObject({ status: 'success', text: 'Three, and I stopped waiting.' });
  const sent = JSON.stringify(provider.requests[1]!.body);
  expect(provider.requests[1]!.refusal).toBeUndefined();
  expect(sent).toContain('sum');
  expect(sent).toContain('Interrupted (user)');
});
