// Plants each bug in a copy of the tasks package and says which seed of the simulation finds it first, and by what.
//   npm run long -- planted [SEEDS] [part of a name]
import { plantedBugs } from '../simulation/planted.ts';
import { tryPlanted } from '../simulation/try-planted.ts';

const [seeds = '10000', part = ''] = process.argv.slice(2);
const bugs = plantedBugs.filter(({ name }) => name.includes(part));
let missed = 0;
for (const bug of bugs) {
  const { firstBroken } = await tryPlanted(bug, Number(seeds));
  if (firstBroken === undefined) missed++;
  const { seed = '-', violation = `not found in ${seeds} seeds` } = firstBroken ?? {};
  console.log(`| ${bug.name} | ${seed} | ${violation.replaceAll(/t0-[\w-]{32}/gu, 'task')} |`);
}
console.log(`${bugs.length - missed} of ${bugs.length} found`);
process.exitCode = missed === 0 ? 0 : 1;
