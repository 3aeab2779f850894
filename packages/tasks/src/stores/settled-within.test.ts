import { expect, test } from 'vitest';
import { settledWithin } from './settled-within.ts';

const never = new Promise<void>(() => {});

test('time that has passed is not waited for, and the process warns of nothing', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on('warning', note);
  await settledWithin(never, -5);
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', note);
  expect(warnings).toEqual([]);
});

const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

test('work that fails says so, and leaves no timer', async () => {
  const before = timers();
  await expect(settledWithin(Promise.reject(new Error('no')), 3_600_000)).rejects.toThrow('no');
  expect(timers()).toBe(before);
});
