// Lets tasks live while workers are killed and stopped, connections cut and left half-open, servers restarted, frozen and
// replaced, shards moved and added, and clocks stepped; judges every life. Needs a C compiler.
//   npm run long -- chaos [sqlite|redis|sentinel|cluster|postgres|bullmq] [LIVES] [SEED] [--ledger]
import { parseArgs } from 'node:util';
import { createVirtualWorld } from '@whoa/core/testing';
import { addToLedger } from '../campaigns/ledger.ts';
import { behindBullmq } from '../tasks/chaos-bullmq.ts';
import { runChaos } from '../tasks/chaos-campaign.ts';
import { chaosStoresNamed, redis, stores } from '../tasks/chaos-stores.ts';

const { values, positionals } = parseArgs({ options: { ledger: { type: 'boolean' } }, allowPositionals: true });
const [store, lives = '20000', seed = '1'] = positionals;
for (const kind of chaosStoresNamed(store, [...stores, behindBullmq(redis)])) {
  const world = createVirtualWorld({ seed: Number(seed) });
  const report = await runChaos(kind, { lives: Number(lives), random: () => world.random() });
  console.log(kind.name, JSON.stringify({ ...report, violations: report.violations.length }));
  for (const violation of report.violations.slice(0, 20)) console.log(`  ${violation}`);
  if (report.violations.length > 0) process.exitCode = 1;
  if (!values.ledger) continue;
  await addToLedger({
    campaign: 'chaos',
    store: kind.name,
    seeds: [Number(seed), Number(seed)],
    count: report.lives,
    unit: 'runs',
    violations: report.violations.length,
  });
}
