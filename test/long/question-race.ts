// Parks tasks while others answer, cancel, sweep and write: npm run long -- question-race [store] [races]

import { runQuestionRaces } from '../tasks/question-race-campaign.ts';
import { storeKindsNamed } from '../tasks/shared-stores.ts';

const [store, races = '20000'] = process.argv.slice(2);
for (const kind of storeKindsNamed(store)) {
  const started = performance.now();
  const { violations, ...report } = await runQuestionRaces(kind, Number(races));
  const seconds = Math.round((performance.now() - started) / 1_000);
  console.log(kind.name, JSON.stringify({ ...report, violations: violations.slice(0, 20), seconds }));
  if (violations.length > 0) process.exitCode = 1;
}
