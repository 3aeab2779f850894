import { expect, test } from 'vitest';
import { runPoisonCampaign } from './poison-campaign.ts';
import { storeKinds } from './shared-stores.ts';

test.each(storeKinds)(
  'two tasks on $name that kill their workers fail, and none of their 60 neighbours does',
  async (kind) => {
    const report = await runPoisonCampaign(kind, { poisons: 2 });
    console.log(kind.name, report);
    expect(report.violations).toEqual([]);
    expect(report.crashes).toHaveLength(2);
  },
  240_000,
);
