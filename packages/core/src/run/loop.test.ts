import { expect, test } from 'vitest';
import { createVirtualWorld, flushMicrotasks } from '../testing/virtual-world.ts';
import { createAgent } from './agent.ts';
import type { AssistantMessage, Message } from './history/message.ts';
import { callTools, type Planner, type PlannerContext, reply, type Step } from './reply/planner.ts';
import type { AgentParts, RunOptions } from './setup.ts';

function start(next: Planner['next'], options: Partial<AgentParts> & Pick<RunOptions, 'beforeTurn'> = {}) {
  const { beforeTurn, ...parts } = options;
  const world = createVirtualWorld();
  const agent = createAgent({ name: 'a', planner: { next }, world, ...parts });
  return { ...world, agent, run: agent.run('go', { beforeTurn }) };
}

const said = (text: string, stopReason: AssistantMessage['stopReason']): Step => ({
  message: { role: 'assistant', content: [{ type: 'text', text }], stopReason },
  calls: [],
});

const whenCancelled = ({ token }: PlannerContext, step: Step): Promise<Step> =>
  new Promise((resolve) => token.onCancel(() => resolve(step)));

test('a reply that was cut off is not complete; one that was whole when the cancel came is', async () => {
  for (const [step, isComplete] of [
    [said('So', 'aborted'), false],
    [said('So be it.', 'stop'), true],
  ] as const) {
    const { run } = start((_, context) => whenCancelled(context, step));
    await flushMicrotasks();
    run.cancel();
    expect(await run.outcome).toMatchObject({ status: 'cancelled', isComplete, turns: 1 });
  }
});

test('a reply that reports an abort, though nothing was cancelled, is the reply', async () => {
  expect(await start(() => said('So', 'aborted')).run.outcome).toMatchObject({ status: 'success', text: 'So' });
});

test('a planner that ends its reply with an error fails the run, and its text is kept', async () => {
  expect(await start(() => said('half', 'error')).run.outcome).toMatchObject({
    status: 'failed',
    error: { message: 'The planner ended its reply with an error' },
    text: 'half',
  });
});

test('over its budget a run is stopped immediately', async () => {
  const { run } = start(() => callTools([{ id: 'c', tool: 'none', input: {} }]), { budgets: { maxTurns: 1 } });
  expect(await run.outcome).toMatchObject({
    status: 'cancelled',
    reason: { kind: 'budget', message: 'the run reached its maxTurns of 1' },
    stop: { levels: [{ level: 'abort' }] },
    turns: 1,
  });
});

test('unfinished work before a turn is named in the report, finished work is not', async () => {
  for (const [beforeTurn, abandoned] of [
    [() => new Promise(() => {}), ['beforeTurn']],
    [() => {}, []],
  ] as const) {
    const { run, agent, clock } = start((_, context) => whenCancelled(context, said('x', 'aborted')), { beforeTurn });
    await flushMicrotasks();
    run.cancel({ by: 'anna' }, { mode: 'kill' });
    // It was only asked to start, so there is nothing to wait for.
    await flushMicrotasks();
    expect(await run.outcome).toMatchObject({ status: 'cancelled', stop: { isClean: abandoned.length === 0 } });
    expect(agent.lateResults.entries().map(({ name }) => name)).toEqual(abandoned);
    expect(clock.pending).toBe(0);
  }
});

test('a cancel ends a run as cancelled, even if the work before its turn fails with it', async () => {
  let cancel: (() => void) | undefined;
  const { run } = start(() => reply('x'), {
    beforeTurn: () => {
      cancel?.();
      throw new Error('no turn');
    },
  });
  cancel = () => run.cancel();
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'cancelled', isComplete: false });
  expect(outcome).not.toHaveProperty('error');
});

test('a shortened history is reported with its new messages, and `compact` gets the turn', async () => {
  const turns: number[] = [];
  const events: unknown[] = [];
  const { run } = start(() => reply('done'), {
    compact: (messages, { turn, signal }) => {
      turns.push(turn);
      expect(signal.aborted).toBe(false);
      return [...messages, { role: 'user', content: 'summary' }];
    },
    hooks: { 'history-compacted': ({ before, after, messages }) => events.push([before, after, messages.length]) },
  });
  expect((await run.outcome).messages.map(({ role }) => role)).toEqual(['user', 'user', 'assistant']);
  expect([turns, events]).toEqual([[1], [[1, 2, 2]]]);
});

test.each<[string, (messages: readonly Message[]) => readonly Message[], string]>([
  ['the last three', (messages) => messages.slice(-3), 'user assistant tool assistant'],
  ['the last four', (messages) => messages.slice(-4), 'user assistant tool assistant tool assistant'],
  ['a result alone', (messages) => messages.slice(-1), 'user assistant'],
  ['nothing', () => [], 'user assistant'],
  ['all, the wrong way round', (messages) => messages.toReversed(), 'user assistant'],
])('a `compact` that keeps %s leaves a history that starts with a user message', async (_, compact, roles) => {
  const events: (readonly Message[])[] = [];
  const call = (turn: number) => callTools([{ id: `c${turn}`, tool: 'none', input: {} }]);
  const { run } = start((_messages, { turn }) => (turn < 4 ? call(turn) : reply('done')), {
    compact: (messages, { turn }) => (turn === 4 ? compact(messages) : messages),
    hooks: { 'history-compacted': ({ messages }) => events.push(messages) },
  });
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'success', text: 'done' });
  expect(outcome.messages.map(({ role }) => role).join(' ')).toBe(roles);
  expect(events).toEqual([outcome.messages.slice(0, -1)]);
});

test.each([undefined, null, 'all', [7], [{ role: 'tool', content: 'x' }], [{ role: 'system', content: 'x' }]])(
  'a `compact` that returns %j fails the run and is named',
  async (kept) => {
    const { run } = start(() => reply('done'), { compact: () => kept as never });
    expect(await run.outcome).toMatchObject({
      status: 'failed',
      error: { code: 'INVALID_SETTING', message: expect.stringMatching(/^compact/) as string },
    });
  },
);

test('text is reported unchanged, and a steer when it is delivered', async () => {
  const { run } = start((_, { turn, emit }) => {
    emit({ type: 'text', text: 'x' });
    return turn === 1 ? callTools([{ id: 'c', tool: 'none', input: {} }]) : reply('done');
  });
  const { message } = run.steer('and then?');
  const told: unknown[] = [];
  for await (const { runId: _, at: __, ...event } of run.events)
    if (event.type === 'text' || event.type === 'steer-delivered') told.push(event);
  expect(told).toStrictEqual([
    { type: 'steer-delivered', message },
    { type: 'text', text: 'x' },
    { type: 'text', text: 'x' },
  ]);
});

test('a history that is short enough is not changed, and there is no event', async () => {
  const { run } = start(() => reply('done'), {
    compact: (messages) => messages,
    hooks: { 'history-compacted': () => expect.unreachable('nothing was compacted') },
  });
  const types: string[] = [];
  for await (const { type } of run.events) types.push(type);
  expect(types).not.toContain('history-compacted');
});

test('text that is not a string fails the turn with a clear error', async () => {
  const { run } = start((_, { emit }) => {
    emit({ type: 'text', text: 7 as never });
    return reply('x');
  });
  expect(await run.outcome).toMatchObject({
    status: 'failed',
    error: { message: 'event.text: expected a string, got 7' },
  });
});

test('turns are reported as they begin and end, and calls under their own ids', async () => {
  const told: unknown[] = [];
  const hooks = {
    'turn-start': ({ turn }: { turn: number }) => told.push(['start', turn]),
    'turn-end': ({ turn, message }: { turn: number; message: AssistantMessage }) =>
      told.push([turn, message.stopReason]),
    'call-planned': ({ callId }: { callId: string }) => told.push(callId),
    text: ({ text }: { text: string }) => told.push(text),
  };
  const { run } = start(
    (_, { turn, emit }) => {
      emit({ type: 'text', text: `words ${turn}` });
      emit({ type: 'call-planned', callId: 'c', tool: 'none' });
      return turn === 2 ? reply('done') : callTools([{ id: 'c', tool: 'none', input: {} }]);
    },
    { hooks },
  );
  await run.outcome;
  expect(told).toEqual([['start', 1], 'words 1', 'c', [1, 'tool-use'], ['start', 2], 'words 2', 'c-2', [2, 'stop']]);
});

test.each<[string, unknown]>([
  ['nothing', undefined],
  ['no message', { calls: [] }],
  ['another role', { message: { role: 'user', content: [], stopReason: 'stop' }, calls: [] }],
  ['no list of parts', { message: { role: 'assistant', content: 'x', stopReason: 'stop' }, calls: [] }],
  ['no list of calls', { message: { role: 'assistant', content: [], stopReason: 'stop' } }],
])('a planner that returns %s gets an error that explains steps', async (_, step) => {
  expect(await start(() => step as Step).run.outcome).toMatchObject({
    status: 'failed',
    error: { message: 'planner: `next` must return { message, calls }; create one with `reply` or `callTools`' },
    messages: [{ role: 'user' }],
  });
});

test('a planner’s error decides how much of its text is kept, and with which stop reason', async () => {
  const speak = (context: PlannerContext, error: unknown): Promise<never> => {
    context.emit({ type: 'thinking', text: 'hm' });
    context.emit({ type: 'text', text: 'half' });
    return new Promise((_, reject) => {
      if (error instanceof Error) reject(error);
      context.token.onCancel(() => reject(new Error('stopped')));
    });
  };
  const failed = await start((_, context) => speak(context, new Error('no network'))).run.outcome;
  expect(failed.messages.at(-1)).toStrictEqual({
    role: 'assistant',
    content: [{ type: 'text', text: 'half' }],
    stopReason: 'error',
  });
  const { run } = start((_, context) => speak(context, undefined));
  await flushMicrotasks();
  run.cancel();
  const cancelled = await run.outcome;
  expect(cancelled).toMatchObject({ status: 'cancelled', isComplete: false });
  expect(cancelled).not.toHaveProperty('error');
  expect(cancelled.messages.at(-1)).toMatchObject({ content: [{ text: 'half' }], stopReason: 'aborted' });
});
