// Simulates the task engine: the real store operations, runner and agents, on a virtual clock, with a network and
// processes that
// fail. One seed is one simulated run.
//   npm run simulate -- --seeds N [--from M] [--profile NAME] [--bus FAULTS] [--processes P] [--tasks FOLDER] [--log]
// `--tasks` names a folder with the sources of another tasks package, for example one with a planted bug.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { addToCampaignLog } from '../campaigns/campaign-log.ts';
import { BUS_FAULTS } from './network.ts';
import { profiles } from './simulate-seed.ts';
import { simulateSeeds } from './simulate-seeds.ts';
import { simulateInProcesses } from './simulated.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    processes: { type: 'string' },
    profile: { type: 'string', default: 'mixed' },
    /** What happens to hints: some, drops, disorders. */
    bus: { type: 'string', default: 'some' },
    tasks: { type: 'string', default: join(import.meta.dirname, '../../packages/tasks/src') },
    json: { type: 'boolean', default: false },
    /** Stop at the first violation. */
    first: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    /** Append a line to docs/evidence/campaign-log.jsonl. */
    log: { type: 'boolean', default: false },
  },
});

const range = { from: Number(values.from), seeds: Number(values.seeds) };
const { tasks: folder, first, trace } = values;
const profile = pick('profile', profiles, values.profile);
const bus = pick('bus', BUS_FAULTS, values.bus);
const report =
  values.processes === undefined
    ? await simulateSeeds({ ...range, folder, profile, bus, first, trace })
    : await simulateInProcesses(range, {
        processes: Number(values.processes),
        args: ['--profile', profile, '--bus', bus, '--tasks', folder],
      });
const { broken, ...counts } = report;
if (values.json) console.log(JSON.stringify(report));
else {
  for (const { seed, violations } of broken) {
    console.log(`seed ${seed}: ${violations.join('; ')}`);
    console.log(`  replay: npm run simulate -- --seeds 1 --from ${seed} --profile ${profile} --bus ${bus} --trace`);
  }
  console.log(JSON.stringify({ ...counts, broken: broken.length }));
}
if (values.log) {
  await addToCampaignLog({
    campaign: ['simulate', profile !== 'delivery' && profile, bus !== 'some' && `bus-${bus}`].filter(Boolean).join('-'),
    store: profile === 'upgrade' ? 'SQLite' : 'memory',
    seeds: [range.from, range.from + range.seeds - 1],
    count: report.seeds,
    unit: 'runs',
    violations: broken.length,
  });
}
process.exitCode = broken.length === 0 ? 0 : 1;

function pick<Name extends string>(option: string, names: readonly Name[], given: string): Name {
  const found = names.find((one) => one === given);
  if (found === undefined) throw new TypeError(`--${option}: expected one of ${names.join(', ')}, got '${given}'`);
  return found;
}
