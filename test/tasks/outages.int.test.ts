import { expect, test } from 'vitest';
import { runOutageCampaign } from './outage-campaign.ts';

test('outages that are longer than a lease cost the tasks of a worker that lives nothing', async () => {
  const { seen } = await runOutageCampaign({ outages: 3 });
  expect(seen).toEqual(Array(3).fill({ 'running, attempts 1, deaths 0': 20 }));
}, 120_000);
