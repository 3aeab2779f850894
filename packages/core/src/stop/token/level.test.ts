import { expect, test } from 'vitest';
import { rankLevel, toPreset } from './level.ts';

test('each level has the preset that starts at it', () => {
  expect((['drain', 'abort', 'kill'] as const).map((level) => toPreset(level))).toEqual(['graceful', 'now', 'kill']);
});

test('levels are ordered, and no level comes before them all', () => {
  expect([undefined, 'drain', 'abort', 'kill'].map((level) => rankLevel(level as 'drain' | undefined))).toEqual([
    0, 1, 2, 3,
  ]);
});
