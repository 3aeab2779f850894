import { expect, test } from 'vitest';
import { findClosestName } from './closest-name.ts';

const NAMES = ['run', 'approve', 'cancel', 'watch', 'completions'];

test.each([
  ['aprove', 'approve'],
  ['appprove', 'approve'],
  ['approbe', 'approve'],
  ['wacth', 'watch'],
  ['canel', 'cancel'],
  ['cancell', 'cancel'],
  ['rum', 'run'],
  ['completion', 'completions'],
  ['compeltoin', 'completions'],
])('%s probably means %s', (typed, name) => expect(findClosestName(typed, NAMES)).toBe(name));

test.each(['', 'r', 'nothing', 'wrap', 'stop', 'x'.repeat(100_000)])('%.20s is not close to any name', (typed) =>
  expect(findClosestName(typed, NAMES)).toBeUndefined(),
);
