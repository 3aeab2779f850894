import { expect, test } from 'vitest';
import { CancellationToken } from '../../stop/token/token.ts';
import { createVirtualWorld, flushMicrotasks } from '../../testing/index.ts';
import { defineTool, type Tool } from '../../tool/tool.ts';
import { createAgent } from '../agent.ts';
import type { Budgets } from '../budget.ts';
import { type Model, ModelError, type ModelPart } from '../reply/model.ts';
import { reply } from '../reply/planner.ts';
import type { RunEvent } from '../report/events.ts';
import type { AgentOptions } from '../setup.ts';
import { createAgentTool } from '../sub-agent.ts';

/** One reply: tokens, and what it does. */
interface Reply {
  readonly in?: number;
  readonly out?: number;
  readonly cached?: number;
  readonly call?: string | readonly string[];
  readonly fail?: Error;
  readonly until?: Promise<void>;
}

// One token costs a millionth of a dollar.
const PRICE = { input: 1, output: 1, cachedInput: 0.1 };

function modelOf(replies: readonly Reply[], name = 'm', maxOutputTokens = 100): Model & { requests: number } {
  const model = {
    name,
    maxOutputTokens,
    requests: 0,
    async *stream(): AsyncGenerator<ModelPart> {
      const given = replies[Math.min(model.requests++, replies.length - 1)]!;
      yield { type: 'usage' };
      if (given.until !== undefined) await given.until;
      if (given.fail !== undefined) throw given.fail;
      for (const [at, tool] of [given.call ?? []].flat().entries())
        yield { type: 'call-end', callId: `c${model.requests}-${at}`, tool, input: { task: 'go' } };
      const counts = { inputTokens: given.in ?? 10, outputTokens: given.out ?? 10 };
      yield { type: 'usage', ...counts, ...(given.cached && { cachedInputTokens: given.cached }) };
      yield { type: 'finish', stopReason: 'stop' };
    },
  };
  return model;
}

const look = defineTool({
  name: 'look',
  description: '',
  inputSchema: { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } },
  inputJsonSchema: {},
  effects: 'read',
  execute: () => 'nothing',
}) as Tool;

type Extra = Partial<Omit<AgentOptions, 'model' | 'planner'>>;

function agentOf(model: Model, budgets: Budgets, more: Extra = {}) {
  const events: RunEvent[] = [];
  const hooks = { any: (event: { type: string }) => void events.push(event as RunEvent) };
  const agent = createAgent({
    name: 'paid',
    model,
    tools: [look],
    budgets: { prices: { m: PRICE }, ...budgets },
    hooks,
    ...more,
  });
  return { agent, events };
}

const end = ({ status, ...outcome }: { status: string; reason?: { kind: string; message?: string } }): string =>
  status === 'cancelled' ? `${outcome.reason!.kind}: ${outcome.reason!.message}` : status;

test('a run counts what its provider reported, in whole millionths of a dollar', async () => {
  const { agent, events } = agentOf(
    modelOf([
      { in: 100, out: 7, call: 'look' },
      { in: 200, cached: 150, out: 5 },
    ]),
    { usd: 1 },
  );
  const outcome = await agent.run('go').outcome;
  const spending = { spent: 107 + 50 + 15 + 5, estimated: 0, reserved: 0, limit: 1_000_000 };
  expect(outcome.spending).toEqual(spending);
  expect(outcome.usage).toEqual({ inputTokens: 300, cachedInputTokens: 150, outputTokens: 12, isComplete: true });
  expect(events.filter(({ type }) => type === 'spending')).toHaveLength(4);
});

test('a run without a limit in money counts none', async () => {
  const { agent, events } = agentOf(modelOf([{}]), {});
  expect([(await agent.run('go').outcome).spending, events.some(({ type }) => type === 'spending')]).toEqual([
    undefined,
    false,
  ]);
});

test('the request that could pass the limit is not sent, and the run keeps what it has', async () => {
  const model = modelOf([{ in: 300, out: 100, call: 'look' }]);
  const { agent } = agentOf(model, { usd: 0.001 });
  const outcome = await agent.run('go').outcome;
  expect([model.requests, outcome.spending!.spent, outcome.calls.length]).toEqual([2, 800, 2]);
  expect(end(outcome)).toBe('budget: the run reached its limit: 0.0008 of 0.001 USD spent');
});

test('a reservation is at least what the dearest request has cost', async () => {
  const model = modelOf([
    { in: 600, out: 10, call: 'look' },
    { in: 10, out: 10 },
  ]);
  const { agent } = agentOf(model, { usd: 0.0012 });
  expect([end(await agent.run('go').outcome), model.requests]).toEqual([
    'budget: the run reached its limit: 0.00061 of 0.0012 USD spent',
    1,
  ]);
});

test('sub-agents that run at the same time share one sum', async () => {
  const research = createAgent({ name: 'research', model: modelOf([{ in: 1, out: 100 }]) });
  const tools = [createAgentTool(research, { description: 'Looks' })];
  const model = modelOf([{ call: Array<string>(8).fill('research') }, {}]);
  // Enough for all, but not for what all of them reserve at the same time.
  const { agent, events } = agentOf(model, { usd: 0.0015 }, { tools });
  const outcome = await agent.run('go').outcome;
  expect([end(outcome), outcome.spending!.spent]).toEqual(['success', 20 + 8 * 101 + 20]);
  const most = events.map((event) => (event.type === 'spending' ? event.spent + event.reserved : 0));
  expect(Math.max(...most)).toBeLessThanOrEqual(1_500);
  const { agent: poorer } = agentOf(
    modelOf([{ call: Array<string>(8).fill('research') }, {}]),
    { usd: 0.0006 },
    { tools },
  );
  const stopped = await poorer.run('go').outcome;
  expect(end(stopped)).toMatch(/^budget: /);
  expect(stopped.spending!.spent).toBeLessThanOrEqual(600);
});

test('a sub-agent has its own limit inside that of its parent', async () => {
  const own = { usd: 0.0005, prices: { m: PRICE } };
  const research = createAgent({
    name: 'research',
    model: modelOf([{ in: 200, out: 100, call: 'look' }]),
    tools: [look],
    budgets: own,
  });
  const tools = [createAgentTool(research, { description: 'Looks' })];
  const { agent } = agentOf(modelOf([{ call: 'research' }, {}]), { usd: 1 }, { tools });
  const outcome = await agent.run('go').outcome;
  expect([end(outcome), outcome.spending!.spent, outcome.calls[0]!.state]).toEqual([
    'success',
    20 + 300 + 20,
    'interrupted',
  ]);
});

test('a reply that is cut off counts as reserved, marked as estimated', async () => {
  const run = agentOf(modelOf([{ until: new Promise(() => {}) }]), { usd: 1 }).agent.run('go');
  await flushMicrotasks();
  run.cancel({ kind: 'user' });
  const { spending, usage } = await run.outcome;
  expect(spending!.spent).toBeGreaterThan(100);
  expect([spending!.estimated, spending!.reserved]).toEqual([spending!.spent, 0]);
  expect(usage).toMatchObject({ inputTokens: 0, isComplete: false });
});

test('each attempt is paid, but not one that the provider refused', async () => {
  const refused = new ModelError('overloaded', { isRetryable: true, status: 529, retryAfterMs: 0 });
  const broken = new ModelError('connection reset', { isRetryable: true, retryAfterMs: 0 });
  const refusing: Model = {
    name: 'm',
    stream: () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(refused) }) }),
  };
  let at = 0;
  const models = [refusing, modelOf([{ fail: broken }]), modelOf([{ in: 40, out: 2 }])];
  const model: Model = { name: 'm', maxOutputTokens: 100, stream: (...given) => models[at++]!.stream(...given) };
  const { spending } = await agentOf(model, { usd: 1 }).agent.run('go').outcome;
  expect([at, spending!.spent - spending!.estimated]).toEqual([3, 42]);
  expect(spending!.estimated).toBeGreaterThan(100);
});

test('a retry that the limit does not allow is not sent', async () => {
  const broken = new ModelError('connection reset', { isRetryable: true, retryAfterMs: 0 });
  const model = modelOf([{ fail: broken }]);
  const outcome = await agentOf(model, { usd: 0.0002 }).agent.run('go').outcome;
  expect([model.requests, end(outcome)]).toEqual([1, expect.stringMatching(/^budget: .* of it estimated$/)]);
});

test('what a compaction uses counts', async () => {
  const compact: AgentOptions['compact'] = (messages, { addUsage }) => {
    addUsage({ inputTokens: 30, outputTokens: 4, isComplete: true });
    addUsage({ inputTokens: 10, outputTokens: 0, isComplete: true }, 'small');
    return messages;
  };
  const prices = { m: PRICE, small: { input: 0.5, output: 1 } };
  const { spending, usage } = await agentOf(modelOf([{}]), { usd: 1, prices }, { compact }).agent.run('go').outcome;
  expect([spending!.spent, usage.inputTokens]).toEqual([34 + 5 + 20, 50]);
});

test('a compaction by a model without a price ends the run', async () => {
  const compact: AgentOptions['compact'] = (messages, { addUsage }) => {
    addUsage({ inputTokens: 30, outputTokens: 4, isComplete: true }, 'other');
    return messages;
  };
  const model = modelOf([{}]);
  const outcome = await agentOf(model, { usd: 1 }, { compact }).agent.run('go').outcome;
  expect([end(outcome), model.requests]).toEqual(["budget: the run reached its limit: no price for 'other'", 0]);
});

test('a planner of your own names its model and reports usage', async () => {
  const planner = {
    model: 'm',
    next: () => ({
      ...reply('hi'),
      message: { ...reply('hi').message, usage: { inputTokens: 9, outputTokens: 1, isComplete: true } },
    }),
  };
  const budgets = { usd: 1, prices: { m: PRICE } };
  expect((await createAgent({ name: 'own', planner, budgets }).run('go').outcome).spending).toMatchObject({
    spent: 10,
    estimated: 0,
  });
  const silent = { model: 'm', next: () => reply('hi') };
  const { spending } = await createAgent({ name: 'own', planner: silent, budgets }).run('go').outcome;
  expect([spending!.spent, spending!.estimated]).toEqual([8_193, 8_193]);
  expect(() => createAgent({ name: 'own', planner: { next: () => reply('hi') }, budgets })).toThrow(/planner\.model/);
});

test('a missing price is an error when the agent is created, and names the nearest known one', () => {
  const model: Model = { ...modelOf([{}], 'openai/gpt-4o'), source: { model: 'gpt-4o' } };
  const create = (budgets: Budgets, tools: readonly Tool[] = []) => createAgent({ name: 'x', model, budgets, tools });
  expect(() => create({ usd: 1 })).toThrow("budgets.prices: no price for 'gpt-4o'; add it");
  expect(() => create({ usd: 1, prices: { 'gpt-4': PRICE } })).toThrow("the nearest known one is 'gpt-4'");
  expect(() => create({ usd: 1, prices: { 'gpt-4o': PRICE } })).not.toThrow();
  expect(() => create({ usd: 1, prices: { 'openai/gpt-4o': PRICE } })).not.toThrow();
  expect(() => create({ usd: 1, price: () => 0 })).not.toThrow();
  const inner = createAgentTool(createAgent({ name: 'inner', model: modelOf([{}], 'claude') }), { description: '' });
  const outer = createAgentTool(createAgent({ name: 'outer', model, tools: [inner] }), { description: '' });
  expect(() => create({ usd: 1, prices: { 'gpt-4o': PRICE } }, [outer])).toThrow(/no price for 'claude'/);
  expect(() => create({}).run('go', { budgets: { usd: 1 } })).toThrow(/no price for 'gpt-4o'/);
});

test.each<Budgets>([
  { usd: 0 },
  { usd: -1 },
  { usd: Infinity },
  { usd: NaN },
  { usd: '5' as never },
  { usd: 1, prices: { m: { input: -1, output: 1 } } },
  { usd: 1, prices: { m: { input: 1 } as never } },
  { usd: 1, prices: { m: 3 as never } },
  { usd: 1, price: 5 as never },
])('%j is rejected', (budgets) => {
  expect(() => createAgent({ name: 'x', model: modelOf([{}]), budgets })).toThrow(/budgets\./);
});

test.each([
  () => NaN,
  () => -1,
  () => '1' as never,
  (): number => {
    throw new Error('no');
  },
  () => undefined as never,
  () => 1e300,
])('a price that is no amount ends the run before the request', async (price) => {
  const model = modelOf([{}]);
  const outcome = await createAgent({ name: 'x', model, budgets: { usd: 1, price } }).run('go').outcome;
  expect([model.requests, end(outcome)]).toEqual([
    0,
    expect.stringMatching(/^budget: .*no price for 'm': budgets\.price returned/),
  ]);
});

test('the request waits until its reservation is recorded, and is not sent if that fails', async () => {
  const recorded = Promise.withResolvers<void>();
  const model = modelOf([{}]);
  const { agent } = agentOf(model, { usd: 1 });
  const run = agent.run('go', { beforeRequest: () => recorded.promise });
  await flushMicrotasks();
  expect(model.requests).toBe(0);
  recorded.resolve();
  expect([(await run.outcome).status, model.requests]).toEqual(['success', 1]);
  const failed = await agent.run('go', { beforeRequest: () => Promise.reject(new Error('the store is gone')) }).outcome;
  expect([failed.status, failed.spending!.spent, model.requests]).toEqual(['failed', 0, 1]);
});

test.each(['before it starts', 'while it is recorded', 'twice', 'after the end'])('cancelled %s', async (when) => {
  const recorded = Promise.withResolvers<void>();
  const model = modelOf([{}]);
  const token = new CancellationToken();
  if (when === 'before it starts') token.cancel({ kind: 'user' });
  const run = agentOf(model, { usd: 1 }).agent.run('go', { token, beforeRequest: () => recorded.promise });
  await flushMicrotasks();
  if (when !== 'after the end') token.cancel({ kind: 'user' });
  if (when === 'twice') token.cancel({ kind: 'user' }, { mode: 'kill' });
  recorded.resolve();
  const outcome = await run.outcome;
  run.cancel();
  const isDone = when === 'after the end';
  expect([outcome.status, model.requests, outcome.spending!.spent]).toEqual(
    isDone ? ['success', 1, 20] : ['cancelled', 0, 0],
  );
  expect(outcome.spending!.reserved).toBe(0);
});

test('a run that waits for money that others have reserved is cancelled at once', async () => {
  const never = new Promise<void>(() => {});
  const research = createAgent({ name: 'research', model: modelOf([{ until: never }]) });
  const tools = [createAgentTool(research, { description: 'Looks' })];
  const model = modelOf([{ call: ['research', 'research', 'research'] }]);
  const { agent, events } = agentOf(model, { usd: 0.0003 }, { tools });
  const run = agent.run('go');
  await flushMicrotasks();
  run.cancel({ kind: 'user' }, { mode: 'now' });
  const outcome = await run.outcome;
  expect(end(outcome)).toBe('user: undefined');
  expect([outcome.spending!.reserved, outcome.spending!.spent <= 300]).toEqual([0, true]);
  expect(events.filter(({ type }) => type === 'call-start')).toHaveLength(3);
});

test('a resumed run goes on with what was spent before', async () => {
  const { RESUMED } = await import('../setup.ts');
  const { agent } = agentOf(modelOf([{}]), { usd: 0.001 });
  const before = { turns: 1, calls: 0, tokens: 0, spending: { spent: 950, estimated: 100 } };
  const options = { [RESUMED]: before };
  const { spending, ...outcome } = await agent.run('go', options).outcome;
  expect([end(outcome), spending]).toEqual([
    'budget: the run reached its limit: 0.00095 of 0.001 USD spent, 0.0001 of it estimated',
    { spent: 950, estimated: 100, reserved: 0, limit: 1_000 },
  ]);
});

test('a turn that never ends leaves its reservation as spent', async () => {
  const world = createVirtualWorld();
  const planner = { model: 'm', next: () => new Promise<never>(() => {}) };
  const agent = createAgent({ name: 'deaf', planner, world, budgets: { usd: 1, prices: { m: PRICE } } });
  const run = agent.run('go');
  await flushMicrotasks();
  run.cancel({ kind: 'user' }, { mode: 'kill' });
  await world.clock.advance(60_000);
  const { spending } = await run.outcome;
  expect([spending!.reserved, spending!.spent > 8_000, spending!.estimated === spending!.spent]).toEqual([
    0,
    true,
    true,
  ]);
});
