// Simulates the task engine: the real store operations, runner and agents, on a virtual clock, with a network and
// processes that
// fail. One seed is one simulated run.
//   npm run simulate -- --seeds N [--from M] [--profile NAME] [--processes P] [--tasks FOLDER] [--log]
// `--tasks` names a folder with the sources of another tasks package, for example one with a planted bug.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { addToCampaignLog } from '../campaigns/campaign-log.ts';
import { type Profile, profiles } from './simulate-seed.ts';
import { simulateSeeds } from './simulate-seeds.ts';
import { simulateInProcesses } from './simulated.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    processes: { type: 'string' },
    profile: { type: 'string', default: 'mixed' },
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
const profile = toProfile(values.profile);
const report =
  values.processes === undefined
    ? await simulateSeeds({ ...range, folder, profile, first, trace })
    : await simulateInProcesses(range, {
        processes: Number(values.processes),
        args: ['--profile', profile, '--tasks', folder],
      });
const { broken, ...counts } = report;
if (values.json) console.log(JSON.stringify(report));
else {
  for (const { seed, violations } of broken) {
    console.log(`seed ${seed}: ${violations.join('; ')}`);
    console.log(`  replay: npm run simulate -- --seeds 1 --from ${seed} --profile ${profile} --trace`);
  }
  console.log(JSON.stringify({ ...counts, broken: broken.length }));
}
if (values.log) {
  await addToCampaignLog({
    campaign: profile === 'delivery' ? 'simulate' : `simulate-${profile}`,
    store: profile === 'upgrade' ? 'SQLite' : 'memory',
    seeds: [range.from, range.from + range.seeds - 1],
    count: report.seeds,
    unit: 'runs',
    violations: broken.length,
  });
}
process.exitCode = broken.length === 0 ? 0 : 1;

function toProfile(name: string): Profile {
  const profile = profiles.find((one) => one === name);
  if (profile === undefined) throw new TypeError(`--profile: expected one of ${profiles.join(', ')}, got '${name}'`);
  return profile;
}
