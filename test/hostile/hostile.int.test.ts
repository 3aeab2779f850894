import { expect, test } from 'vitest';
import { runHostile } from './run-hostile.ts';

const HISTORIES = 4_000;

test('hostile values, several at a time and anywhere, break no promise', () => {
  const { problems, histories } = runHostile(`${HISTORIES}`);
  expect(problems).toEqual([]);
  expect(histories).toBe(HISTORIES);
});
