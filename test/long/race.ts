// Three processes race to end 20,000 tasks: npm run long -- race [store] [tasks]

import { runRace } from '../tasks/race-campaign.ts';
import { storeKindsNamed } from '../tasks/shared-stores.ts';

const [store, tasks = '20000'] = process.argv.slice(2);
for (const kind of storeKindsNamed(store)) {
  const report = await runRace(kind, Number(tasks));
  console.log(kind.name, report);
  if (report.violations.length > 0) process.exitCode = 1;
}
