import { expect, test } from 'vitest';
import { runOutageCampaign } from './outage-campaign.ts';

test('outages longer than a lease do not affect the tasks of a living worker', async () => {
  const { seen } = await runOutageCampaign({ outages: 3 });
  expect(seen).toEqual(Array(3).fill({ 'running, attempts 1, deaths 0': 20 }));
}, 120_000);
