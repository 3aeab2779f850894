import { expect, test } from 'vitest';
import { formatCount, formatDuration, joinWords, plural } from './format.ts';

test.each([
  [-5, '0 ms'],
  [9.909_667_968_75, '10 ms'],
  [400, '400 ms'],
  [1_200, '1.2 s'],
  [38_400, '38 s'],
  [125_000, '2 m 05 s'],
  [3_960_000, '1 h 06 m'],
  [259_200_000, '3 d'],
])('%d ms is %s', (ms, words) => {
  expect(formatDuration(ms)).toBe(words);
});

test.each([
  [940, '940'],
  [9_800, '9.8k'],
  [212_300, '212k'],
  [1_240_000, '1.2M'],
])('%d is %s', (count, words) => {
  expect(formatCount(count)).toBe(words);
});

test('counts and lists are sentences', () => {
  expect([plural(1, 'call'), plural(2_000, 'call'), plural(2, 'match', 'matches')]).toEqual([
    '1 call',
    '2,000 calls',
    '2 matches',
  ]);
  expect([joinWords([]), joinWords(['a']), joinWords(['a', 'b', 'c'])]).toEqual(['', 'a', 'a, b and c']);
});
