import { expect, test } from 'vitest';
import { isNight } from '../night.ts';
import { checkQuestions } from './check.ts';
import { plantedQuestionBugs, SMALL_QUESTIONS } from './question-configurations.ts';

test('every reachable state of a task with a question is right', async () => {
  const states = expect.any(Number) as number;
  expect(await checkQuestions(SMALL_QUESTIONS)).toEqual({ isWhole: true, states });
});

test.runIf(isNight).for(plantedQuestionBugs)('the model of questions rejects $name', async ({ switches }) => {
  const { violation } = await checkQuestions(switches);
  expect(violation).toBeDefined();
});
