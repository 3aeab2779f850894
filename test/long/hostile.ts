// Several hostile values at a time, in 200,000 cases: npm run long -- hostile [cases] [seed] [seconds]
//   npm run long -- hostile matrix [part of a name]      every value at every entry point in every scenario
import { createVirtualWorld } from '@whoa/core/testing';
import { combinations, matrix, runCases } from '../hostile/campaign.ts';

const [cases = '200000', ...args] = process.argv.slice(2);
const [seed = '1', maxSeconds = 'Infinity'] = args;
if (cases !== 'matrix' && !(Number(cases) > 0)) {
  console.error(
    `hostile: '${cases}' is not a number of cases; use 'matrix', or for example: npm run long -- hostile 200000`,
  );
  process.exit(2);
}
const world = createVirtualWorld({ seed: Number(seed) });
const report =
  cases === 'matrix'
    ? await runCases(matrix(), { only: args[0] ?? '' })
    : await runCases(
        combinations(Number(cases), () => world.random()),
        { maxSeconds: Number(maxSeconds) },
      );
console.log(JSON.stringify(report, undefined, 2));
// Leftovers of a value may keep the process alive.
process.exit(report.problems.length === 0 ? 0 : 1);
