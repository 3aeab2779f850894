import { expect, test } from 'vitest';
import { createVirtualWorld, flushMicrotasks } from '../testing/index.ts';
import { defineTool, type Tool } from '../tool/tool.ts';
import { createAgent } from './agent.ts';
import type { Budgets } from './budget.ts';
import type { AskForMore, BudgetQuestion } from './budget-question.ts';
import { callTools, type Planner, reply } from './reply/planner.ts';
import type { Outcome } from './report/outcome.ts';
import { createAgentTool } from './sub-agent.ts';

const usage = { inputTokens: 300, outputTokens: 100, isComplete: true };
const prices = { m: { input: 1, output: 1 } };

/** Calls a tool `calls` times, in turns of `width`, and then replies. One turn costs 400 millionths. */
function plannerOf(calls: number, { width = 1, name = 'look' } = {}): Planner {
  return {
    model: 'm',
    next: (history) => {
      const done = history.filter(({ role }) => role === 'tool').length;
      const wanted = Array.from({ length: width }, (_, at) => ({
        id: `c${done + at}`,
        tool: name,
        input: { task: 'x' },
      }));
      const step = done < calls ? callTools(wanted) : reply('done');
      return { ...step, message: { ...step.message, usage } };
    },
  };
}

const look = defineTool({
  name: 'look',
  description: '',
  inputSchema: { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } },
  inputJsonSchema: {},
  effects: 'read',
  execute: () => 'closed',
}) as Tool;

async function run(budgets: Budgets, ask: AskForMore, { planner = plannerOf(4), tools = [look] } = {}) {
  const asked: BudgetQuestion[] = [];
  const remembering: AskForMore = (question, context) => {
    asked.push(question);
    return ask(question, context);
  };
  const agent = createAgent({
    name: 'asking',
    planner,
    tools,
    budgets: { prices, onReached: 'ask', ask: remembering, ...budgets },
  });
  return { outcome: await agent.run('go').outcome, asked };
}

async function settleDown(): Promise<void> {
  for (let at = 0; at < 20; at++) await flushMicrotasks();
}

const end = (outcome: Outcome): string =>
  outcome.status === 'cancelled' ? `${outcome.reason.kind}: ${outcome.reason.message}` : outcome.status;

test('a run that reaches its limit in money asks for more, and continues with it', async () => {
  const { outcome, asked } = await run({ usd: 0.009 }, () => ({ more: 0.0006 }));
  expect(asked.map(({ text }) => text)).toEqual([
    '0.0008 of 0.009 USD spent in 2 turns. How much more?',
    '0.0016 of 0.0096 USD spent in 4 turns. How much more?',
  ]);
  expect(asked[0]).toMatchObject({ limit: 'usd', used: 0.0008, of: 0.009 });
  expect([end(outcome), outcome.spending]).toEqual([
    'success',
    { spent: 2_000, estimated: 0, reserved: 0, limit: 10_200 },
  ]);
});

test.each<[Budgets, number, string]>([
  [{ maxTurns: 2 }, 3, '2 of 2 turns taken. How many more?'],
  [{ maxCalls: 3 }, 1, '3 of 3 tool calls made. How many more?'],
  [{ maxModelTokens: 500 }, 2_000, '800 of 500 tokens used. How many more?'],
  [
    { repeats: 1 },
    3,
    'The same tool call was made once with the same result, and is asked for again. How often may it run again?',
  ],
])('%j: it can be raised', async (budgets, more, text) => {
  const { outcome, asked } = await run(budgets, () => ({ more }), { planner: plannerOf('repeats' in budgets ? 6 : 4) });
  expect([asked.map((one) => one.text), end(outcome)]).toEqual([[text], 'success']);
});

test('too little is asked about again', async () => {
  const { outcome, asked } = await run({ maxModelTokens: 500 }, ({ of }) => ({ more: of < 800 ? 100 : 9_000 }));
  expect([asked.map(({ of }) => of), end(outcome)]).toEqual([[500, 600, 700, 800].slice(0, 4), 'success']);
});

test.each<[string, AskForMore]>([
  ['no', () => 'no'],
  ['0', () => ({ more: 0 })],
  ['a negative amount', () => ({ more: -1 })],
  ['infinitely much', () => ({ more: Infinity })],
  ['not a number', () => ({ more: NaN })],
  ['a text', () => ({ more: '5' as never })],
  ['nothing', () => undefined as never],
  ['yes', () => true as never],
  ['an error', () => Promise.reject(new Error('the line is down'))],
])('%s means no', async (_, ask) => {
  const { outcome, asked } = await run({ maxTurns: 2 }, ask);
  expect([asked.length, end(outcome)]).toEqual([1, 'budget: the run reached its maxTurns of 2; no more was given']);
});

test('a missing price is not asked about', async () => {
  const { outcome, asked } = await run({ usd: 1, price: () => NaN }, () => ({ more: 5 }));
  expect([asked, end(outcome)]).toEqual([[], expect.stringMatching(/no price for 'm'/)]);
});

test('however many sub-agents reach the limit of their parent, one question is asked and nothing starts meanwhile', async () => {
  const answer = Promise.withResolvers<{ more: number }>();
  const research = createAgent({ name: 'research', planner: plannerOf(2), tools: [look] });
  const tools = [createAgentTool(research, { description: '' })];
  const events: string[] = [];
  const asked: string[] = [];
  const agent = createAgent({
    name: 'lead',
    planner: plannerOf(4, { width: 4, name: 'research' }),
    tools,
    // Enough for the first request of each, not for the next one.
    budgets: { prices, usd: 0.01, onReached: 'ask', ask: ({ text }) => (asked.push(text) ? answer.promise : 'no') },
    hooks: {
      any: (event) =>
        void events.push(event.type === 'call-event' ? (event.event as { type: string }).type : event.type),
    },
  });
  const running = agent.run('go');
  await settleDown();
  const started = events.filter((type) => type === 'turn-start' || type === 'call-start').length;
  await settleDown();
  expect(asked).toHaveLength(1);
  expect(events.filter((type) => type === 'turn-start' || type === 'call-start')).toHaveLength(started);
  answer.resolve({ more: 1 });
  const outcome = await running.outcome;
  expect([asked.length, end(outcome), outcome.spending!.estimated, outcome.spending!.spent]).toEqual([
    1,
    'success',
    0,
    400 * 14,
  ]);
});

test('a sub-agent whose own limit is reached asks for itself', async () => {
  const texts: string[] = [];
  const ask =
    (who: string): AskForMore =>
    ({ text }) => {
      texts.push(`${who}: ${text}`);
      return { more: 1 };
    };
  const inner = { prices, usd: 0.0085, onReached: 'ask', ask: ask('research') } as const;
  const research = createAgent({ name: 'research', planner: plannerOf(1), tools: [look], budgets: inner });
  const tools = [createAgentTool(research, { description: '' })];
  const agent = createAgent({
    name: 'lead',
    planner: plannerOf(1, { name: 'research' }),
    tools,
    budgets: { ...inner, usd: 1, ask: ask('lead') },
  });
  expect(end(await agent.run('go').outcome)).toBe('success');
  expect(texts).toEqual(['research: 0.0004 of 0.0085 USD spent in 1 turn. How much more?']);
});

test.each(['before the answer', 'twice', 'in its event'])('cancelled %s: the answer changes nothing', async (when) => {
  const answer = Promise.withResolvers<{ more: number }>();
  let signal: AbortSignal | undefined;
  const agent = createAgent({
    name: 'asking',
    planner: plannerOf(4),
    tools: [look],
    budgets: {
      maxTurns: 2,
      onReached: 'ask',
      ask: (_, context) => {
        ({ signal } = context);
        return answer.promise;
      },
    },
    hooks: { 'budget-asked': () => void (when === 'in its event' && running.cancel({ kind: 'user' })) },
  });
  const running = agent.run('go');
  await flushMicrotasks();
  running.cancel({ kind: 'user' });
  if (when === 'twice') running.cancel({ kind: 'user' }, { mode: 'kill' });
  expect(signal?.aborted).toBe(when === 'in its event' ? undefined : true);
  answer.resolve({ more: 5 });
  const outcome = await running.outcome;
  expect([end(outcome), outcome.turns]).toEqual(['user: undefined', 2]);
});

test('one who never answers holds the run, not its end, and the time limit is not asked about', async () => {
  const world = createVirtualWorld();
  const agent = createAgent({
    name: 'asking',
    planner: plannerOf(4),
    tools: [look],
    world,
    budgets: { maxTurns: 2, maxDurationMs: 60_000, onReached: 'ask', ask: () => new Promise<never>(() => {}) },
  });
  const running = agent.run('go');
  await flushMicrotasks();
  await world.clock.advance(70_000);
  expect(end(await running.outcome)).toMatch(/^deadline: /);
});

test('asking where no one can be asked is an error', () => {
  const create = (budgets: Budgets) => createAgent({ name: 'x', planner: plannerOf(1), budgets });
  expect(() => create({ onReached: 'ask' })).toThrow(/budgets\.ask: onReached is 'ask', and no one can be asked/);
  expect(() => create({}).run('go', { budgets: { onReached: 'ask' } })).toThrow(/budgets\.ask/);
  expect(() => create({ onReached: 'never' as never })).toThrow(/budgets\.onReached/);
});
