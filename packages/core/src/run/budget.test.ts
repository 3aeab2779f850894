import { expect, test } from 'vitest';
import { createScriptedModel } from '../testing/index.ts';
import { createAgent } from './agent.ts';
import { type Budgets, MAX_TURNS, overspent } from './budget.ts';
import { Transcript } from './history/transcript.ts';

function spent(budgets: Budgets, turn: number, calls: number): string | undefined {
  const transcript = new Transcript();
  transcript.addReply({
    role: 'assistant',
    content: [{ type: 'call', callId: 'c', tool: 't', input: {} }],
    stopReason: 'tool-use',
    usage: { inputTokens: 30, outputTokens: 12, isComplete: true },
  });
  transcript.addResult({ callId: 'c', tool: 't', state: 'finished', content: '', isError: false, endedAt: 0 });
  return overspent(budgets, { turn, calls, transcript })?.message;
}

test.each<[Budgets, number, number, string | undefined]>([
  [{}, MAX_TURNS, 1_000_000, undefined],
  [{}, MAX_TURNS + 1, 0, `the run reached its maxTurns of ${MAX_TURNS}`],
  [{ maxTurns: 2 }, 2, 0, undefined],
  [{ maxTurns: 2 }, 3, 0, 'the run reached its maxTurns of 2'],
  [{ maxTurns: Infinity }, 1_000_000, 0, undefined],
  [{ maxCalls: 3 }, 1, 2, undefined],
  [{ maxCalls: 3 }, 1, 3, 'the run reached its maxCalls of 3'],
  [{ maxModelTokens: 42 }, 1, 0, undefined],
  [{ maxModelTokens: 41 }, 1, 0, 'the run reached its maxModelTokens of 41'],
])('under %j turn %d with %d calls more: %s', (budgets, turn, calls, message) => {
  expect(spent(budgets, turn, calls)).toBe(message);
});

test('a limit of one run replaces that limit of the agent, and leaves the others', async () => {
  const agent = createAgent({
    name: 'watcher',
    model: createScriptedModel([['Once more. ', { call: 'none', input: {} }]]),
    budgets: { maxTurns: 5, maxCalls: 3 },
  });
  const runWith = async (budgets?: Budgets): Promise<string | undefined> => {
    const outcome = await agent.run('go', budgets && { budgets }).outcome;
    return outcome.status === 'cancelled' ? outcome.reason.message : outcome.status;
  };
  expect(await runWith({ maxTurns: 2 })).toBe('the run reached its maxTurns of 2');
  expect(await runWith({ maxTurns: 100 })).toBe('the run reached its maxCalls of 3');
  expect(await runWith()).toBe('the run reached its maxCalls of 3');
  expect(() => agent.run('go', { budgets: { maxTurns: -1 } })).toThrow(/budgets\.maxTurns/);
});
