import { expect, test } from 'vitest';
import { earlyUsage } from './early-usage.ts';

test.each([
  [
    'Anthropic, when it begins, its cache included',
    {
      type: 'message_start',
      message: {
        usage: { input_tokens: 3, cache_read_input_tokens: 10, cache_creation_input_tokens: 100, output_tokens: 1 },
      },
    },
    { type: 'usage', inputTokens: 113, cachedInputTokens: 10, outputTokens: 1 },
  ],
  ['Anthropic, later', { type: 'message_delta', usage: { output_tokens: 7 } }, { type: 'usage', outputTokens: 7 }],
  [
    'a server that counts along',
    { choices: [], usage: { prompt_tokens: 5, completion_tokens: 2 } },
    { type: 'usage', inputTokens: 5, outputTokens: 2 },
  ],
  [
    'Gemini, its thoughts included',
    { usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 2, thoughtsTokenCount: 30 } },
    { type: 'usage', inputTokens: 4, outputTokens: 32 },
  ],
])('%s', (_, raw, usage) => {
  expect(earlyUsage(raw)).toEqual(usage);
});

test.each([undefined, null, 'text', {}, { usage: null }, { usage: { total: 'many' } }, { message: 'words' }])(
  '%j counts nothing',
  (raw) => {
    expect(earlyUsage(raw)).toBeUndefined();
  },
);
