import { expect, test } from 'vitest';
import { isNight } from '../night.ts';
import { runHostile } from './run-hostile.ts';

const CASES = isNight ? 4_000 : 1_000;

test('hostile values, several at a time and anywhere, break no promise', () => {
  const { problems, cases } = runHostile(`${CASES}`);
  expect(problems).toEqual([]);
  expect(cases).toBe(CASES);
});
