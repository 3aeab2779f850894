import type { Observation } from '../adapter.ts';
import { expect, type GroupCheck, type Scenario } from '../check.ts';
import { within } from '../clock.ts';
import { expectCancelled, type StartedPrompt, settle, Unclear } from '../drive-turn.ts';
import { promptFor } from '../harness/script.ts';
import { PERMISSION_CANCELLED } from './rules.ts';

/** How long an agent may take to ask. */
const ASK_MS = 20_000;

type Question = Extract<Observation, { what: 'question' }>;

const needs = ['cancel', 'model', 'tool', 'question'] as const;

/** Starts a turn that asks, and returns its question. */
async function ask(scenario: Scenario): Promise<StartedPrompt & { readonly question: Question }> {
  scenario.connection.answerQuestions('by-check');
  const key = scenario.harness.makeKey();
  const turn = scenario.conversation.start(promptFor('call', key));
  const asked = turn.waitFor(({ what }) => what === 'question');
  if (!(await within(ASK_MS, asked))) throw new Unclear('the agent did not ask');
  return { turn, key, question: (await asked) as Question };
}

/** Cancels a turn that asks, and answers its question then. */
async function cancelQuestion(scenario: Scenario, answer?: Parameters<Question['answer']>[0]) {
  const asked = await ask(scenario);
  await scenario.conversation.cancel();
  if (answer !== undefined) asked.question.answer(answer);
  return { ...asked, end: await settle(scenario, asked.turn) };
}

async function expectNeverRan({ harness: { probe } }: Scenario, key: string): Promise<void> {
  expect(!(await probe.startsSoon(key)), 'the call ran, although it was not allowed before the cancel');
}

/** The turn ends as cancelled, and what it asked about never runs. */
async function expectStopped(scenario: Scenario, answer?: 'cancelled'): Promise<void> {
  const { key, end } = await cancelQuestion(scenario, answer);
  expectCancelled(scenario, end);
  await expectNeverRan(scenario, key);
}

export const APPROVAL_CHECKS: readonly GroupCheck[] = [
  {
    id: 'question-answered',
    title: 'A cancel while the agent asks, with the question answered as cancelled, ends the turn as cancelled',
    rules: PERMISSION_CANCELLED,
    needs,
    run: (scenario) => expectStopped(scenario, 'cancelled'),
  },
  {
    id: 'question-unanswered',
    title: 'A cancel ends the turn although the question is never answered',
    needs,
    run: (scenario) => expectStopped(scenario),
  },
  {
    id: 'question-late-yes',
    title: 'A late approval runs nothing',
    needs,
    async run(scenario) {
      const { key } = await cancelQuestion(scenario, 'allow');
      await expectNeverRan(scenario, key);
    },
  },
  {
    id: 'question-withdrawn',
    title: 'The agent withdraws its question when the turn is cancelled',
    needs,
    only: ['acp'],
    async run(scenario) {
      const { question } = await cancelQuestion(scenario);
      expect(question.isWithdrawn(), 'the question was left open: $/cancel_request was not sent for it');
    },
  },
  {
    id: 'question-again',
    title: 'After the cancel, the next call needs approval again',
    needs: [...needs, 'conversation'],
    async run(scenario) {
      await cancelQuestion(scenario, 'cancelled');
      const second = await ask(scenario);
      expect(!scenario.harness.probe.hasStarted(second.key), 'the call ran before its question was answered');
      await scenario.conversation.cancel();
      second.question.answer('cancelled');
      await settle(scenario, second.turn);
    },
  },
];
