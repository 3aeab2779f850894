// Every faulty agent passes every check behind the proxy, except for those listed. Some of them run every time:
// proxy.int.test.ts.
import { describe, expect, test } from 'vitest';
import { flood } from './flood.ts';
import { BROKEN, checkProxied, findFailures } from './proxy.ts';

describe('behind the proxy', () => {
  for (const [bug, beyond] of Object.entries({ none: [], ...BROKEN } as Record<string, readonly string[]>)) {
    test(`'${bug}' passes every check that a good agent passes`, { timeout: 600_000 }, async () => {
      const report = await checkProxied(bug);
      const failures = findFailures(report).filter((failure) => !beyond.includes(failure.split(':')[0]!));
      expect(failures).toEqual([]);
      expect(report.counts.passed + beyond.length).toBeGreaterThanOrEqual(53);
    });
  }
});

test.each([
  [100, 200],
  [1_000, 10_000],
  [1_000, 1_000_000],
])('%i MB of updates of %i bytes pass through a heap of 40 MB', { timeout: 600_000 }, async (megabytes, size) => {
  const report = await flood({ bytes: megabytes * 1_000_000, size });
  expect(report.end).toContain('end_turn');
  expect(report.grownBytes).toBeLessThan(48 * 1_024 * 1_024);
});
