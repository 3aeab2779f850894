import { expect, test } from 'vitest';
import { runPoisonCampaign } from './poison-campaign.ts';
import { storeKinds } from './shared-stores.ts';

const CASES = storeKinds.flatMap((kind) => [1, 2].map((poisons) => ({ kind, name: kind.name, poisons })));

test.each(CASES)(
  '$poisons task(s) on $name that kill their workers fail, and none of their 60 neighbours does',
  async ({ kind, poisons }) => {
    const report = await runPoisonCampaign(kind, { poisons });
    console.log(kind.name, report);
    expect(report.violations).toEqual([]);
    expect(report.deaths).toHaveLength(poisons);
  },
  240_000,
);
