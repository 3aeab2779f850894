// SIGKILLs runners at 200 random moments: npm run long -- kill-runner [kills] [seed] [store]
import { createVirtualWorld } from '@whoa/core/testing';
import { runKillCampaign } from '../tasks/kill-campaign.ts';
import { places } from '../tasks/places.ts';

const [kills = '200', seed = '1', store] = process.argv.slice(2);
for (const kind of places) {
  if (store !== undefined && kind.name.toLowerCase() !== store.toLowerCase()) continue;
  const world = createVirtualWorld({ seed: Number(seed) });
  const report = await runKillCampaign(kind, { kills: Number(kills), random: () => world.random() });
  console.log(kind.name, report);
  if (report.violations.length > 0) process.exitCode = 1;
}
