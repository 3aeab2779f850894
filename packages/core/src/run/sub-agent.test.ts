import { expect, test } from 'vitest';
import { z } from 'zod';
import { CancellationToken } from '../stop/token/token.ts';
import { checkHistory } from '../testing/checker.ts';
import { createRecorder } from '../testing/recorder.ts';
import { createScriptedModel, type ScriptedReply } from '../testing/scripted-model.ts';
import { createVirtualWorld, flushMicrotasks } from '../testing/virtual-world.ts';
import { defineTool, type Tool, type ToolDefinition } from '../tool/tool.ts';
import { type Agent, createAgent } from './agent.ts';
import { createAgentTool } from './sub-agent.ts';

const never = new Promise<never>(() => {});

function setUp() {
  const world = createVirtualWorld();
  const recorder = createRecorder();
  const root = new CancellationToken({ clock: world.clock });
  const agent = (name: string, replies: readonly ScriptedReply[], tools: readonly Tool[] = []): Agent =>
    createAgent({
      name,
      model: createScriptedModel(replies, { clock: world.clock }),
      tools,
      world,
      hooks: recorder.hooks,
    });
  const tool = (name: string, rest: Partial<ToolDefinition<unknown>> = {}): Tool =>
    defineTool({
      name,
      description: name,
      inputSchema: z.unknown(),
      effects: 'read',
      execute: () => `${name} done`,
      ...rest,
    } as ToolDefinition<unknown>);
  const start = (parent: Agent) => recorder.run(parent.run('go', { token: root }));
  const check = () => {
    recorder.recordToken(root);
    expect(checkHistory(recorder.history)).toEqual([]);
    expect(world.clock.pending).toBe(0);
  };
  return { ...world, recorder, root, agent, tool, start, check };
}

const ask = (agent: Agent): Tool => createAgentTool(agent, { description: `Asks ${agent.name}.` }) as Tool;

test('an agent answers as a tool, and its events are nested in its parent’s', async () => {
  const { agent, start, check } = setUp();
  const child = agent('researcher', [['It is 42.']]);
  const parent = agent(
    'lead',
    [[{ call: 'researcher', input: { task: 'what is it?' }, id: 'c' }], ['He says 42.']],
    [ask(child)],
  );
  const run = start(parent);
  const nested: string[] = [];
  for await (const event of run.events) if (event.type === 'call-event') nested.push(event.event.type);
  const outcome = await run.outcome;
  expect(outcome.calls).toMatchObject([
    { content: 'It is 42.', details: { agent: 'researcher', status: 'success', turns: 1 } },
  ]);
  expect(nested[0]).toBe('run-start');
  expect(nested.at(-1)).toBe('run-end');
  check();
});

test('a call that a sub-agent abandoned is named in the report of its parent', async () => {
  const { agent, tool, start, clock } = setUp();
  const child = agent('child', [[{ call: 'deaf', input: {}, id: 'd' }]], [tool('deaf', { execute: () => never })]);
  const parent = agent('lead', [[{ call: 'child', input: { task: 'x' }, id: 'c' }]], [ask(child)]);
  const run = start(parent);
  await flushMicrotasks();
  run.cancel({}, { mode: 'now' });
  await clock.advance(2_000);
  expect(await run.outcome).toMatchObject({
    stop: {
      isClean: false,
      calls: [
        { callId: 'c/d', tool: 'child › deaf', state: 'unknown' },
        { callId: 'c', state: 'interrupted' },
      ],
    },
  });
});

test('a task that is not text is rejected', async () => {
  const { agent, start } = setUp();
  const parent = agent('lead', [[{ call: 'child', input: { what: 1 } }], ['ok']], [ask(agent('child', [['x']]))]);
  expect((await start(parent).outcome).calls[0]?.content).toBe('Not started: task: expected a string');
});

test('an agent that fails, fails its call', async () => {
  const { agent, start, check } = setUp();
  const child = agent('child', [[{ fail: new Error('no model') }]]);
  const parent = agent('lead', [[{ call: 'child', input: { task: 'x' } }], ['ok']], [ask(child)]);
  expect((await start(parent).outcome).calls).toMatchObject([{ state: 'failed', content: 'no model' }]);
  check();
});

test('an agent that fails with an unreadable error fails its call with a clear text', async () => {
  const { agent, start, check } = setUp();
  const child = createAgent({
    name: 'child',
    planner: {
      next(_history, { emit }) {
        emit({ type: 'text', text: 'So far' });
        throw Object.create(null) as Error;
      },
    },
  });
  const parent = agent('lead', [[{ call: 'child', input: { task: 'x' } }], ['ok']], [ask(child)]);
  const { calls } = await start(parent).outcome;
  expect(calls).toMatchObject([{ state: 'failed', content: expect.stringContaining('So far') as string }]);
  check();
});

test('cancelling a parent stops agents five deep, at every level, and keeps the text of each', async () => {
  for (const mode of ['graceful', 'now', 'kill'] as const) {
    const { agent, start, check } = setUp();
    let deepest = agent('a5', [['I think ', { until: never }]]);
    for (const name of ['a4', 'a3', 'a2', 'a1'])
      deepest = agent(name, [[`${name} asks. `, { call: deepest.name, input: { task: 'x' } }]], [ask(deepest)]);
    const run = start(deepest);
    await flushMicrotasks();
    run.cancel({ kind: 'user', by: 'anna' }, { mode });
    const outcome = await run.outcome;
    expect(outcome).toMatchObject({ status: 'cancelled', reason: { by: 'anna' }, stop: { settledAfterMs: 0 } });
    expect(outcome.calls).toMatchObject([
      { state: 'interrupted', reason: { by: 'anna' }, details: { agent: 'a2', status: 'cancelled' } },
    ]);
    expect(outcome.calls[0]?.content).toContain('Output so far:\na2 asks. ');
    check();
  }
});

test('cancelling one child leaves its siblings and its parent alone', async () => {
  const { agent, start, recorder, check } = setUp();
  let finish: (() => void) | undefined;
  const slow = agent('slow', [['Working ', { until: never }]]);
  const fine = agent('fine', [[{ until: new Promise<void>((resolve) => (finish = resolve)) }, 'fine']]);
  const parent = agent(
    'lead',
    [
      [
        { call: 'slow', input: { task: 'x' }, id: 's' },
        { call: 'fine', input: { task: 'y' }, id: 'f' },
      ],
      ['Both back.'],
    ],
    [ask(slow), ask(fine)],
  );
  const run = start(parent);
  await flushMicrotasks();
  expect(run.cancelCall('s')).toMatchObject({ result: 'accepted' });
  await flushMicrotasks();
  finish?.();
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'success', text: 'Both back.' });
  expect(outcome.calls.map(({ state }) => state)).toEqual(['interrupted', 'finished']);
  expect(recorder.history.filter((entry) => entry.seen === 'event' && entry.event.type === 'run-end')).toHaveLength(3);
  check();
});

test('a kill waits for calls of a child that must finish, and no longer', async () => {
  const { agent, tool, start, clock, check } = setUp();
  const pay = tool('pay', {
    whenCancelled: 'finish',
    timeoutMs: 10_000,
    execute: () => new Promise((resolve) => clock.setTimer(4_000, () => resolve('paid'))),
  } as Partial<ToolDefinition<unknown>>);
  const child = agent('child', [[{ call: 'pay' }]], [pay]);
  const run = start(agent('lead', [[{ call: 'child', input: { task: 'x' } }]], [ask(child)]));
  await flushMicrotasks();
  run.cancel({}, { mode: 'kill' });
  await clock.advance(4_000);
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'cancelled', stop: { settledAfterMs: 4_000 } });
  expect(outcome.calls).toMatchObject([
    { state: 'interrupted', details: { calls: [{ tool: 'pay', state: 'finished' }] } },
  ]);
  check();
});

test('undo reverts calls of a sub-agent, whether it had ended or was stopped', async () => {
  const { agent, tool, start, check } = setUp();
  const undone: string[] = [];
  const book = (name: string) => tool(name, { undo: () => void undone.push(name) });
  const ended = agent('ended', [[{ call: 'hotel' }, { call: 'car' }], ['Booked.']], [book('hotel'), book('car')]);
  const live = agent('live', [[{ call: 'flight' }], [{ until: never }]], [book('flight')]);
  const parent = agent(
    'lead',
    [[{ call: 'ended', input: { task: 'x' } }], [{ call: 'live', input: { task: 'y' } }]],
    [ask(ended), ask(live)],
  );
  const run = start(parent);
  await flushMicrotasks();
  run.cancel({}, { undo: true });
  await run.outcome;
  expect(undone).toEqual(['flight', 'car', 'hotel']);
  check();
});

test('a report names what sub-agents finished and cannot undo, by its path, at any depth', async () => {
  const { agent, tool, start, check } = setUp();
  const mail = tool('mail', { effects: 'write' });
  const deep = agent('deep', [[{ call: 'mail', id: 'm' }], ['Sent.']], [mail]);
  const look = tool('look');
  const live = agent(
    'live',
    [[{ call: 'deep', input: { task: 'x' }, id: 'd' }], [{ call: 'look' }], [{ until: never }]],
    [ask(deep), look],
  );
  const calls = [[{ call: 'mail', id: 'a' }], [{ call: 'live', input: { task: 'y' }, id: 'l' }]];
  const run = start(agent('lead', calls, [mail, ask(live)]));
  await flushMicrotasks();
  run.cancel({}, { undo: true });
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({
    stop: {
      notUndone: [
        { callId: 'a', tool: 'mail' },
        { callId: 'l/d/m', tool: 'live › deep › mail' },
      ],
    },
  });
  check();
});

test('a run that ended well can be undone once', async () => {
  const { agent, tool, start } = setUp();
  const undone: string[] = [];
  const run = start(
    agent('a', [[{ call: 'book' }], ['Booked.']], [tool('book', { undo: () => void undone.push('book') })]),
  );
  expect(await run.undo()).toMatchObject([{ tool: 'book', state: 'undone' }]);
  expect(await run.undo()).toHaveLength(1);
  expect(undone).toEqual(['book']);
});

test('an undo whose record is gone, or that fails inside, reports it', async () => {
  const { agent, tool } = setUp();
  const child = ask(agent('child', [['x']]));
  const context = { callId: 'c', signal: new AbortController().signal };
  expect(() => child.undo!({ content: 'x', input: {} }, context)).toThrow('the record of this run was removed');
  const failing = ask(
    agent(
      'failing',
      [[{ call: 'book' }], ['x']],
      [
        tool('book', {
          undo: () => {
            throw new Error('no');
          },
        }),
      ],
    ),
  );
  const parent = agent('lead', [[{ call: 'failing', input: { task: 'x' } }], ['ok']], [failing]);
  expect(await parent.run('go').undo()).toMatchObject([{ tool: 'failing', state: 'failed' }]);
});

const bookable = (tool: ReturnType<typeof setUp>['tool'], undone: unknown[]) =>
  tool('book', {
    effects: 'write',
    execute: (input) => ({ content: `booked ${(input as { id: string }).id}` }),
    undo: ({ input }) => void undone.push((input as { id: string }).id),
  });

test('an agent that has used up its time or turns reports it, with its text and its calls', async () => {
  for (const [budgets, kind] of [
    [{ maxDurationMs: 100 }, 'deadline'],
    [{ maxTurns: 1 }, 'budget'],
  ] as const) {
    const { tool, start, check, clock, recorder, agent, ...world } = setUp();
    const child = createAgent({
      name: 'child',
      world: { ...world, clock },
      budgets,
      hooks: recorder.hooks,
      tools: [bookable(tool, [])],
      model: createScriptedModel([['Found three hotels. ', { call: 'book', input: { id: 'A' } }], [{ until: never }]], {
        clock,
      }),
    });
    const run = start(agent('lead', [[{ call: 'child', input: { task: 'x' } }], ['ok']], [ask(child)]));
    await clock.advance(100);
    const outcome = await run.outcome;
    expect(outcome.status).toBe('success');
    expect(outcome.calls).toMatchObject([
      {
        state: 'interrupted',
        reason: { kind },
        content: `Interrupted (${kind}) before it finished. Output so far:\nFound three hotels. \n\nFinished calls: 1 (book).\n\nWhat it did before that:\n- book (finished): booked A`,
        details: { status: 'cancelled', reason: { kind }, effects: [{ tool: 'book', state: 'finished' }] },
      },
    ]);
    check();
  }
});

test('an agent that failed returns its text, its details and its calls, at any depth', async () => {
  const { agent, tool, start, check } = setUp();
  const inner = agent(
    'inner',
    [['I pay. ', { call: 'book', input: { id: 'A' } }], [{ fail: new Error('overloaded') }]],
    [bookable(tool, [])],
  );
  const child = agent(
    'child',
    [[{ call: 'inner', input: { task: 'x' } }], [{ fail: new Error('down') }]],
    [ask(inner)],
  );
  const run = start(agent('lead', [[{ call: 'child', input: { task: 'x' } }], ['ok']], [ask(child)]));
  expect((await run.outcome).calls).toMatchObject([
    {
      state: 'failed',
      isError: true,
      content: 'It failed: down. Output so far:\nWhat it did before that:\n- inner › book (finished): booked A',
      details: { status: 'failed', calls: [{ tool: 'inner', state: 'failed' }] },
    },
  ]);
  check();
});

test('a sub-agent’s usage counts towards its parent’s usage and budget while it runs', async () => {
  const { agent, tool, world, recorder, root, check, ...rest } = { ...setUp(), world: undefined };
  const clock = rest.clock;
  const child = agent('child', [[{ call: 'look' }]], [tool('look')]);
  const parent = createAgent({
    name: 'lead',
    world: rest,
    hooks: recorder.hooks,
    tools: [ask(child)],
    budgets: { maxModelTokens: 5_000 },
    model: createScriptedModel([[{ call: 'child', input: { task: 'x' } }], ['ok']], { clock }),
  });
  const outcome = await recorder.run(parent.run('go', { token: root })).outcome;
  expect(outcome).toMatchObject({
    status: 'cancelled',
    reason: { kind: 'budget', message: expect.stringContaining('maxModelTokens') as string },
    stop: { levels: [{ level: 'abort' }] },
    calls: [{ tool: 'child', state: 'interrupted', reason: { kind: 'budget' } }],
  });
  const spent = outcome.usage.inputTokens + outcome.usage.outputTokens;
  const { usage } = outcome.calls[0]!.details as unknown as { usage: { inputTokens: number } };
  expect(spent).toBeGreaterThan(5_000);
  expect(usage.inputTokens).toBeGreaterThan(4_000);
  expect(spent).toBeLessThan(8_000);
  check();
});

test.each(['failed', 'cancelled alone', 'out of time'])('undo reverts calls of a sub-agent that %s', async (mode) => {
  const { tool, start, check, clock, recorder, agent, ...world } = setUp();
  const undone: string[] = [];
  const book = bookable(tool, undone);
  const child = createAgent({
    name: 'child',
    world: { ...world, clock },
    hooks: recorder.hooks,
    tools: [book],
    budgets: mode === 'out of time' ? { maxDurationMs: 50 } : {},
    model: createScriptedModel(
      [
        [{ call: 'book', input: { id: 'nested' } }],
        [mode === 'failed' ? { fail: new Error('down') } : { until: never }],
      ],
      { clock },
    ),
  });
  const replies: ScriptedReply[] = [
    [{ call: 'book', id: 'b', input: { id: 'outer' } }],
    [{ call: 'child', id: 'c', input: { task: 'x' } }],
    [{ until: never }],
  ];
  const run = start(agent('lead', replies, [book, ask(child)]));
  await flushMicrotasks();
  if (mode === 'cancelled alone') run.cancelCall('c');
  await clock.advance(50);
  run.cancel({}, { mode: 'now', undo: true });
  const outcome = await run.outcome;
  expect(undone).toEqual(['nested', 'outer']);
  expect(outcome).toMatchObject({ status: 'cancelled', stop: { isClean: true } });
  if (outcome.status !== 'cancelled') return;
  const said = outcome.stop.calls.map(({ callId, undo }) => `${callId.replace(/call-\d/, 'n')} ${undo}`);
  expect(new Set(said)).toEqual(new Set(['b undone', 'c undone', 'c/n undone']));
  check();
});

test('undos inside and outside share one bound', async () => {
  const { tool, start, clock, agent, recorder, ...world } = setUp();
  const book = tool('book', { effects: 'write', undo: () => never });
  const child = createAgent({
    name: 'child',
    world: { ...world, clock },
    undoTimeoutMs: 400,
    tools: [book],
    model: createScriptedModel([[{ call: 'book' }], [{ until: never }]], { clock }),
  });
  const parent = createAgent({
    name: 'lead',
    world: { ...world, clock },
    undoTimeoutMs: 400,
    tools: [book, ask(child)],
    hooks: recorder.hooks,
    model: createScriptedModel([[{ call: 'book', id: 'b' }], [{ call: 'child', id: 'c', input: { task: 'x' } }]], {
      clock,
    }),
  });
  const run = start(parent);
  await flushMicrotasks();
  run.cancel({}, { mode: 'kill', undo: true });
  await clock.advance(400);
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'cancelled', stop: { settledAfterMs: 400, isClean: false } });
});

test('exclusive keys hold over the whole tree, and for undos', async () => {
  const { tool, start, agent, clock, check } = setUp();
  let live = 0;
  let most = 0;
  const touch = async (): Promise<string> => {
    most = Math.max(most, ++live);
    await new Promise((resolve) => clock.setTimer(50, () => resolve(undefined)));
    live--;
    return 'x';
  };
  const edit = tool('edit', { exclusive: () => ['file'], execute: touch, undo: async () => void (await touch()) });
  const child = agent('child', [[{ call: 'edit' }], ['x']], [edit]);
  const parent = agent(
    'lead',
    [[{ call: 'edit' }, { call: 'child', input: { task: 'x' } }], ['x']],
    [edit, ask(child)],
  );
  const run = start(parent);
  await clock.advance(200);
  await run.outcome;
  const other = start(parent);
  await flushMicrotasks();
  const undone = run.undo();
  await clock.advance(1_000);
  await other.outcome;
  expect(await undone).toMatchObject([
    { tool: 'child', state: 'undone' },
    { tool: 'edit', state: 'undone' },
  ]);
  expect(most).toBe(1);
  check();
});

test('a key that a call holds can be taken by the calls inside it, one at a time, and is free when the last is', async () => {
  const { tool, start, agent, clock } = setUp();
  const order: string[] = [];
  let end: (() => void) | undefined;
  const edit = (name: string, execute: () => unknown): Tool =>
    tool(name, { exclusive: () => ['file'], execute: execute as () => string });
  const child = agent(
    'child',
    [[{ call: 'one' }, { call: 'two' }]],
    [
      edit('one', () => `${order.push('one')}`),
      edit('two', () => {
        order.push('two');
        return new Promise((resolve) => (end = () => resolve('late')));
      }),
    ],
  );
  const asking = { ...ask(child), exclusive: () => ['file'] };
  const parent = agent(
    'lead',
    [[{ call: 'child', id: 'c', input: { task: 'x' } }], [{ call: 'after' }], ['ok']],
    [asking, edit('after', () => `${order.push('after')}`)],
  );
  const run = start(parent);
  await flushMicrotasks();
  expect(order).toEqual(['one', 'two']);
  run.cancelCall('c', {}, { mode: 'kill' });
  await clock.advance(10);
  // Abandoned, it still holds the key.
  expect(order).toEqual(['one', 'two']);
  end?.();
  await flushMicrotasks();
  await run.outcome;
  expect(order).toEqual(['one', 'two', 'after']);
});

test('a user’s tool cannot claim to bound itself', async () => {
  const { tool, agent, root, clock, start } = setUp();
  expect(() => tool('deaf', { nested: true } as object)).toThrow('nested: unknown setting');
  const deaf = { ...tool('deaf', { execute: () => never }), nested: true };
  const run = start(agent('lead', [[{ call: 'deaf' }], ['ok']], [deaf]));
  await flushMicrotasks();
  root.cancel('enough', { mode: 'kill' });
  await clock.advance(0);
  expect((await run.outcome).calls).toMatchObject([{ state: 'unknown' }]);
});

test('a copy of an agent tool that ignores every cancel is abandoned at kill', async () => {
  const { agent, start, check } = setUp();
  const deaf = { ...ask(agent('child', [['x']])), execute: () => never };
  const run = start(agent('lead', [[{ call: 'child', input: { task: 'x' } }]], [deaf]));
  await flushMicrotasks();
  run.cancel({}, { mode: 'kill' });
  expect(await run.outcome).toMatchObject({ calls: [{ state: 'unknown' }] });
  check();
});

test('an agent whose runs are another’s work is undone through them', async () => {
  const { agent, tool, start } = setUp();
  const undone: string[] = [];
  const child = agent('child', [[{ call: 'book', input: { id: 'A' } }], ['x']], [bookable(tool, undone)]);
  const wrapped: Agent = {
    ...child,
    run(input, options) {
      const run = child.run(input, options);
      return { ...run, id: run.id, outcome: run.outcome, undo: () => run.undo() } as unknown as typeof run;
    },
  };
  const run = start(agent('lead', [[{ call: 'child', input: { task: 'x' } }], ['ok']], [ask(wrapped)]));
  expect(await run.undo()).toMatchObject([{ tool: 'child', state: 'undone' }]);
  expect(undone).toEqual(['A']);
});

test.each<[string, readonly string[], string]>([
  ['undone', ['undone', 'undone'], 'undone'],
  ['not all undone', ['undone', 'unknown'], 'failed'],
])('the undo of a third-party agent is one step, and reports when it is %s', async (_, states, state) => {
  const { agent } = setUp();
  const made = agent('child', [['ok']]);
  const undone: string[] = [];
  const child: Agent = {
    ...made,
    run(input, options) {
      const { outcome, ...rest } = made.run(input, options);
      const undo = () => {
        undone.push('child');
        return Promise.resolve(states.map((one) => ({ callId: 'x', tool: 'x', state: one as 'undone' })));
      };
      return { ...rest, outcome, undo } as unknown as ReturnType<Agent['run']>;
    },
  };
  const run = agent('lead', [[{ call: 'child', input: { task: 'x' } }], ['ok']], [ask(child)]).run('go');
  expect(await run.undo()).toMatchObject([{ tool: 'child', state }]);
  expect(undone).toEqual(['child']);
});

test('an interrupted agent returns its text, within a limit, and the number of finished calls', async () => {
  for (const long of ['', 'x'.repeat(10_000)]) {
    const { agent, tool, start } = setUp();
    const child = agent(
      'auditor',
      [
        [`${long}Looking. `, { call: 'look' }, { call: 'look' }],
        ['Index missing. ', { call: 'read' }],
        ['Let me see. ', { call: 'slow' }],
      ],
      [tool('look'), tool('read'), tool('slow', { execute: () => never })],
    );
    const run = start(agent('lead', [[{ call: 'auditor', input: { task: 'audit' } }], ['ok']], [ask(child)]));
    await flushMicrotasks();
    run.cancel({}, { mode: 'kill' });
    const content = (await run.outcome).calls[0]?.content as string;
    const end = 'Looking. \n\nIndex missing. \n\nLet me see. \n\nFinished calls: 3 (look, read).';
    expect(content.endsWith(end), content.slice(-200)).toBe(true);
    expect(content.length).toBeLessThan(8_200);
    expect(content.includes('Output so far:\n…x')).toBe(long !== '');
  }
});
