import {
  CancellationToken,
  createAgent,
  createAgentTool,
  defineTool,
  type Outcome,
  type StopMode,
  type Tool,
} from '@whoa/core';
import { prepareMessages } from '@whoa/core/model';
import {
  checkHistory,
  createRecorder,
  createScriptedModel,
  createVirtualWorld,
  flushMicrotasks,
} from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { z } from 'zod';

const hops = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await Promise.resolve();
};

/**
 * Four turns, six calls, a sub-agent, a call that must finish, and calls that can be undone. Everything runs on virtual
 * time.
 */
function setUp() {
  const world = createVirtualWorld();
  const recorder = createRecorder();
  const root = new CancellationToken({ name: 'root', clock: world.clock });
  const effects = { booked: 0, undone: 0 };
  const tool = (name: string, rest: Partial<Tool> = {}): Tool =>
    recorder.tool({
      ...defineTool({
        name,
        description: name,
        inputSchema: z.unknown(),
        effects: 'read',
        execute: () => hops(3).then(() => `${name} done`),
      }),
      ...rest,
    } as Tool);
  const book = tool('book', {
    whenCancelled: 'finish',
    timeoutMs: 1_000,
    effects: 'write',
    execute: async () => {
      await hops(5);
      effects.booked++;
      return 'booked';
    },
    undo: async () => {
      await hops(2);
      effects.undone++;
    },
  });
  const model = (...replies: Parameters<typeof createScriptedModel>[0][number][]) =>
    createScriptedModel(replies, { clock: world.clock });
  const shared = { world, hooks: recorder.hooks };
  const child = createAgent({
    ...shared,
    name: 'helper',
    model: model(['Let me see. ', { call: 'look', id: 'child-look' }], ['Found it.']),
    tools: [tool('look')],
  });
  const models = [
    model(
      ['I will look and ask. ', { call: 'look', id: 'l1' }, { call: 'helper', input: { task: 'find it' }, id: 'h' }],
      ['Now I book. ', { call: 'book', id: 'b1' }, { call: 'look', id: 'l2' }],
      ['And once more. ', { call: 'book', id: 'b2' }],
      ['All is done.'],
    ),
  ];
  const agent = createAgent({
    ...shared,
    name: 'lead',
    model: models[0]!,
    tools: [tool('look'), book, recorder.tool(createAgentTool(child, { description: 'Helps.' }) as Tool)],
    approve: async () => {
      await hops(2);
      return true;
    },
  });
  const run = recorder.run(agent.run('go', { token: root }));
  return { world, recorder, root, run, effects };
}

async function countAwaits(): Promise<number> {
  const { run, world } = setUp();
  let outcome: Outcome | undefined;
  const ended = run.outcome.then((one) => (outcome = one));
  let count = 0;
  while (outcome === undefined && count < 10_000) {
    count++;
    await Promise.resolve();
  }
  await ended;
  expect(outcome).toMatchObject({ status: 'success', turns: 4, calls: { length: 5 } });
  expect(world.clock.pending).toBe(0);
  return count;
}

const ways: readonly { mode: StopMode; undo: boolean }[] = [
  { mode: 'graceful', undo: false },
  { mode: 'graceful', undo: true },
  { mode: 'now', undo: false },
  { mode: 'kill', undo: true },
];

test('a cancel at every await point of a run keeps every promise', { timeout: 240_000 }, async () => {
  const points = await countAwaits();
  let cancelled = 0;
  for (const { mode, undo } of ways) {
    for (let point = 0; point <= points; point++) {
      const { run, recorder, root, world, effects } = setUp();
      await hops(point);
      run.cancel({ kind: 'user', message: `at ${point}` }, { mode, undo });
      await flushMicrotasks();
      await world.clock.advance(15_000);
      const outcome = await run.outcome;
      if (outcome.status === 'cancelled') cancelled++;
      recorder.recordToken(root);
      const where = `${JSON.stringify(mode)} at ${point}`;
      expect(checkHistory(recorder.history), where).toEqual([]);
      expect(world.clock.pending, where).toBe(0);
      expectTruth(outcome, effects, where);
    }
  }
  console.log(
    `${points} await points × ${ways.length} ways to cancel: ${cancelled} cancelled, ${ways.length * (points + 1) - cancelled} too late`,
  );
});

/** The transcript matches the real effects, and every provider would accept it. */
function expectTruth(outcome: Outcome, effects: { booked: number; undone: number }, where: string): void {
  const booked = outcome.calls.filter(({ tool, state }) => tool === 'book' && state === 'finished').length;
  expect(booked, where).toBe(effects.booked);
  if (outcome.status === 'cancelled') {
    const undone = outcome.stop.calls.filter(({ tool, undo }) => tool === 'book' && undo === 'undone').length;
    expect(undone, where).toBe(effects.undone);
  }
  const calls = outcome.messages.flatMap((message) =>
    message.role === 'assistant' ? message.content.flatMap((part) => (part.type === 'call' ? [part.callId] : [])) : [],
  );
  const results = outcome.messages.flatMap((message) => (message.role === 'tool' ? [message.callId] : []));
  expect(results.toSorted(), where).toEqual(calls.toSorted());
  expect(JSON.stringify(prepareMessages(outcome.messages)), where).not.toContain('"details"');
}
