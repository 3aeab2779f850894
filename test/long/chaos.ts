// Runs tasks while workers are killed and suspended, connections cut and left half-open, servers restarted, frozen and
// replaced, and clocks stepped, then verifies each task. Needs a C compiler.
//   npm run long -- chaos [sqlite|postgres|redis|pgbouncer|bullmq] [RUNS] [SEED] [--log]
import { parseArgs } from 'node:util';
import { createVirtualWorld } from '@whoa/core/testing';
import { addToCampaignLog } from '../campaigns/campaign-log.ts';
import { behindBullmq } from '../tasks/chaos-bullmq.ts';
import { runChaos } from '../tasks/chaos-campaign.ts';
import { chaosStoresNamed, postgres, postgresPooled, postgresWithBus, stores } from '../tasks/chaos-stores.ts';

const { values, positionals } = parseArgs({ options: { log: { type: 'boolean' } }, allowPositionals: true });
const [store, runs = '20000', seed = '1'] = positionals;
for (const kind of chaosStoresNamed(store, [...stores, postgresWithBus, postgresPooled, behindBullmq(postgres)])) {
  const world = createVirtualWorld({ seed: Number(seed) });
  const report = await runChaos(kind, { runs: Number(runs), random: () => world.random() });
  console.log(kind.name, JSON.stringify({ ...report, violations: report.violations.length }));
  for (const violation of report.violations.slice(0, 20)) console.log(`  ${violation}`);
  if (report.violations.length > 0) process.exitCode = 1;
  if (!values.log) continue;
  await addToCampaignLog({
    campaign: 'chaos',
    store: kind.name,
    seeds: [Number(seed), Number(seed)],
    count: report.runs,
    unit: 'runs',
    violations: report.violations.length,
  });
}
