// P14 A question keeps: it keeps its id whatever happens to its worker, and an accepted answer takes effect exactly once.
import { createVirtualWorld } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { runQuestionCampaign } from '../tasks/question-campaign.ts';
import { storeKinds } from '../tasks/shared-stores.ts';

test.each(storeKinds)(
  'questions on $name outlive killed workers: one answer counts, and an allowed payment is made once',
  async (kind) => {
    const world = createVirtualWorld({ seed: 11 });
    const report = await runQuestionCampaign(kind, { tasks: 12, random: () => world.random() });
    console.log(kind.name, report);
    expect(report.violations).toEqual([]);
    expect(report.kills).toBeGreaterThan(0);
    expect(report.paid).toBeGreaterThan(0);
    expect(report.denied).toBeGreaterThan(0);
  },
);
