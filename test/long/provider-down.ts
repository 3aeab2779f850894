// A provider that is down for minutes under 500 tasks that wait for it: npm run long -- provider-down [minutes] [store]

import { runProviderDownCampaign } from '../tasks/provider-down-campaign.ts';
import { storeKindsNamed } from '../tasks/shared-stores.ts';

const TASKS = 500;
const [minutes = '5', store = 'postgres'] = process.argv.slice(2);
const halfMs = Number(minutes) * 30_000;
const rule = { maxMs: 6 * halfMs, backoffMs: 5_000, maxBackoffMs: 60_000 };
for (const kind of storeKindsNamed(store)) {
  const report = await runProviderDownCampaign(kind, { tasks: TASKS, phaseMs: halfMs, rule });
  console.log(kind.name, report);
  if (report.violations.length > 0 || report.peak > TASKS / 4) process.exitCode = 1;
}
