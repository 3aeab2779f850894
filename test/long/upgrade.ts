// Rolls workers to a release with a newer format, back, and again, under tasks that run all the time, and finishes;
// then verifies
// every task.
//   npm run long -- upgrade [sqlite|postgres] [TASKS] [--log]
import { parseArgs } from 'node:util';
import { addToCampaignLog } from '../campaigns/campaign-log.ts';
import { storeKindsNamed } from '../tasks/shared-stores.ts';
import { runUpgrade } from '../upgrade/campaign.ts';
import { createNextRelease } from '../upgrade/next-release.ts';

const { values, positionals } = parseArgs({ options: { log: { type: 'boolean' } }, allowPositionals: true });
const [store, tasks = '500'] = positionals;
for (const kind of storeKindsNamed(store)) {
  using next = await createNextRelease();
  const report = await runUpgrade(kind, { tasks: Number(tasks), next });
  console.log(kind.name, JSON.stringify({ ...report, violations: report.violations.length }));
  for (const violation of report.violations.slice(0, 20)) console.log(`  ${violation}`);
  if (report.violations.length > 0) process.exitCode = 1;
  const violations = report.violations.length;
  const count = Number(tasks);
  if (values.log) await addToCampaignLog({ campaign: 'upgrade', store: kind.name, count, unit: 'tasks', violations });
}
