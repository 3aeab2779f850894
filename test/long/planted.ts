// Plants each bug in a copy of the tasks package and reports which seed of the simulation finds it first, and the violation.
//   npm run long -- planted [SEEDS] [part of a name] [--log]
import { parseArgs } from 'node:util';
import { addToCampaignLog } from '../campaigns/campaign-log.ts';
import { plantedBugs } from '../simulation/planted.ts';
import { tryPlanted } from '../simulation/try-planted.ts';

const { values, positionals } = parseArgs({ options: { log: { type: 'boolean' } }, allowPositionals: true });
const [seeds = '10000', part = ''] = positionals;
const bugs = plantedBugs.filter(({ name }) => name.includes(part));
let missed = 0;
for (const bug of bugs) {
  const [first] = (await tryPlanted([bug], Number(seeds)))[0]!.broken;
  if (first === undefined) missed++;
  const { seed = '-', violations: [violation = ''] = [`not found in ${seeds} seeds`] } = first ?? {};
  console.log(`| ${bug.name} | ${seed} | ${violation.replaceAll(/t-[\w-]{32}/gu, 'task')} |`);
}
console.log(`${bugs.length - missed} of ${bugs.length} found`);
if (values.log) {
  const entry = { seeds: [1, Number(seeds)] as const, count: bugs.length, unit: 'bugs', violations: missed };
  await addToCampaignLog({ campaign: 'planted', store: 'memory', ...entry });
}
process.exitCode = missed === 0 ? 0 : 1;
