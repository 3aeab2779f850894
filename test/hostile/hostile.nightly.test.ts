import { expect, test } from 'vitest';
import { entryPoints } from './entry-points.ts';
import { runHostile } from './run-hostile.ts';
import { values } from './values.ts';

test('every promise holds for every hostile value at every entry point', () => {
  const { problems, ...coverage } = runHostile('matrix');
  console.log(coverage);
  expect(problems).toEqual([]);
  const inScenarios = entryPoints.map(({ kind, scenarios }) => ({ kind, scenarios: scenarios.length }));
  const heavy = values.filter(({ isHeavy }) => isHeavy).length;
  const cells = inScenarios.map(({ kind, scenarios }) => scenarios * (values.length - (kind === 'clock' ? heavy : 0)));
  expect(coverage.cells).toBe(cells.reduce((sum, count) => sum + count, 0));
  expect(Object.keys(coverage.scenarios)).toHaveLength(6);
});
