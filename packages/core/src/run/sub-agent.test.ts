import { expect, test } from 'vitest';
import { z } from 'zod';
import { CancellationToken } from '../stop/token.ts';
import { checkHistory } from '../testing/checker.ts';
import { createRecorder } from '../testing/recorder.ts';
import { type ScriptedReply, scriptedModel } from '../testing/scripted-model.ts';
import { createVirtualWorld, letEverythingReact } from '../testing/virtual-world.ts';
import { defineTool, type Tool, type ToolDefinition } from '../tool/tool.ts';
import { type Agent, createAgent } from './agent.ts';
import { agentTool } from './sub-agent.ts';

const never = new Promise<never>(() => {});

function setUp() {
  const world = createVirtualWorld();
  const recorder = createRecorder();
  const root = new CancellationToken({ clock: world.clock });
  const agent = (name: string, replies: readonly ScriptedReply[], tools: readonly Tool[] = []): Agent =>
    createAgent({ name, model: scriptedModel(replies, { clock: world.clock }), tools, world, hooks: recorder.hooks });
  const tool = (name: string, rest: Partial<ToolDefinition<unknown>> = {}): Tool =>
    defineTool({
      name,
      description: name,
      input: z.unknown(),
      effects: 'read',
      execute: () => `${name} done`,
      ...rest,
    } as ToolDefinition<unknown>);
  const start = (parent: Agent) => recorder.run(parent.run('go', { token: root }));
  const check = () => {
    recorder.look(root);
    expect(checkHistory(recorder.history)).toEqual([]);
    expect(world.clock.pending).toBe(0);
  };
  return { ...world, recorder, root, agent, tool, start, check };
}

const ask = (agent: Agent): Tool => agentTool(agent, { description: `Asks ${agent.name}.` }) as Tool;

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
  for await (const event of run.events) if (event.type === 'call-nested') nested.push(event.event.type);
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
  await letEverythingReact();
  run.cancel({}, { how: 'now' });
  await clock.advance(2_000);
  expect(await run.outcome).toMatchObject({
    stop: {
      clean: false,
      calls: [
        { callId: 'c/d', tool: 'child › deaf', state: 'unknown' },
        { callId: 'c', state: 'interrupted' },
      ],
    },
  });
});

test('a task that is no text is refused', async () => {
  const { agent, start } = setUp();
  const parent = agent('lead', [[{ call: 'child', input: { what: 1 } }], ['ok']], [ask(agent('child', [['x']]))]);
  expect((await start(parent).outcome).calls[0]?.content).toBe('Not started: task: expected a text');
});

test('an agent that fails, fails its call', async () => {
  const { agent, start, check } = setUp();
  const child = agent('child', [[{ fail: new Error('no model') }]]);
  const parent = agent('lead', [[{ call: 'child', input: { task: 'x' } }], ['ok']], [ask(child)]);
  expect((await start(parent).outcome).calls).toMatchObject([{ state: 'failed', content: 'no model' }]);
  check();
});

test('cancelling a parent stops agents five deep, at every level, and keeps what each had said', async () => {
  for (const how of ['graceful', 'now', 'kill'] as const) {
    const { agent, start, check } = setUp();
    let deepest = agent('a5', [['I think ', { until: never }]]);
    for (const name of ['a4', 'a3', 'a2', 'a1'])
      deepest = agent(name, [[`${name} asks. `, { call: deepest.name, input: { task: 'x' } }]], [ask(deepest)]);
    const run = start(deepest);
    await letEverythingReact();
    run.cancel({ kind: 'user', by: 'anna' }, { how });
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
  await letEverythingReact();
  expect(run.cancelCall('s')).toMatchObject({ answer: 'accepted' });
  await letEverythingReact();
  finish?.();
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'success', text: 'Both back.' });
  expect(outcome.calls.map(({ state }) => state)).toEqual(['interrupted', 'finished']);
  expect(recorder.history.filter((entry) => entry.seen === 'event' && entry.event.type === 'run-end')).toHaveLength(3);
  check();
});

test('a kill waits for what a child must finish, and no longer', async () => {
  const { agent, tool, start, clock, check } = setUp();
  const pay = tool('pay', {
    whenCancelled: 'finish',
    timeoutMs: 10_000,
    execute: () => new Promise((resolve) => clock.setTimer(4_000, () => resolve('paid'))),
  } as Partial<ToolDefinition<unknown>>);
  const child = agent('child', [[{ call: 'pay' }]], [pay]);
  const run = start(agent('lead', [[{ call: 'child', input: { task: 'x' } }]], [ask(child)]));
  await letEverythingReact();
  run.cancel({}, { how: 'kill' });
  await clock.advance(4_000);
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'cancelled', stop: { settledAfterMs: 4_000 } });
  expect(outcome.calls).toMatchObject([
    { state: 'interrupted', details: { calls: [{ tool: 'pay', state: 'finished' }] } },
  ]);
  check();
});

test('undo reaches what a sub-agent did, whether it had ended or was stopped', async () => {
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
  await letEverythingReact();
  run.cancel({}, { undo: true });
  await run.outcome;
  expect(undone).toEqual(['flight', 'car', 'hotel']);
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

test('an undo whose record is gone, or that fails inside, says so', async () => {
  const { agent, tool } = setUp();
  const child = ask(agent('child', [['x']]));
  const context = { callId: 'c', signal: new AbortController().signal };
  await expect(child.undo!({ content: 'x', input: {} }, context)).rejects.toThrow('the record of this run is gone');
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
