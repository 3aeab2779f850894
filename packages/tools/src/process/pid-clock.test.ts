import { expect, test } from 'vitest';
import { haveOnlyGoneUp, readPidMoment } from './pid-clock.ts';

test('while pids go up, whoever is new has a higher one', () => {
  expect(haveOnlyGoneUp({ last: 100, forks: 1_000 }, { last: 100, forks: 1_000 })).toBe(true);
  expect(haveOnlyGoneUp({ last: 100, forks: 1_000 }, { last: 180, forks: 1_090 })).toBe(true);
});

test('pids that started again from the bottom are noticed', () => {
  expect(haveOnlyGoneUp({ last: 32_000, forks: 1_000 }, { last: 400, forks: 2_000 })).toBe(false);
});

test('so many new processes that the pids may have gone all the way round are noticed', () => {
  expect(haveOnlyGoneUp({ last: 100, forks: 1_000 }, { last: 200, forks: 10_000_000 })).toBe(false);
});

test('a machine that does not say how many it has started is never believed', () => {
  expect(haveOnlyGoneUp({ last: 100, forks: Number.NaN }, { last: 200, forks: 10 })).toBe(false);
});

test('the present moment can be read', () => {
  const { last, forks } = readPidMoment();
  expect(last).toBeGreaterThan(0);
  expect(forks).toBeGreaterThan(0);
});
