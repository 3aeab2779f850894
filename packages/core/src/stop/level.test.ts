import { expect, test } from 'vitest';
import { presetFrom, rankOf } from './level.ts';

test('each level has the preset that starts at it', () => {
  expect((['drain', 'abort', 'kill'] as const).map((level) => presetFrom(level))).toEqual(['graceful', 'now', 'kill']);
});

test('levels are ordered, and no level comes before them all', () => {
  expect([undefined, 'drain', 'abort', 'kill'].map((level) => rankOf(level as 'drain' | undefined))).toEqual([
    0, 1, 2, 3,
  ]);
});
