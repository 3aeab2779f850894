// Kills workers, restarts stores and steps clocks while people answer:
//   npm run long -- question-chaos [sqlite|postgres|bullmq] [TASKS] [SEED] [--log]
import { parseArgs } from 'node:util';
import { createVirtualWorld } from '@whoa/core/testing';
import { addToCampaignLog } from '../campaigns/campaign-log.ts';
import { behindBullmq } from '../tasks/chaos-bullmq.ts';
import { chaosStoresNamed, postgres, sqlite } from '../tasks/chaos-stores.ts';
import { runQuestionCampaign } from '../tasks/question-campaign.ts';

const { values, positionals } = parseArgs({ options: { log: { type: 'boolean' } }, allowPositionals: true });
const [store, tasks = '250', seed = '1'] = positionals;
for (const kind of chaosStoresNamed(store, [sqlite, postgres, behindBullmq(postgres)])) {
  const world = createVirtualWorld({ seed: Number(seed) });
  const random = (): number => world.random();
  const report = await runQuestionCampaign(kind, { tasks: Number(tasks), random, hasDisasters: true });
  console.log(kind.name, report);
  const violations = report.violations.length;
  if (values.log)
    await addToCampaignLog({
      campaign: 'question-chaos',
      store: kind.name,
      count: Number(tasks),
      unit: 'runs',
      violations,
    });
  if (violations > 0) process.exitCode = 1;
}
