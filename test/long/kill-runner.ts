// SIGKILLs runners at 200 random moments: npm run long -- kill-runner [store] [kills] [seed]
import { createVirtualWorld } from '@whoa/core/testing';
import { runKillCampaign } from '../tasks/kill-campaign.ts';
import { storeKindsNamed } from '../tasks/shared-stores.ts';

const [store, kills = '200', seed = '1'] = process.argv.slice(2);
for (const kind of storeKindsNamed(store)) {
  const world = createVirtualWorld({ seed: Number(seed) });
  const report = await runKillCampaign(kind, { kills: Number(kills), random: () => world.random() });
  console.log(kind.name, report);
  if (report.violations.length > 0) process.exitCode = 1;
}
