import { expect, test } from 'vitest';
import { fuzzProxy } from '../../../../test/acp/fuzz-proxy.ts';

/** `FRAMES=20000` for a long one. */
const frames = Number(process.env['FRAMES'] ?? 2_000);

test('broken and misplaced frames on both sides: no crash, no hang, nothing invented', {
  timeout: 600_000,
}, async () => {
  const report = await fuzzProxy({ frames, seed: 35 });
  expect(report.problems).toEqual([]);
  expect(report).toMatchObject({ toAgent: frames, toEditor: frames });
  expect(report.stops).toBeGreaterThan(20);
  expect(report.restarts).toBeGreaterThan(2);
});
