import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { createScriptedModel } from '../testing/scripted-model.ts';
import { createVirtualWorld } from '../testing/virtual-world.ts';
import { defineTool, type Tool } from '../tool/tool.ts';
import { createAgent } from './agent.ts';
import type { Message } from './history/message.ts';
import { callTools, type Planner, reply, type Step } from './reply/planner.ts';

const never = new Promise<never>(() => {});

function tool(name: string, execute: (input: unknown) => unknown, rest: Partial<Tool> = {}): Tool {
  const defined = defineTool({
    name,
    description: name,
    inputSchema: z.unknown(),
    execute: execute as Tool['execute'],
  });
  return { ...defined, ...rest } as Tool;
}

test('an outcome is frozen: nothing that was handed in can change it', async () => {
  const input = { n: 1 };
  const message = { role: 'user' as const, content: [{ type: 'text' as const, text: 'earlier' }] };
  const said = { role: 'user' as const, content: [{ type: 'text' as const, text: 'hello' }] };
  const step = callTools([{ id: 'c', tool: 'note', input }]);
  const planner: Planner = { next: (_, { turn }) => (turn === 1 ? step : reply('bye')) };
  const note = tool('note', (given) => `noted ${((given as typeof input).n = 2)}`);
  const outcome = await createAgent({ name: 'a', planner, tools: [note] }).run(said, { history: [message] }).outcome;
  const before = JSON.stringify(outcome);
  message.content[0]!.text = said.content[0]!.text = 'CHANGED';
  input.n = 3;
  (step.message.content as unknown[]).pop();
  expect(JSON.stringify(outcome)).toBe(before);
  expect(before).toContain('"n":1');
  expect(() => (outcome.messages as Message[]).push(message)).toThrow(TypeError);
  expect(() => (outcome.calls as unknown[]).pop()).toThrow(TypeError);
  for (const one of outcome.messages) {
    expect(Object.isFrozen(one)).toBe(true);
    expect(Object.isFrozen(one.content)).toBe(true);
  }
});

test('a history that is in the record already is not copied again', async () => {
  const agent = createAgent({ name: 'a', planner: { next: () => reply('x') } });
  const first = await agent.run('one').outcome;
  const second = await agent.run('two', { history: first.messages }).outcome;
  expect(second.messages[0]).toBe(first.messages[0]);
  expect(second.messages[1]).toBe(first.messages[1]);
});

test.each([
  ['no list', 7, 'history: expected a list of messages, got 7'],
  ['null in it', [null], 'history[0]: expected a message, got null'],
  ['a stranger in it', [{ role: 'system' }], `history[0].role: expected 'user', 'assistant' or 'tool', got "system"`],
  [
    'a reply of no parts',
    [{ role: 'assistant', content: 'x' }],
    'history[0].content: expected the parts of a reply, got "x"',
  ],
  [
    'a result of no call',
    [{ role: 'tool', content: 'x' }],
    'history[0]: the result of a call needs a callId and a tool',
  ],
  ['a revoked proxy in it', [revoked()], 'history[0]: it could not be read'],
  [
    'a part that is none',
    [{ role: 'assistant', content: [{ type: 'text', text: 7 }] }],
    'history[0].content: expected the parts of a reply, got a list',
  ],
  [
    'a signature that is no text',
    [{ role: 'assistant', content: [{ type: 'thinking', text: 'x', signature: 7 }] }],
    'history[0].content: expected the parts of a reply, got a list',
  ],
  ['a false length', falseLength(), 'history: expected a list of messages, got a list'],
])('a history with %s fails the run and shows where', async (_, history, message) => {
  const agent = createAgent({ name: 'a', planner: { next: () => reply('x') } });
  const outcome = await agent.run('one', { history: history as unknown as Message[] }).outcome;
  expect(outcome).toMatchObject({ status: 'failed', error: { message } });
});

test.each([0, -5, 1e12, Number.NaN])(
  'an outcome resolves and the undo runs even when undoTimeoutMs is %s',
  async (undoTimeoutMs) => {
    const undone: unknown[] = [];
    const { signal } = new AbortController();
    const book = tool('book', () => 'booked', { undo: ({ input }) => void undone.push(input) });
    const model = createScriptedModel([[{ call: 'book' }], [{ until: never }]]);
    let run: ReturnType<ReturnType<typeof createAgent>['run']>;
    try {
      run = createAgent({ name: 'a', undoTimeoutMs, tools: [book], model }).run('x', { signal });
    } catch (error) {
      // Refused where it is made.
      expect(error).toMatchObject({ message: expect.stringContaining('undoTimeoutMs') as string });
      return;
    }
    for await (const event of run.events) if (event.type === 'turn-start' && event.turn === 2) break;
    run.cancel({}, { mode: 'kill', undo: true });
    expect((await run.outcome).status).toBe('cancelled');
    expect(undone).toHaveLength(1);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  },
);

test("each undo gets its own call's input, though a planner repeats its ids", async () => {
  const undone: unknown[] = [];
  const planner: Planner = {
    next: (_, { turn, token }) =>
      turn <= 3
        ? callTools([{ id: 'c', tool: 'book', input: { n: turn } }])
        : new Promise((resolve) => token.onCancel(() => resolve(reply('')))),
  };
  const book = tool('book', () => 'booked', { undo: ({ input }) => void undone.push(input) });
  const run = createAgent({ name: 'a', planner, tools: [book] }).run('x');
  for await (const event of run.events) if (event.type === 'turn-start' && event.turn === 4) break;
  run.cancel({}, { undo: true });
  await run.outcome;
  expect(undone).toEqual([{ n: 3 }, { n: 2 }, { n: 1 }]);
});

test('an undo gets its details whole, though the record keeps only so much', async () => {
  let given: unknown;
  const details = { eventId: 'E1', log: 'z'.repeat(300_000) };
  const book = tool('book', () => ({ content: 'x', details }), { undo: (result) => void (given = result.details) });
  const run = createAgent({
    name: 'a',
    tools: [book],
    model: createScriptedModel([[{ call: 'book' }], [{ until: never }]]),
  }).run('x');
  for await (const event of run.events) if (event.type === 'turn-start' && event.turn === 2) break;
  run.cancel({}, { undo: true });
  const outcome = await run.outcome;
  expect(given).toEqual(details);
  expect(outcome.calls[0]?.details).toEqual({
    cut: 'the details were too large',
    bytes: JSON.stringify(details).length,
    maxBytes: 262_144,
  });
});

test('an empty last reply leaves no words of an earlier one', async () => {
  const run = createAgent({
    name: 'a',
    tools: [tool('look', () => 'x')],
    model: createScriptedModel([['Let me check. ', { call: 'look' }], []]),
  }).run('x');
  expect(await run.outcome).toMatchObject({ status: 'success', text: '' });
  expect(run.text).toBe('');
});

test('a run whose clock fails ends all the same', async () => {
  const world = createVirtualWorld();
  let fails = false;
  const clock = {
    now: () => {
      if (fails) throw new Error('no time');
      return world.clock.now();
    },
    setTimer: world.clock.setTimer.bind(world.clock),
  };
  const planner: Planner = {
    next() {
      fails = true;
      return callTools([{ id: 'c', tool: 'look', input: {} }]);
    },
  };
  const run = createAgent({ name: 'a', planner, world: { ...world, clock }, tools: [tool('look', () => 'x')] }).run(
    'x',
  );
  expect(await run.outcome).toMatchObject({ status: 'failed', error: { message: 'no time' } });
});

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

test('an input is read once: the validated value is the recorded one', async () => {
  const agent = createAgent({ name: 'a', planner: { next: () => reply('x') } });
  let reads = 0;
  const changing = {
    role: 'user' as const,
    get content() {
      return reads++ === 0 ? 'said' : (7 as unknown as string);
    },
  };
  expect((await agent.run(changing).outcome).messages[0]).toEqual({ role: 'user', content: 'said' });
  const queued = [{ type: 'text' as const, text: 'before' }];
  const run = agent.run(queued);
  queued[0]!.text = 'after';
  expect((await run.outcome).messages[0]).toMatchObject({ content: [{ text: 'before' }] });
  for (const input of [revoked(), falseLength(), { role: 'user', content: revoked() }, { role: 'assistant' }]) {
    expect(() => agent.run(input as never)).toThrow(expect.objectContaining({ code: 'INVALID_SETTING' }));
    expect(() => run.steer(input as never)).toThrow(expect.objectContaining({ code: 'INVALID_SETTING' }));
  }
});

test.each<[string, unknown]>([
  ['is none', 7],
  ['has no list of parts', { message: { role: 'assistant', content: falseLength(), stopReason: 'stop' }, calls: [] }],
  ['has a part that is none', stepWith({ content: [new Error('x')] })],
  ['has no stopReason', stepWith({ stopReason: {} })],
  ['counts without numbers', stepWith({ usage: { inputTokens: Number.NaN, outputTokens: 1, isComplete: true } })],
  ['has a model that is no text', stepWith({ model: {} })],
  ['has no list of calls', { ...stepWith({}), calls: falseLength() }],
  ['has a call without an id', { ...stepWith({}), calls: [{ id: 7, tool: 'look', input: {} }] }],
  ['has a call that needs no list', { ...stepWith({}), calls: [{ id: 'c', tool: 'look', input: {}, dependsOn: 'b' }] }],
])('a step that %s fails the run, whose record stays whole', async (_, step) => {
  const ended: unknown[] = [];
  const planner: Planner = {
    next(_history, { emit }) {
      emit({ type: 'text', text: 'Let me' });
      return step as Step;
    },
  };
  const hooks = { 'turn-end': ({ message }: { message: unknown }) => ended.push(message) };
  const outcome = await createAgent({ name: 'a', planner, hooks, tools: [tool('look', () => 'x')] }).run('x').outcome;
  expect(outcome).toMatchObject({ status: 'failed', text: 'Let me', error: expect.any(TypeError) as unknown });
  expect(ended).toEqual([{ role: 'assistant', content: [{ type: 'text', text: 'Let me' }], stopReason: 'error' }]);
});

test('a planner that fails with an invalid reply keeps the text that was shown', async () => {
  const partial = { role: 'assistant', content: [null], stopReason: 'error' };
  const planner: Planner = {
    next(_history, { emit }) {
      emit({ type: 'text', text: 'Let me' });
      throw Object.assign(new Error('broken'), { partial });
    },
  };
  const outcome = await createAgent({ name: 'a', planner }).run('x').outcome;
  expect(outcome).toMatchObject({ status: 'failed', text: 'Let me', error: { message: 'broken' } });
});

test.each(['call-end', 'work-abandoned', 'undo-end', 'run-end', 'call-event'])(
  'a run continues, and ends, though a tool nests a %s with nothing in it',
  async (type) => {
    const nests = tool('nests', () => 'x', {
      execute: (_input, { emitNested }) => {
        emitNested({ type });
        return 'x';
      },
    });
    const planner: Planner = {
      next: (_, { turn }) => (turn === 1 ? callTools([{ id: 'c', tool: 'nests', input: {} }]) : reply('bye')),
    };
    const told: string[] = [];
    const hooks = { any: ({ type: happened }: { type: string }) => told.push(happened) };
    const outcome = await createAgent({ name: 'a', planner, hooks, tools: [nests] }).run('x').outcome;
    expect(outcome).toMatchObject({ status: 'success', text: 'bye', calls: [{ callId: 'c' }] });
    expect(told).toContain('call-event');
    expect(told.at(-1)).toBe('run-end');
  },
);

test('a planner that emits something other than a string fails with a clear error, and the shown text is kept', async () => {
  const planner: Planner = {
    next(_history, { emit }) {
      emit({ type: 'text', text: 'Let me' });
      emit({ type: 'thinking', text: {} as string });
      return reply('x');
    },
  };
  const outcome = await createAgent({ name: 'a', planner }).run('x').outcome;
  expect(outcome).toMatchObject({ status: 'failed', text: 'Let me', error: { code: 'INVALID_SETTING' } });
});

function stepWith(message: object): object {
  return { message: { role: 'assistant', content: [], stopReason: 'stop', ...message }, calls: [] };
}

function falseLength(): unknown[] {
  return new Proxy([], { get: (list, key) => (key === 'length' ? 2 ** 31 : (Reflect.get(list, key) as unknown)) });
}
