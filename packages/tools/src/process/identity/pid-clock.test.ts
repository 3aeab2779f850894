import { expect, test } from 'vitest';
import { haveOnlyGoneUp, readPidMoment } from './pid-clock.ts';

const at = (last: number, forks: number, lastBefore = last) => ({ last, forks, lastBefore });

test('while pids go up, whoever is new has a higher one', () => {
  expect(haveOnlyGoneUp(at(100, 1_000), at(100, 1_000))).toBe(true);
  expect(haveOnlyGoneUp(at(100, 1_000), at(190, 1_080))).toBe(true);
});

test('pids that started again from the bottom are noticed', () => {
  expect(haveOnlyGoneUp(at(32_000, 1_000), at(400, 2_000))).toBe(false);
});

test('so many new processes that the pids may have gone all the way round are noticed', () => {
  expect(haveOnlyGoneUp(at(100, 1_000), at(200, 10_000_000))).toBe(false);
});

test('more forks than pids are noticed: a process has a pid out of order', () => {
  expect(haveOnlyGoneUp(at(100, 1_000), at(180, 1_081))).toBe(false);
  // A fork between the two readings of a moment is nobody out of turn.
  expect(haveOnlyGoneUp(at(101, 1_000, 99), at(181, 1_082))).toBe(true);
});

test('a machine that does not say how many it has started is never believed', () => {
  expect(haveOnlyGoneUp(at(100, Number.NaN), at(200, 10))).toBe(false);
});

test('the present moment can be read', () => {
  const { last, forks } = readPidMoment();
  expect(last).toBeGreaterThan(0);
  expect(forks).toBeGreaterThan(0);
});
