import { expect, test } from 'vitest';
import { runRace } from './race-campaign.ts';
import { storeKinds } from './shared-stores.ts';

test.each(storeKinds)(
  'tasks on $name, three processes racing to end each: one end each, and every receipt is true',
  async (kind) => {
    const report = await runRace(kind, kind.raceTasks);
    console.log(kind.name, report);
    expect(report.violations).toEqual([]);
    expect(Object.keys(report.ends).length).toBe(3);
  },
);
