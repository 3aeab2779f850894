import { expect, test } from 'vitest';
import { defaultModelName, parseModelName } from './model-name.ts';

test.each([
  ['anthropic:claude-sonnet-4-5', { provider: 'anthropic', model: 'claude-sonnet-4-5' }],
  ['openai:ft:gpt-5:me', { provider: 'openai', model: 'ft:gpt-5:me' }],
  [
    'compatible:http://localhost:11434/v1:llama3:8b',
    { provider: 'compatible', url: 'http://localhost:11434/v1', model: 'llama3:8b' },
  ],
  [
    'compatible:https://models.example/v1:big',
    { provider: 'compatible', url: 'https://models.example/v1', model: 'big' },
  ],
  ['compatible:http://[::1]:8080/v1:big', { provider: 'compatible', url: 'http://[::1]:8080/v1', model: 'big' }],
  ['scripted:C:\\script.json', { provider: 'scripted', file: 'C:\\script.json' }],
])('%s is understood', (text, name) => {
  expect(parseModelName(text)).toEqual(name);
});

test.each(['', 'gpt-5', 'anthropic:', 'compatible:localhost:1:x', 'compatible:http://localhost:11434/v1', 'other:x'])(
  '%j is rejected with the forms that exist',
  (text) => {
    expect(() => parseModelName(text)).toThrow(
      /expected anthropic:NAME, openai:NAME, compatible:URL:NAME or scripted:FILE/,
    );
  },
);

test('the default model is the one whose key is set', () => {
  expect(defaultModelName({ OPENAI_API_KEY: 'k' })).toBe('openai:gpt-5');
  expect(defaultModelName({ OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k' })).toMatch(/^anthropic:/);
  expect(defaultModelName({ WHOA_MODEL: 'scripted:x', OPENAI_API_KEY: 'k' })).toBe('scripted:x');
  expect(() => defaultModelName({ OPENAI_API_KEY: '' })).toThrow(
    /set ANTHROPIC_API_KEY or OPENAI_API_KEY.*'whoa demo' needs none/,
  );
});
