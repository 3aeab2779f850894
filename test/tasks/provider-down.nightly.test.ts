import { expect, test } from 'vitest';
import { runProviderDownCampaign } from './provider-down-campaign.ts';
import { storeKindsNamed } from './shared-stores.ts';

const TASKS = 500;

test('500 tasks whose provider is overloaded, then gone, wait for it, and none comes back in a herd', async () => {
  const rule = { maxMs: 300_000, backoffMs: 2_000, maxBackoffMs: 8_000 };
  const [postgres] = storeKindsNamed('postgres');
  const report = await runProviderDownCampaign(postgres!, { tasks: TASKS, phaseMs: 2_000, rule });
  console.log(report);
  expect(report.violations).toEqual([]);
  expect(report.ended).toEqual({ success: TASKS });
  // Evenly spread over the longest wait, 8 % of them would come in a tenth of it.
  expect(report.peak).toBeLessThan(TASKS / 4);
});
