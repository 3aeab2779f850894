// Checks the protocol of questions with Spin in ever larger configurations, then that it rejects every planted bug.
//   npm run long -- questions [HOW MANY CONFIGURATIONS]
import { checkQuestions } from '../model/check.ts';
import { largeQuestions, plantedQuestionBugs, slowQuestionBugs } from '../model/question-configurations.ts';

for (const { name, switches } of largeQuestions.slice(0, Number(process.argv[2] ?? largeQuestions.length))) {
  const checked = await checkQuestions(switches, { isLarge: true });
  console.log(JSON.stringify({ name, ...checked }));
  if (!checked.isWhole || checked.violation !== undefined) process.exitCode = 1;
}
for (const { name, switches } of [...plantedQuestionBugs, ...slowQuestionBugs]) {
  const { violation } = await checkQuestions(switches);
  console.log(`${violation === undefined ? 'MISSED' : 'rejected'} ${name}: ${violation ?? switches.join(' ')}`);
  if (violation === undefined) process.exitCode = 1;
}
