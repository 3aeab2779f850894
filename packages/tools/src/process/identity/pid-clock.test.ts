import { expect, test } from 'vitest';
import { haveOnlyGoneUp, readPidMoment } from './pid-clock.ts';

const at = (last: number, forks: number, lastBefore = last) => ({ last, forks, lastBefore });

test('a newer process has a higher pid until pids wrap', () => {
  expect(haveOnlyGoneUp(at(100, 1_000), at(100, 1_000))).toBe(true);
  expect(haveOnlyGoneUp(at(100, 1_000), at(190, 1_080))).toBe(true);
});

test('pids that started again from the bottom are noticed', () => {
  expect(haveOnlyGoneUp(at(32_000, 1_000), at(400, 2_000))).toBe(false);
});

test('enough new processes for pids to wrap are noticed', () => {
  expect(haveOnlyGoneUp(at(100, 1_000), at(200, 10_000_000))).toBe(false);
});

test('more forks than pids are noticed: a process has a pid out of order', () => {
  expect(haveOnlyGoneUp(at(100, 1_000), at(180, 1_081))).toBe(false);
  // A fork between the two readings of one sample does not put a pid out of order.
  expect(haveOnlyGoneUp(at(101, 1_000, 99), at(181, 1_082))).toBe(true);
});

test('a machine that does not count its processes is never trusted', () => {
  expect(haveOnlyGoneUp(at(100, Number.NaN), at(200, 10))).toBe(false);
});

test('the present moment can be read', () => {
  const { last, forks } = readPidMoment();
  expect(last).toBeGreaterThan(0);
  expect(forks).toBeGreaterThan(0);
});
