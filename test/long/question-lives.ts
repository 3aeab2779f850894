// Kills workers while people answer: npm run long -- question-lives [store] [tasks] [seed]
import { createVirtualWorld } from '@whoa/core/testing';
import { runQuestionCampaign } from '../tasks/question-campaign.ts';
import { storeKindsNamed } from '../tasks/shared-stores.ts';

const [store, tasks = '350', seed = '1'] = process.argv.slice(2);
for (const kind of storeKindsNamed(store)) {
  const world = createVirtualWorld({ seed: Number(seed) });
  const report = await runQuestionCampaign(kind, { tasks: Number(tasks), random: () => world.random() });
  console.log(kind.name, report);
  if (report.violations.length > 0) process.exitCode = 1;
}
