// Plays seeded histories of the task engine: the real store moves, runner and agents, on a clock that moves when told, over a
// network and processes that fail. One seed is one history.
//   npm run simulate -- --seeds N [--from M] [--ground NAME] [--processes P] [--tasks FOLDER] [--ledger]
// `--tasks` names a folder with the sources of another tasks package: that is how planted bugs are tried.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { addToLedger } from '../campaigns/ledger.ts';
import { type Ground, grounds } from './simulate-seed.ts';
import { playSeeds } from './simulate-seeds.ts';
import { simulateInProcesses } from './simulated.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    processes: { type: 'string' },
    ground: { type: 'string', default: 'wide' },
    tasks: { type: 'string', default: join(import.meta.dirname, '../../packages/tasks/src') },
    json: { type: 'boolean', default: false },
    /** Stop at the first violation. */
    first: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    /** Append a line to docs/evidence/campaign-log.md. */
    ledger: { type: 'boolean', default: false },
  },
});

const range = { from: Number(values.from), seeds: Number(values.seeds) };
const { tasks: folder, first, trace } = values;
const ground = toGround(values.ground);
const report =
  values.processes === undefined
    ? await playSeeds({ ...range, folder, ground, first, trace })
    : await simulateInProcesses(range, {
        processes: Number(values.processes),
        args: ['--ground', ground, '--tasks', folder],
      });
const { broken, ...counts } = report;
if (values.json) console.log(JSON.stringify(report));
else {
  for (const { seed, violations } of broken) {
    console.log(`seed ${seed}: ${violations.join('; ')}`);
    console.log(`  replay: npm run simulate -- --seeds 1 --from ${seed} --ground ${ground} --trace`);
  }
  console.log(JSON.stringify({ ...counts, broken: broken.length }));
}
if (values.ledger) {
  await addToLedger({
    campaign: ground === 'delivery' ? 'simulate' : `simulate-${ground}`,
    store: ground === 'upgrade' ? 'SQLite' : 'memory',
    seeds: [range.from, range.from + range.seeds - 1],
    count: report.seeds,
    unit: 'runs',
    violations: broken.length,
  });
}
process.exitCode = broken.length === 0 ? 0 : 1;

function toGround(name: string): Ground {
  const ground = grounds.find((one) => one === name);
  if (ground === undefined) throw new TypeError(`--ground: expected one of ${grounds.join(', ')}, got '${name}'`);
  return ground;
}
