import { expect, test } from 'vitest';
import { oneLine } from './plain-text.ts';

test('many lines become one, at most so long, and nothing in it is obeyed', () => {
  expect(oneLine('  a\n  b\r\nc\n', 20)).toBe('a ⏎ b ⏎ c');
  expect(oneLine('abcdef', 4)).toBe('abc…');
  expect(oneLine('a\x1b[2J\u202eb', 40)).toBe('a<U+001B>[2J<U+202E>b');
});
