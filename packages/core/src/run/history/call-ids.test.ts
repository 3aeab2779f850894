import { expect, test } from 'vitest';
import { z } from 'zod';
import { checkHistory } from '../../testing/checker.ts';
import { createRecorder } from '../../testing/recorder.ts';
import { createScriptedModel } from '../../testing/scripted-model.ts';
import { createVirtualWorld, flushMicrotasks } from '../../testing/virtual-world.ts';
import { defineTool, type Tool } from '../../tool/tool.ts';
import { createAgent } from '../agent.ts';
import type { ModelMessage, ModelPart } from '../reply/model.ts';
import { callTools, type Planner, reply } from '../reply/planner.ts';
import type { RunEvent } from '../report/events.ts';
import { CallIds, ReplyCallIds, TurnCallIds } from './call-ids.ts';

const result = (callId: string) => ({ role: 'tool' as const, callId, tool: 't', content: '', isError: false });
const start = (callId: string): ModelPart => ({ type: 'call-start', callId, tool: 't' });
const end = (callId: string): ModelPart => ({ type: 'call-end', callId, tool: 't', input: {} });
const findCallId = (part: ModelPart): string | undefined => ('callId' in part ? part.callId : undefined);

const idsAfter = (...taken: ModelMessage[]): ReplyCallIds => {
  const ids = new CallIds();
  ids.reserve(taken);
  return new ReplyCallIds(ids);
};

test('an id that is free stays, one that is taken gets a number, and all parts of a call agree', () => {
  const ids = idsAfter(result('a'), result('b'), result('b-2'));
  const parts: ModelPart[] = [
    start('c'),
    end('c'),
    start('a'),
    { type: 'call-arguments', callId: 'a', text: '' },
    end('a'),
    end('b'),
  ];
  expect(parts.map((part) => findCallId(ids.own(part)))).toEqual(['c', 'c', 'a-2', 'a-2', 'a-2', 'b-3']);
  const words: ModelPart = { type: 'text', text: 'as it is' };
  expect(ids.own(words)).toBe(words);
});

test('two calls of one reply under one id are two calls', () => {
  const ids = idsAfter();
  expect([start('x'), end('x'), start('x'), end('x')].map((part) => findCallId(ids.own(part)))).toEqual([
    'x',
    'x',
    'x-2',
    'x-2',
  ]);
  expect([start('y'), start('y'), end('y'), end('y')].map((part) => findCallId(ids.own(part)))).toEqual([
    'y',
    'y-2',
    'y-2',
    'y-3',
  ]);
});

test('a provider that counts its calls again in every reply gets each result for its own call, and each is undone for itself', async () => {
  const world = createVirtualWorld();
  const recorder = createRecorder();
  const undone: string[] = [];
  const book = defineTool<{ day: string }>({
    name: 'book',
    description: 'Books.',
    inputSchema: z.object({ day: z.string() }),
    effects: 'write',
    execute: ({ day }) => `booked ${day}`,
    undo: ({ input }) => {
      undone.push(input.day);
    },
  });
  const stuck = new Promise<never>(() => {});
  const call = (day: string) => ({ call: 'book', id: 'call_0', input: { day } });
  const model = createScriptedModel([[call('Monday')], [call('Tuesday')], ['Booked. ', { until: stuck }]], {
    clock: world.clock,
  });
  const agent = createAgent({ name: 'a', model, world, hooks: recorder.hooks, tools: [recorder.tool(book as Tool)] });
  const run = recorder.run(agent.run('go'));
  for await (const event of run.events) if (event.type === 'text') break;
  run.cancel({}, { mode: 'now', undo: true });
  const { calls } = await run.outcome;
  expect(calls.map(({ callId, content }) => [callId, content])).toEqual([
    ['call_0', 'booked Monday'],
    ['call_0-2', 'booked Tuesday'],
  ]);
  expect(undone).toEqual(['Tuesday', 'Monday']);
  const told = model.requests[2]!.messages.flatMap((message) => (message.role === 'tool' ? [message.content] : []));
  expect(told).toEqual(['booked Monday', 'booked Tuesday']);
  expect(checkHistory(recorder.history, { undoTimeoutMs: 30_000 })).toEqual([]);
});

test('every id is safe for every provider and unlike any other, whatever it was', () => {
  const ids = new CallIds();
  const nasty = [
    '',
    'functions.w:0',
    'a b',
    'a_b',
    'x'.repeat(100),
    'x'.repeat(40),
    `chatcmpl-tool-${'0123456789abcdef'.repeat(2)}`,
    'ä',
    '\ud83d',
    'c\n',
    undefined,
    7,
  ];
  const own = [...nasty, ...nasty, ...nasty].map((given) => ids.take(given));
  for (const id of own) expect(id).toMatch(/^[A-Za-z0-9_-]{1,40}$/);
  expect(new Set(own).size).toBe(own.length);
  expect(own.slice(0, 4)).toEqual(['call', 'functions_w_0', 'a_b', 'a_b-2']);
});

test('thousands of calls under one id cost no more than as many under their own', () => {
  const ids = new CallIds();
  // Looking through all of them every time, this would not end in the time of a test.
  for (let i = 0; i < 100_000; i++) ids.take('call_0');
  expect(ids.take('call_0')).toBe('call_0-100001');
});

function setUpRun(planner: Planner, execute: Tool['execute'] = () => 'done') {
  const recorder = createRecorder();
  const work = recorder.tool(
    defineTool({ name: 'work', description: 'Works.', inputSchema: z.unknown(), execute }) as Tool,
  );
  const agent = createAgent({ name: 'a', planner, tools: [work], hooks: recorder.hooks });
  const events: RunEvent[] = [];
  const run = recorder.run(agent.run('go', { hooks: { any: (event) => events.push(event) } }));
  return { agent, run, events, check: () => expect(checkHistory(recorder.history)).toEqual([]) };
}

test("a call keeps its provider's id next to its own, and all events use its own", async () => {
  const planner: Planner = {
    next(_, { turn, emit }) {
      if (turn === 3) return reply('bye');
      emit({ type: 'call-planned', callId: 'functions.work:0', tool: 'work' });
      return callTools([{ id: 'functions.work:0', tool: 'work', input: { turn } }]);
    },
  };
  const { run, events, check } = setUpRun(planner);
  const outcome = await run.outcome;
  expect(outcome.messages.flatMap((one) => (one.role === 'assistant' ? one.content : []))).toMatchObject([
    { callId: 'functions_work_0', providerId: 'functions.work:0', input: { turn: 1 } },
    { callId: 'functions_work_0-2', providerId: 'functions.work:0', input: { turn: 2 } },
    { type: 'text' },
  ]);
  for (const type of ['call-planned', 'call-start']) {
    expect(events.flatMap((event) => (event.type === type && 'callId' in event ? [event.callId] : []))).toEqual([
      'functions_work_0',
      'functions_work_0-2',
    ]);
  }
  check();
});

test('calls that need each other still do under their own ids', async () => {
  const first = { id: 'a b', tool: 'work', input: {} };
  const planner: Planner = {
    next: (_, { turn }) =>
      turn === 1 ? callTools([first, { id: 'a.b', tool: 'work', input: {}, dependsOn: ['a b'] }]) : reply('bye'),
  };
  const { run, events, check } = setUpRun(planner);
  expect((await run.outcome).calls).toMatchObject([{ callId: 'a_b' }, { callId: 'a_b-2', state: 'finished' }]);
  expect(events.filter(({ type }) => type === 'wave-start')).toHaveLength(2);
  check();
});

test('no call of a run shares an id with one of its history', async () => {
  const planner: Planner = {
    next: (_, { turn }) => (turn === 1 ? callTools([{ id: 'c', tool: 'work', input: {} }]) : reply('bye')),
  };
  const { agent, run } = setUpRun(planner);
  const { messages } = await run.outcome;
  const again = await agent.run('again', { history: messages }).outcome;
  expect(again.calls).toMatchObject([{ callId: 'c-2' }]);
});

test('a call that a step makes and its message does not hold is in the record', async () => {
  const planner: Planner = {
    next: (_, { turn }) =>
      turn === 1 ? { ...reply('hm'), calls: [{ id: 'c', tool: 'work', input: { n: 1 } }] } : reply('bye'),
  };
  const { run, check } = setUpRun(planner);
  const outcome = await run.outcome;
  expect(outcome.calls).toMatchObject([{ callId: 'c', state: 'finished' }]);
  expect(outcome.messages[1]).toMatchObject({
    content: [{ text: 'hm' }, { type: 'call', callId: 'c', input: { n: 1 } }],
  });
  check();
});

test('a call that a message holds and its step does not make is not started', async () => {
  const step = callTools([{ id: 'c', tool: 'work', input: {} }]);
  const { run, check } = setUpRun({ next: () => ({ ...step, calls: [] }) });
  const [call] = (await run.outcome).calls;
  expect(call).toMatchObject({ state: 'not-started', content: 'Not started: its planner did not run it' });
  check();
});

test('text that a planner emits after its turn is not shown: it would be in no message', async () => {
  let late: (() => void) | undefined;
  const planner: Planner = {
    next(_, { turn, emit }) {
      late ??= () => emit({ type: 'text', text: 'GHOST' });
      return turn === 1 ? callTools([{ id: 'c', tool: 'work', input: {} }]) : reply('bye');
    },
  };
  const { run, events, check } = setUpRun(planner, () => {
    late?.();
    return 'done';
  });
  await run.outcome;
  expect(events.filter(({ type }) => type === 'text')).toEqual([]);
  check();
});

test.each([undefined, null, 7, {}, { message: reply('x').message }, { message: {}, calls: [] }])(
  'a planner that returns %j fails the run, and learns what to return',
  async (step) => {
    const { run } = setUpRun({ next: () => step as never });
    expect(await run.outcome).toMatchObject({
      status: 'failed',
      error: { message: expect.stringMatching('planner: `next` must return') as string },
    });
  },
);

test.each([
  ['its approval is pending', { approve: () => new Promise<boolean>(() => {}) }],
  ['it waits for a slot', { concurrency: 1 }],
  ['it waits for a key', { tools: 'exclusive' }],
] as [string, { approve?: () => Promise<boolean>; concurrency?: number; tools?: string }][])(
  'a call that is cancelled while %s never begins; the others go on',
  async (_, options) => {
    const world = createVirtualWorld();
    const recorder = createRecorder();
    let finish: (() => void) | undefined;
    const held = new Promise<void>((resolve) => (finish = resolve));
    const first = defineTool({
      name: 'first',
      description: 'Holds.',
      inputSchema: z.unknown(),
      effects: 'read',
      exclusive: () => ['k'],
      execute: () => held.then(() => 'held'),
    });
    const second = defineTool({
      name: 'second',
      description: 'Waits.',
      inputSchema: z.unknown(),
      whenCancelled: 'finish',
      timeoutMs: 1_000,
      exclusive: () => (options.tools ? ['k'] : []),
      execute: () => 'ran',
    });
    const model = createScriptedModel([
      [
        { call: 'first', id: 'f' },
        { call: 'second', id: 's' },
      ],
      ['ok'],
    ]);
    const agent = createAgent({
      name: 'a',
      model,
      world,
      hooks: recorder.hooks,
      ...options,
      tools: [recorder.tool(first as Tool), recorder.tool(second as Tool)],
    });
    const run = recorder.run(agent.run('go'));
    await flushMicrotasks();
    expect(run.cancelCall('s', { kind: 'user', by: 'anna' })).toMatchObject({ result: 'accepted' });
    expect(run.cancelCall('s')).toMatchObject({ result: 'unchanged', reason: { by: 'anna' } });
    finish?.();
    // It waits briefly for a response that does not come.
    await world.clock.advance(1_000);
    const outcome = await run.outcome;
    expect(outcome.status).toBe('success');
    expect(outcome.calls).toMatchObject([{ state: 'finished' }, { state: 'not-started', reason: { by: 'anna' } }]);
    expect(run.cancelCall('s')).toEqual({ result: 'too-late' });
    expect(checkHistory(recorder.history)).toEqual([]);
  },
);

test('an id that every provider accepts stays, and a number never makes it too long', () => {
  const ids = new CallIds();
  const longest = 'x'.repeat(40);
  expect([longest, longest, `${longest}y`, 'a b.c', '', 7].map((given) => ids.take(given))).toEqual([
    longest,
    `${'x'.repeat(38)}-2`,
    `${'x'.repeat(38)}-3`,
    'a_b_c',
    'call',
    'call-2',
  ]);
});

test('the ids in messages are taken: of results, and of calls in replies', () => {
  const ids = new CallIds();
  ids.reserve([
    { role: 'user', content: 'u', callId: 'user' } as never,
    {
      role: 'assistant',
      stopReason: 'tool-use',
      content: [
        { type: 'text', text: 't', callId: 'words' } as never,
        { type: 'call', callId: 'asked', tool: 't', input: {} },
      ],
    },
    result('answered'),
  ]);
  expect(['user', 'words', 'asked', 'answered'].map((id) => ids.take(id))).toEqual([
    'user',
    'words',
    'asked-2',
    'answered-2',
  ]);
});

test('renaming the ids of a step changes nothing that already has one', () => {
  const taken = new CallIds();
  taken.reserve([result('a')]);
  const words = { type: 'text', text: 'so' } as const;
  const free = { type: 'call', callId: 'b', tool: 't', input: 1 } as const;
  const known = { type: 'call', callId: 'a', providerId: 'p', tool: 't', input: 2 } as const;
  const { message, calls } = new TurnCallIds(taken).ofStep({
    message: { role: 'assistant', content: [words, free, known], stopReason: 'tool-use' },
    calls: [
      { id: 'a', tool: 't', input: 2 },
      { id: 'b', tool: 't', input: 1, dependsOn: ['a', 'elsewhere'] },
      { id: 'c', tool: 't', input: 3 },
    ],
  });
  expect(message).toStrictEqual({
    role: 'assistant',
    stopReason: 'tool-use',
    content: [
      words,
      { ...free, dependsOn: ['a-2', 'elsewhere'] },
      { ...known, callId: 'a-2' },
      { type: 'call', callId: 'c', tool: 't', input: 3 },
    ],
  });
  expect(message.content[0]).toBe(words);
  expect(calls).toStrictEqual([
    { id: 'a-2', tool: 't', input: 2 },
    { id: 'b', tool: 't', input: 1, dependsOn: ['a-2', 'elsewhere'] },
    { id: 'c', tool: 't', input: 3 },
  ]);
});

test('a part under another id keeps the one it came with', () => {
  const ids = idsAfter(result('a'));
  expect(ids.own(start('a'))).toStrictEqual({ ...start('a'), callId: 'a-2', providerId: 'a' });
  const free = start('b');
  expect(ids.own(free)).toBe(free);
});
