// Plants each bug in a copy of the tasks package and says which seed of the simulation finds it first, and by what.
//   npm run long -- planted [SEEDS] [part of a name] [--ledger]
import { parseArgs } from 'node:util';
import { addToLedger } from '../campaigns/ledger.ts';
import { plantedBugs } from '../simulation/planted.ts';
import { tryPlanted } from '../simulation/try-planted.ts';

const { values, positionals } = parseArgs({ options: { ledger: { type: 'boolean' } }, allowPositionals: true });
const [seeds = '10000', part = ''] = positionals;
const bugs = plantedBugs.filter(({ name }) => name.includes(part));
let missed = 0;
for (const bug of bugs) {
  const [first] = (await tryPlanted([bug], Number(seeds)))[0]!.broken;
  if (first === undefined) missed++;
  const { seed = '-', violations: [violation = ''] = [`not found in ${seeds} seeds`] } = first ?? {};
  console.log(`| ${bug.name} | ${seed} | ${violation.replaceAll(/t0-[\w-]{32}/gu, 'task')} |`);
}
console.log(`${bugs.length - missed} of ${bugs.length} found`);
if (values.ledger) {
  const played = { seeds: [1, Number(seeds)] as const, count: bugs.length, unit: 'bugs', violations: missed };
  await addToLedger({ campaign: 'planted', store: 'memory', ...played });
}
process.exitCode = missed === 0 ? 0 : 1;
