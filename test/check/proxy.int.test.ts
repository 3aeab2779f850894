// The checks that broken agents fail most, behind the proxy. All of them: proxy.nightly.test.ts.
import { describe, expect, test } from 'vitest';
import { forChange } from '../night.ts';
import { flood } from './flood.ts';
import { BROKEN, checkProxied, findFailures } from './proxy.ts';

const CHECKS = [
  'cancel-in-call',
  'one-end',
  'quiet-after-end',
  'calls-closed',
  'left-detached',
  'next-works',
  'orphans-sigkill',
];

const CHOSEN = ['never-answers', 'abort-error', 'open-calls', 'orphans', 'floods'];

describe.concurrent('behind the proxy', { timeout: 120_000 }, () => {
  for (const bug of forChange(Object.keys(BROKEN), (name) => CHOSEN.includes(name))) {
    test(`'${bug}' stops, leaves nothing behind, and takes the next prompt`, async () => {
      const report = await checkProxied(bug, CHECKS);
      expect(findFailures(report)).toEqual([]);
      expect(report.counts.passed).toBe(CHECKS.length);
    });
  }
});

test('100 MB of updates pass through a heap of 40 MB, and the process stays as large as it was', {
  timeout: 120_000,
}, async () => {
  const report = await flood({ bytes: 100_000_000, size: 10_000 });
  expect(report.end).toContain('end_turn');
  expect(report.bytes).toBeGreaterThan(100_000_000);
  expect(report.grownBytes).toBeLessThan(48 * 1_024 * 1_024);
});
