// Tasks that kill their workers, next to harmless ones: npm run long -- poison [times] [store]

import { runPoisonCampaign } from '../tasks/poison-campaign.ts';
import { storeKindsNamed } from '../tasks/shared-stores.ts';

const [times = '20', store] = process.argv.slice(2);
for (let i = 0; i < Number(times); i++) {
  for (const kind of storeKindsNamed(store)) {
    const report = await runPoisonCampaign(kind, { poisons: 1 + (i % 2) });
    console.log(kind.name, report);
    if (report.violations.length > 0) process.exitCode = 1;
  }
}
