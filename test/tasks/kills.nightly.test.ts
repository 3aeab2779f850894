import { createVirtualWorld } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { runKillCampaign } from './kill-campaign.ts';
import { storeKinds } from './shared-stores.ts';

test.each(storeKinds)(
  'workers on $name killed at random moments lose nothing acknowledged and repeat nothing that must not be',
  async (kind) => {
    const world = createVirtualWorld({ seed: 7 });
    const report = await runKillCampaign(kind, { kills: 15, random: () => world.random() });
    console.log(kind.name, report);
    expect(report.violations).toEqual([]);
    expect(report.crashedTasks).toBeGreaterThan(0);
  },
);
