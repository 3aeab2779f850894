import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { HostileReport } from './campaign.ts';
import { entryPoints } from './entry-points.ts';
import { values } from './values.ts';

// In a process of its own: it listens to what nobody handles.
test('whatever a user hands in, wherever it enters, every promise holds', () => {
  const program = join(import.meta.dirname, '../long/hostile.ts');
  const flags = ['--conditions=@whoa/source', '--no-warnings'];
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, program, 'matrix'], { encoding: 'utf8' });
  const { problems, ...coverage } = JSON.parse(stdout || JSON.stringify({ problems: [stderr] })) as HostileReport;
  console.log(coverage);
  expect(problems).toEqual([]);
  const inScenarios = entryPoints.map(({ kind, scenarios }) => ({ kind, scenarios: scenarios.length }));
  const heavy = values.filter(({ isHeavy }) => isHeavy).length;
  const cells = inScenarios.map(({ kind, scenarios }) => scenarios * (values.length - (kind === 'clock' ? heavy : 0)));
  expect(coverage.cells).toBe(cells.reduce((sum, count) => sum + count, 0));
  expect(Object.keys(coverage.scenarios)).toHaveLength(6);
});
