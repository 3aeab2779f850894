import { expect, test } from 'vitest';
import { runQuestionRaces } from './question-race-campaign.ts';
import { storeKinds } from './shared-stores.ts';

/** `npm run long -- question-race` runs 20,000 on each store. */
const RACES = 400;

test.each(storeKinds)(
  'a park on $name races against answers, cancels, expiries, messages and sweeps: no answer is lost, and no task is stuck',
  async (kind) => {
    const { results, violations } = await runQuestionRaces(kind, RACES);
    console.log(kind.name, results);
    expect(violations).toEqual([]);
    // Each side must have won at least once: otherwise there was no race.
    for (const rival of ['answer', 'cancel', 'queue', 'steer']) {
      expect(Object.keys(results)).toEqual(expect.arrayContaining([`${rival}: busy, held`, `${rival}: parked, ready`]));
    }
  },
);
