import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { readPrompt } from './read-prompt.ts';

const piped = (...texts: string[]) => Readable.from(texts.map((text) => Buffer.from(text)));

test.each<[string[], string[], string]>([
  [['review this'], ['+ a diff\n', '+ of two lines\n'], 'review this\n\n+ a diff\n+ of two lines'],
  [['review this'], [], 'review this'],
  [['review this'], [' \n'], 'review this'],
  [[], ['from a pipe\n'], 'from a pipe'],
  [['  '], ['from a pipe'], 'from a pipe'],
])('%j with %j piped in is %j', async (positionals, texts, prompt) => {
  expect(await readPrompt(positionals, { input: piped(...texts) })).toBe(prompt);
});

test('a terminal is not read', async () => {
  const terminal = Object.assign(new Readable({ read: () => {} }), { isTTY: true });
  expect(await readPrompt(['hi'], { input: terminal })).toBe('hi');
  await expect(readPrompt([], { input: terminal })).rejects.toThrow('missing prompt; use: whoa run "prompt"');
});

test('characters that are split between two chunks stay whole', async () => {
  const bytes = Buffer.from('größer');
  expect(await readPrompt([], { input: Readable.from([bytes.subarray(0, 3), bytes.subarray(3)]) })).toBe('größer');
});

test('too much input, several prompts and none are rejected', async () => {
  const input = piped(...Array.from({ length: 11 }, () => 'x'.repeat(1_000_000)));
  await expect(readPrompt([], { input })).rejects.toThrow('standard input has more than 10000000 bytes');
  await expect(readPrompt(['a', 'b'], { input: piped() })).rejects.toThrow('expected one prompt');
  await expect(readPrompt([], { input: piped() })).rejects.toThrow('missing prompt');
});
