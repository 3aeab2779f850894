// Hostile values, several at once, in 200,000 histories: npm run long -- hostile [histories] [seed] [seconds]
//   npm run long -- hostile matrix [part of a name]      every value at every place in every scene
import { createVirtualWorld } from '@whoa/core/testing';
import { combinations, matrix, playStories } from '../hostile/campaign.ts';

const [histories = '200000', ...args] = process.argv.slice(2);
const [seed = '1', maxSeconds = 'Infinity'] = args;
if (histories !== 'matrix' && !(Number(histories) > 0)) {
  console.error(
    `hostile: '${histories}' is no number of histories; say 'matrix', or for example: npm run long -- hostile 200000`,
  );
  process.exit(2);
}
const world = createVirtualWorld({ seed: Number(seed) });
const report =
  histories === 'matrix'
    ? await playStories(matrix(), { only: args[0] ?? '' })
    : await playStories(
        combinations(Number(histories), () => world.random()),
        { maxSeconds: Number(maxSeconds) },
      );
console.log(JSON.stringify(report, undefined, 2));
// What a value left behind may keep the process alive.
process.exit(report.problems.length === 0 ? 0 : 1);
