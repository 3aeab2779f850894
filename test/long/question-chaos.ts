// Kills workers, restarts stores and steps clocks while people answer:
//   npm run long -- question-chaos [sqlite|redis|postgres|bullmq] [TASKS] [SEED]
import { createVirtualWorld } from '@whoa/core/testing';
import { behindBullmq } from '../tasks/chaos-bullmq.ts';
import { chaosStoresNamed, postgres, redis, sqlite } from '../tasks/chaos-stores.ts';
import { runQuestionCampaign } from '../tasks/question-campaign.ts';

const [store, tasks = '250', seed = '1'] = process.argv.slice(2);
for (const kind of chaosStoresNamed(store, [sqlite, redis, postgres, behindBullmq(redis)])) {
  const world = createVirtualWorld({ seed: Number(seed) });
  const random = (): number => world.random();
  const report = await runQuestionCampaign(kind, { tasks: Number(tasks), random, hasDisasters: true });
  console.log(kind.name, report);
  if (report.violations.length > 0) process.exitCode = 1;
}
