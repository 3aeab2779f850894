import { expect, test } from 'vitest';
import { z } from 'zod';
import { CancelledError } from '../stop/errors.ts';
import { CancellationToken } from '../stop/token/token.ts';
import { checkHistory } from '../testing/checker.ts';
import { createRecorder } from '../testing/recorder.ts';
import { createVirtualWorld, flushMicrotasks } from '../testing/virtual-world.ts';
import type { Call } from '../tool/call/call.ts';
import { defineTool, type Tool, type ToolContext } from '../tool/tool.ts';
import { createAgent } from './agent.ts';
import { MAX_TURNS } from './budget.ts';
import type { AssistantMessage, Message } from './history/message.ts';
import { callTools, type Planner, type PlannerContext, reply, type Step } from './reply/planner.ts';
import type { RunEvent } from './report/events.ts';
import { formatStopReport } from './report/report.ts';
import type { AgentParts } from './setup.ts';

type Script = (history: readonly Message[], context: PlannerContext) => Step | Promise<Step>;

/** A planner that takes one script per turn. */
const scripted = (...turns: Script[]): Planner => ({
  next: (history, context) => turns[Math.min(context.turn, turns.length) - 1]!(history, context),
});

const call = (id: string, tool: string, rest: Partial<Call> = {}): Call => ({ id, tool, input: {}, ...rest });

type Execute = (input: unknown, context: ToolContext) => ReturnType<Tool['execute']>;

function setUp(
  planner: Planner,
  tools: Record<string, Execute | Partial<Tool>> = {},
  options: Partial<AgentParts> = {},
) {
  const world = createVirtualWorld();
  const recorder = createRecorder();
  const defined = Object.entries(tools).map(([name, given]) => {
    const rest = typeof given === 'function' ? { execute: given } : given;
    const tool = {
      ...defineTool({ name, description: name, inputSchema: z.unknown(), effects: 'read', execute: () => 'done' }),
      ...rest,
    };
    return recorder.tool(tool);
  });
  const agent = createAgent({ name: 'test', planner, tools: defined, world, hooks: recorder.hooks, ...options });
  const root = new CancellationToken({ name: 'root', clock: world.clock });
  const run = recorder.run(agent.run('hello', { token: root }));
  const check = () => {
    recorder.recordToken(root);
    expect(checkHistory(recorder.history)).toEqual([]);
    expect(world.clock.pending).toBe(0);
  };
  return { ...world, world, agent, root, run, recorder, check };
}

const obedient: Execute = (_input, { signal }) =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }));

test('plan, waves, adaptation, reply', async () => {
  const seen: string[][] = [];
  const { run, check } = setUp(
    scripted(
      (history) => {
        seen.push(history.map(({ role }) => role));
        return callTools([call('1', 'lookup')], 'Let me look.');
      },
      (history) => {
        seen.push(history.map(({ role }) => role));
        return reply('Tuesday at ten.');
      },
    ),
    { lookup: () => ({ content: 'free: Tue 10', details: { raw: [1, 2] } }) },
  );
  const outcome = await run.outcome;
  expect(seen).toEqual([['user'], ['user', 'assistant', 'tool']]);
  expect(outcome).toMatchObject({ status: 'success', text: 'Tuesday at ten.', turns: 2, undelivered: [] });
  expect(outcome.calls).toMatchObject([{ callId: '1', state: 'finished', details: { raw: [1, 2] } }]);
  expect(outcome.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  expect(Object.isFrozen(outcome)).toBe(true);
  check();
});

test('cancel during adaptation phase: the words so far are kept, nothing of the first wave is lost', async () => {
  const { run, check } = setUp(
    scripted(
      () => callTools([call('1', 'lookup')]),
      (_history, { token, emit }) => {
        emit({ type: 'text', text: 'I found ' });
        return new Promise((_, reject) => token.onCancel((_level, reason) => reject(new CancelledError(reason))));
      },
    ),
    { lookup: () => 'free' },
  );
  for await (const event of run.events) if (event.type === 'text') break;
  expect(run.text).toBe('I found ');
  expect(run.cancel({ kind: 'user' })).toMatchObject({ result: 'accepted', level: 'drain' });
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({
    status: 'cancelled',
    text: 'I found ',
    isComplete: false,
    calls: [{ state: 'finished' }],
  });
  expect(outcome.messages.at(-1)).toEqual({
    role: 'assistant',
    content: [{ type: 'text', text: 'I found ' }],
    stopReason: 'aborted',
  });
  check();
});

test('a planner’s partial message is kept unchanged', async () => {
  const partial: AssistantMessage = {
    role: 'assistant',
    content: [
      { type: 'thinking', text: 'hm', signature: 's' },
      { type: 'text', text: 'So' },
    ],
    stopReason: 'aborted',
    usage: { inputTokens: 7, outputTokens: 1, isComplete: false },
  };
  const { run, check } = setUp(
    scripted(
      (_h, { token }) =>
        new Promise((_, reject) => token.onCancel((_l, reason) => reject(new CancelledError(reason, { partial })))),
    ),
  );
  await flushMicrotasks();
  run.cancel();
  const outcome = await run.outcome;
  expect(outcome.messages.at(-1)).toEqual(partial);
  expect(outcome.usage).toEqual({ inputTokens: 7, outputTokens: 1, isComplete: false });
  check();
});

test('a planner may return its partial message when it is cut off, and is not called again', async () => {
  const { run, check } = setUp(
    scripted(
      (_h, { token }) =>
        new Promise((resolve) =>
          token.onCancel(() => {
            const message: AssistantMessage = {
              role: 'assistant',
              content: [{ type: 'text', text: 'So' }],
              stopReason: 'aborted',
            };
            resolve({ message, calls: [] });
          }),
        ),
      () => expect.fail('must not plan'),
    ),
  );
  await flushMicrotasks();
  run.steer('and then?');
  run.cancel();
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'cancelled', isComplete: false, text: 'So', turns: 1 });
  expect(outcome.undelivered).toHaveLength(1);
  check();
});

test('cancelled before it starts, in the same tick, nothing is planned', async () => {
  const { run, check } = setUp({ next: () => expect.fail('must not plan') });
  run.cancel({ kind: 'user', by: 'anna' });
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'cancelled', turns: 0, text: '', reason: { by: 'anna' } });
  expect(outcome.messages).toEqual([{ role: 'user', content: 'hello' }]);
  check();
});

test('a run under a cancelled token, or with an aborted signal, is cancelled from birth', async () => {
  const { agent, root } = setUp({ next: () => reply('x') });
  root.cancel({ kind: 'shutdown' });
  expect(await agent.run('again', { token: root }).outcome).toMatchObject({
    status: 'cancelled',
    reason: { kind: 'shutdown' },
  });
  expect(await agent.run('again', { signal: AbortSignal.abort() }).outcome).toMatchObject({ status: 'cancelled' });
});

test('a cancel after the end is too late and changes nothing', async () => {
  const { run, check } = setUp({ next: () => reply('done') });
  const outcome = await run.outcome;
  const before = JSON.stringify(outcome);
  expect(run.cancel({}, { mode: 'kill', undo: true })).toEqual({ result: 'too-late' });
  expect(run.cancelCall('1')).toEqual({ result: 'too-late' });
  expect(run.steer('more')).toMatchObject({ result: 'too-late' });
  expect(JSON.stringify(await run.outcome)).toBe(before);
  check();
});

test('a drain that lets the whole plan complete has an outcome that is cancelled and complete', async () => {
  const { run, check } = setUp(
    {
      next: (_h, { turn }) => {
        if (turn === 1) return callTools([call('1', 'x')]);
        return expect.fail('must not adapt');
      },
    },
    { x: () => 'kept' },
  );
  for await (const event of run.events) if (event.type === 'call-end') break;
  run.cancel();
  expect(await run.outcome).toMatchObject({
    status: 'cancelled',
    isComplete: false,
    calls: [{ state: 'finished', content: 'kept' }],
  });
  check();
  const late = setUp({ next: () => reply('all done') });
  for await (const event of late.run.events) {
    if (event.type === 'turn-end') late.run.cancel();
  }
  expect(await late.run.outcome).toMatchObject({ status: 'cancelled', isComplete: true, text: 'all done' });
  late.check();
});

test('a plan that fails while it drains is cancelled too, with the error kept', async () => {
  const { run, check } = setUp(
    scripted(
      (_h, { token }) =>
        new Promise((_, reject) => token.onCancel(() => queueMicrotask(() => reject(new Error('boom'))))),
    ),
  );
  await flushMicrotasks();
  run.cancel();
  expect(await run.outcome).toMatchObject({ status: 'cancelled' });
  check();
});

test('a planner that throws fails the run, and its text is kept', async () => {
  const { run, check } = setUp(
    scripted((_h, { emit }) => {
      emit({ type: 'text', text: 'Half a ' });
      throw new Error('no network');
    }),
  );
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'failed', error: { message: 'no network' }, text: 'Half a ' });
  expect(outcome.messages.at(-1)).toMatchObject({ stopReason: 'error' });
  check();
});

test('an impossible plan fails the run, and its calls were not started', async () => {
  const { run, check } = setUp(
    scripted(() => callTools([call('1', 'x', { dependsOn: ['1'] })])),
    { x: () => 'x' },
  );
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'failed', calls: [{ state: 'not-started' }] });
  expect(outcome.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  check();
});

test('a planner that ignores its signal is abandoned when the ladder ends', async () => {
  const { run, clock, check } = setUp({ next: () => new Promise(() => {}) });
  await flushMicrotasks();
  run.cancel();
  await clock.advance(12_000);
  expect(await run.outcome).toMatchObject({ status: 'cancelled', stop: { settledAfterMs: 12_000 } });
  check();
});

test('the run of a call that ignores its signal settles when the ladder ends, reports unknown, and ignores the late result', async () => {
  let finish: (() => void) | undefined;
  const { run, clock, recorder, agent, check } = setUp(
    scripted(() => callTools([call('1', 'deaf'), call('2', 'quick')])),
    {
      deaf: () => new Promise((resolve) => (finish = () => resolve('late'))),
      quick: () => 'quick',
    },
  );
  await flushMicrotasks();
  run.cancel({ kind: 'user', message: 'never mind' });
  await clock.advance(12_000);
  const outcome = await run.outcome;
  expect(outcome.calls.map(({ state }) => state)).toEqual(['unknown', 'finished']);
  const before = JSON.stringify(outcome);
  finish?.();
  await flushMicrotasks();
  expect(JSON.stringify(outcome)).toBe(before);
  expect(recorder.history.at(-1)).toMatchObject({ seen: 'event', event: { type: 'call-ended-late', callId: '1' } });
  expect(agent.lateResults.entries()).toMatchObject([{ key: `${run.id}/1`, late: { state: 'finished' } }]);
  check();
});

test('the stop report lists how everything ended, and starts with one sentence', async () => {
  const { run, clock, check } = setUp(
    scripted(() =>
      callTools([call('1', 'pay'), call('2', 'scan'), call('3', 'deaf'), call('4', 'later', { dependsOn: ['1'] })]),
    ),
    {
      pay: {
        whenCancelled: 'finish',
        timeoutMs: 20_000,
        execute: () => new Promise((resolve) => clock.setTimer(5_000, () => resolve('paid'))),
      },
      scan: obedient,
      deaf: () => new Promise(() => {}),
      later: () => 'x',
    },
  );
  await flushMicrotasks();
  run.cancel({ kind: 'user', message: 'stop', by: 'anna', via: 'cli' }, { mode: 'now' });
  await clock.advance(5_000);
  const outcome = await run.outcome;
  const stop = outcome.status === 'cancelled' ? outcome.stop : expect.fail('not cancelled');
  expect(Object.isFrozen(stop)).toBe(true);
  expect(formatStopReport(stop)).toBe(
    [
      'Stopped after 5000 ms (user: stop, by anna, via cli); 1 abandoned.',
      '         +0 ms  abort: what can be interrupted stops',
      '         +0 ms  scan interrupted',
      '      +2000 ms  kill: nothing more is waited for',
      '      +2000 ms  deaf abandoned, its outcome is unknown',
      '      +5000 ms  pay finished (waited for: it must not be cut)',
      '      +5000 ms  later not started',
      '      +5000 ms  settled',
    ].join('\n'),
  );
  check();
});

test('completed calls are undone in reverse order, shielded, at most once', async () => {
  const order: string[] = [];
  const undoable = (name: string): Partial<Tool> => ({
    execute: () => ({ content: name, details: { id: name } }),
    undo: ({ content, details, input }, { signal, callId }) => {
      order.push(`${callId} ${JSON.stringify({ content, details, input, aborted: signal.aborted })}`);
      if (name === 'b') throw new Error('cannot');
    },
  });
  const { run, check } = setUp(
    scripted(() =>
      callTools([
        call('1', 'a', { input: { x: 1 } }),
        call('2', 'b', { dependsOn: ['1'] }),
        call('3', 'wait', { dependsOn: ['2'] }),
      ]),
    ),
    { a: undoable('a'), b: undoable('b'), wait: obedient },
  );
  for await (const event of run.events) if (event.type === 'call-start' && event.tool === 'wait') break;
  run.cancel({ kind: 'user' }, { mode: 'now', undo: true });
  const outcome = await run.outcome;
  expect(order).toEqual([
    '2 {"content":"b","details":{"id":"b"},"input":{},"aborted":false}',
    '1 {"content":"a","details":{"id":"a"},"input":{"x":1},"aborted":false}',
  ]);
  expect(outcome.status === 'cancelled' && outcome.stop.calls).toMatchObject([
    { callId: '3', state: 'interrupted' },
    { callId: '2', undo: 'failed' },
    { callId: '1', undo: 'undone' },
  ]);
  expect(outcome.status === 'cancelled' && outcome.stop.isClean).toBe(false);
  check();
});

test('an undo begins only when it has been written down', async () => {
  const undone: string[] = [];
  const { agent } = setUp(
    scripted(
      () => callTools([call('1', 'a'), call('2', 'b')]),
      () => reply('done'),
    ),
    {
      a: { undo: () => void undone.push('a') },
      b: { undo: () => void undone.push('b') },
    },
  );
  const written: string[] = [];
  const run = agent.run('again', {
    beforeUndo: async ({ callId }) => {
      await Promise.resolve();
      if (callId === '2') throw new Error('the store is gone');
      written.push(callId);
    },
  });
  expect(await run.undo()).toEqual([
    { callId: '2', tool: 'b', state: 'failed', error: 'the store is gone' },
    { callId: '1', tool: 'a', state: 'undone' },
  ]);
  expect([written, undone]).toEqual([['1'], ['a']]);
});

test('undos that hang share one bound and are reported as unknown', async () => {
  const { run, clock } = setUp(
    scripted(() => callTools([call('1', 'a'), call('2', 'b'), call('3', 'wait', { dependsOn: ['1', '2'] })])),
    { a: { undo: () => {} }, b: { undo: () => new Promise(() => {}) }, wait: obedient },
  );
  for await (const event of run.events) if (event.type === 'call-start' && event.tool === 'wait') break;
  run.cancel({}, { mode: 'now', undo: true });
  await clock.advance(30_000);
  const outcome = await run.outcome;
  expect(outcome.status === 'cancelled' && outcome.stop.calls.map(({ callId, undo }) => [callId, undo])).toEqual([
    ['3', undefined],
    ['2', 'unknown'],
    ['1', 'failed'],
  ]);
});

test('a run that would never end by itself ends with its thousandth turn, unless it may go on', async () => {
  const forever = (maxTurns?: number) => {
    let asked = 0;
    const planner = scripted(() => (++asked > 1_100 ? reply('done') : callTools([call(`${asked}`, 'x')])));
    return setUp(planner, { x: () => 'x' }, maxTurns === undefined ? {} : { budgets: { maxTurns } });
  };
  const bounded = forever();
  expect(await bounded.run.outcome).toMatchObject({
    status: 'cancelled',
    turns: MAX_TURNS,
    reason: { kind: 'budget' },
  });
  bounded.check();
  expect(await forever(Infinity).run.outcome).toMatchObject({ status: 'success', turns: 1_101 });
});

test('budgets are reasons like any other', async () => {
  const forever = scripted(() => callTools([call(`${Math.random()}`, 'x')]));
  const turns = setUp(forever, { x: () => 'x' }, { budgets: { maxTurns: 3 } });
  expect(await turns.run.outcome).toMatchObject({
    status: 'cancelled',
    turns: 3,
    reason: { kind: 'budget', message: 'the run reached its maxTurns of 3' },
  });
  turns.check();
  const calls = setUp(
    scripted(() => callTools([call('1', 'x'), call('2', 'x')])),
    { x: () => expect.fail('must not start') },
    { budgets: { maxCalls: 1 } },
  );
  const outcome = await calls.run.outcome;
  expect(outcome).toMatchObject({ status: 'cancelled', reason: { kind: 'budget' } });
  expect(outcome.calls.map(({ state }) => state)).toEqual(['not-started', 'not-started']);
  calls.check();
  const costly = scripted(() => {
    const step = callTools([call(`${Math.random()}`, 'x')]);
    return { ...step, message: { ...step.message, usage: { inputTokens: 60, outputTokens: 1, isComplete: true } } };
  });
  const tokens = setUp(costly, { x: () => 'x' }, { budgets: { maxModelTokens: 100 } });
  expect(await tokens.run.outcome).toMatchObject({
    status: 'cancelled',
    turns: 2,
    usage: { inputTokens: 120, outputTokens: 2 },
  });
  const time = setUp({ next: () => new Promise(() => {}) }, {}, { budgets: { maxDurationMs: 1_000 } });
  await time.clock.advance(3_000);
  expect(await time.run.outcome).toMatchObject({
    status: 'cancelled',
    reason: { kind: 'deadline', message: 'the run took longer than 1000 ms' },
  });
  time.check();
});

test('a steer enters at the next boundary; an unread one is returned', async () => {
  let answer: string | undefined;
  const { run, check } = setUp(
    scripted(
      () => callTools([call('1', 'x')]),
      (history) => reply(history.map(({ role }) => role).join(' ')),
    ),
    {
      x: () => {
        answer = run.steer('also invite bob').result;
        return 'x';
      },
    },
  );
  const outcome = await run.outcome;
  expect(answer).toBe('accepted');
  expect(outcome.text).toBe('user assistant tool user');
  check();
  const late = setUp(
    scripted(() => callTools([call('1', 'x')])),
    { x: obedient },
  );
  await flushMicrotasks();
  late.run.steer('one more thing');
  late.run.cancel({}, { mode: 'now' });
  expect((await late.run.outcome).undelivered).toEqual([{ role: 'user', content: 'one more thing' }]);
  late.check();
});

test('a steer that comes with the reply gets its own turn', async () => {
  const { run } = setUp(
    scripted(
      () => {
        run.steer('wait');
        return reply('bye');
      },
      () => reply('still here'),
    ),
  );
  expect(await run.outcome).toMatchObject({ status: 'success', text: 'bye\n\nstill here', turns: 2 });
});

test('a compact hook shortens the history before each turn, and a cancel does not wait for it', async () => {
  const { run, recorder, check } = setUp(
    scripted(
      () => callTools([call('1', 'x')]),
      (history) => reply(`${history.length}`),
    ),
    { x: () => 'x' },
    { compact: (messages) => (messages.length > 2 ? messages.slice(-1) : messages) },
  );
  expect((await run.outcome).text).toBe('1');
  expect(recorder.history).toContainEqual({
    seen: 'event',
    event: {
      type: 'history-compacted',
      before: 3,
      after: 1,
      messages: [expect.objectContaining({ role: 'user' })],
      runId: run.id,
      at: expect.any(Number) as number,
    },
  });
  check();
  let signal: AbortSignal | undefined;
  const stuck = setUp(
    { next: () => expect.fail('must not plan') },
    {},
    {
      compact: (_messages, context) => {
        signal = context.signal;
        return new Promise((_, reject) => context.signal.addEventListener('abort', () => reject(new Error('x'))));
      },
    },
  );
  await flushMicrotasks();
  stuck.run.cancel();
  expect((await stuck.run.outcome).status).toBe('cancelled');
  expect(signal?.aborted).toBe(true);
  stuck.check();
});

test('one call can be cancelled and the run continues', async () => {
  const { run, check } = setUp(
    scripted(
      () => callTools([call('1', 'wait'), call('2', 'x')]),
      () => reply('went on'),
    ),
    { wait: obedient, x: () => 'x' },
  );
  for await (const event of run.events) if (event.type === 'call-end') break;
  expect(run.cancelCall('1', { by: 'anna' })).toMatchObject({ result: 'accepted' });
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'success', text: 'went on' });
  expect(outcome.calls.map(({ state }) => state)).toEqual(['interrupted', 'finished']);
  check();
});

test('one call can be cancelled with a given mode', async () => {
  const { run, agent } = setUp(
    scripted(
      () => callTools([call('1', 'deaf')]),
      () => reply('went on'),
    ),
    { deaf: () => new Promise(() => {}) },
  );
  for await (const event of run.events) if (event.type === 'call-start') break;
  expect(run.cancelCall('1', {}, { mode: 'kill' })).toMatchObject({ result: 'accepted', level: 'kill' });
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'success', text: 'went on', calls: [{ state: 'unknown' }] });
  expect(agent.lateResults.entries()).toMatchObject([{ key: `${run.id}/1` }]);
});

test('cancelling one run leaves its siblings alone; cancelling the parent stops them all', async () => {
  const { agent, root, clock } = setUp(
    scripted(() => callTools([call('1', 'wait')])),
    { wait: obedient },
  );
  const runs = Array.from({ length: 3 }, () => agent.run('x', { token: root }));
  await flushMicrotasks();
  runs[0]!.cancel({}, { mode: 'now' });
  expect((await runs[0]!.outcome).status).toBe('cancelled');
  expect(root.statistics.children).toBe(3);
  root.cancel({ kind: 'shutdown' }, { mode: 'now' });
  const outcomes = await Promise.all(runs.slice(1).map(({ outcome }) => outcome));
  expect(outcomes.map((outcome) => outcome.status === 'cancelled' && outcome.reason.kind)).toEqual([
    'shutdown',
    'shutdown',
  ]);
  await clock.advance(2_000);
});

test('hooks receive every event; a throwing hook affects nothing else and is reported', async () => {
  const heard: string[] = [];
  const errors: unknown[] = [];
  const { run } = setUp(
    scripted(
      () => callTools([call('1', 'x')]),
      () => reply('done'),
    ),
    { x: () => 'x' },
    {
      hooks: {
        any: ({ type }) => heard.push(type),
        'run-end': () => {
          throw new Error('bad hook');
        },
        'hook-error': ({ error }) => errors.push(error),
      },
    },
  );
  expect((await run.outcome).status).toBe('success');
  expect(heard).toEqual([
    'run-start',
    'turn-start',
    'turn-end',
    'wave-start',
    'call-start',
    'call-end',
    'wave-end',
    'turn-start',
    'turn-end',
    'run-end',
  ]);
  expect(errors).toEqual([new Error('bad hook')]);
});

test('every cancel is reported with its result', async () => {
  const { run, clock, recorder, check } = setUp({ next: () => new Promise(() => {}) });
  await flushMicrotasks();
  run.cancel({ message: 'first' });
  run.cancel({ message: 'second' });
  run.cancel({ message: 'third' }, { mode: 'now' });
  await clock.advance(2_000);
  await run.outcome;
  const told = recorder.history.flatMap((entry) => (entry.seen === 'event' ? [entry.event] : []));
  expect(told.filter(({ type }) => type === 'cancel-requested')).toMatchObject([
    { receipt: 'accepted', reason: { message: 'first' } },
    { receipt: 'unchanged', reason: { message: 'second' } },
    { receipt: 'escalated', reason: { message: 'third' } },
  ]);
  expect(told.filter(({ type }) => type === 'level-changed')).toMatchObject([
    { level: 'drain', reason: { message: 'first' } },
    { level: 'abort', reason: { message: 'first' } },
    { level: 'kill', reason: { message: 'first' } },
  ]);
  check();
});

test('events can be read late, by many, and left early', async () => {
  const { run } = setUp(
    scripted(
      () => callTools([call('1', 'x')]),
      () => reply('done'),
    ),
    { x: () => 'x' },
  );
  const early: RunEvent['type'][] = [];
  for await (const { type } of run.events) {
    early.push(type);
    if (type === 'call-start') break;
  }
  await run.outcome;
  const late: RunEvent['type'][] = [];
  for await (const { type } of run.events) late.push(type);
  expect(late.slice(0, early.length)).toEqual(early);
  expect(late.at(-1)).toBe('run-end');
});

test('a run whose turns never wait still obeys its deadline and a cancel from outside', async () => {
  const again: Planner = { next: () => callTools([call('again', 'remember')]) };
  const remember = defineTool({ name: 'remember', description: 'r', inputSchema: z.unknown(), execute: () => 'known' });
  const late = await createAgent({
    name: 'busy',
    planner: again,
    tools: [remember],
    budgets: { maxDurationMs: 30, maxTurns: Infinity },
  }).run('go').outcome;
  expect(late).toMatchObject({ status: 'cancelled', reason: { kind: 'deadline' } });
  const run = createAgent({ name: 'busy', planner: again, tools: [remember], budgets: { maxTurns: Infinity } }).run(
    'go',
  );
  setTimeout(() => run.cancel({ kind: 'user' }), 1);
  expect(await run.outcome).toMatchObject({ status: 'cancelled', reason: { kind: 'user' } });
});
