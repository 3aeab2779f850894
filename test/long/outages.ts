// Repeatedly stops a store for longer than a lease, while its worker is alive: npm run long -- outages [times]

import { runOutageCampaign } from '../tasks/outage-campaign.ts';

const { seen } = await runOutageCampaign({ outages: Number(process.argv[2] ?? '10') });
for (const counts of seen) {
  console.log(counts);
  if (Object.keys(counts).some((state) => state.startsWith('failed'))) process.exitCode = 1;
}
