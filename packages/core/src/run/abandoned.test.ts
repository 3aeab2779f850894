import { MessageChannel } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { checkHistory } from '../testing/checker.ts';
import { createRecorder } from '../testing/recorder.ts';
import { createScriptedModel } from '../testing/scripted-model.ts';
import { createVirtualWorld, flushMicrotasks, type VirtualClock } from '../testing/virtual-world.ts';
import { defineTool, type Tool, type ToolDefinition } from '../tool/tool.ts';
import { type Agent, createAgent } from './agent.ts';
import type { Model, ModelPart } from './reply/model.ts';
import { ModelError } from './reply/model.ts';
import { reply } from './reply/planner.ts';
import type { RunEvent } from './report/events.ts';
import { formatStopReport } from './report/report.ts';
import type { Run } from './run.ts';
import type { AgentOptions } from './setup.ts';
import { createAgentTool } from './sub-agent.ts';

const never = new Promise<never>(() => {});

function setUp(options: Partial<AgentOptions>) {
  const world = createVirtualWorld();
  const recorder = createRecorder();
  const model = createScriptedModel([['x']], { clock: world.clock });
  const agent = createAgent({ name: 'a', model, world, hooks: recorder.hooks, ...options } as AgentOptions);
  const start = (of: Agent = agent) => {
    const run = recorder.run(of.run('go'));
    const events: string[] = [];
    const reading = (async () => {
      for await (const event of run.events) events.push(describe(event));
    })();
    return { run, events, reading };
  };
  const check = () => {
    expect(checkHistory(recorder.history)).toEqual([]);
    expect(world.clock.pending).toBe(0);
  };
  return { ...world, recorder, agent, start, check };
}

const describe = (event: RunEvent): string =>
  event.type === 'level-changed' ? event.level : event.type === 'cancel-requested' ? event.receipt : event.type;

const tool = (rest: Partial<ToolDefinition<unknown>>): Tool =>
  defineTool({
    name: 'work',
    description: 'Works.',
    inputSchema: z.unknown(),
    execute: () => 'x',
    ...rest,
  } as ToolDefinition<unknown>);

const ASKS_FOR_WORK = () => createScriptedModel([[{ call: 'work', id: 'c' }], ['x']]);

test.each<[string, Partial<AgentOptions>, string]>([
  ['a planner', { planner: { next: () => never }, model: undefined }, 'planner'],
  ['a compact', { compact: () => never }, 'compact'],
  ['a question', { approve: () => never, tools: [tool({})], model: ASKS_FOR_WORK() }, 'approval of work (c)'],
  [
    'a cleanup',
    { tools: [tool({ execute: (_, { defer }) => (defer(() => never) as undefined) ?? 'x' })], model: ASKS_FOR_WORK() },
    'cleanup of work (c)',
  ],
])('%s that does not end is named in the report and in the late results', async (_, options, name) => {
  const { start, clock, agent, check } = setUp(options);
  const { run, events, reading } = start();
  await flushMicrotasks();
  run.cancel({ kind: 'user', by: 'anna' }, { mode: 'kill' });
  await clock.advance(2_000);
  const outcome = await run.outcome;
  await reading;
  expect(outcome).toMatchObject({ status: 'cancelled', stop: { isClean: false, abandoned: [{ name }] } });
  expect(agent.lateResults.entries()).toMatchObject([{ name, reason: { by: 'anna' } }]);
  expect(events.slice(-2)).toEqual(['work-abandoned', 'run-end']);
  if (outcome.status === 'cancelled')
    expect(formatStopReport(outcome.stop)).toContain(`${name} abandoned, it may still run`);
  check();
});

test('a run waits for what ends shortly after the cancel, and the run is clean', async () => {
  const { start, clock, check } = setUp({
    approve: (_, { signal }) => answerAfter(signal),
    tools: [tool({})],
    model: ASKS_FOR_WORK(),
  });
  const answerAfter = (signal: AbortSignal): Promise<boolean> =>
    new Promise((resolve) => signal.addEventListener('abort', () => clock.setTimer(300, () => resolve(false))));
  const { run } = start();
  await flushMicrotasks();
  run.cancel({}, { mode: 'now' });
  await clock.advance(300);
  expect(await run.outcome).toMatchObject({
    stop: { isClean: true, settledAfterMs: 300 },
    calls: [{ state: 'not-started' }],
  });
  check();
});

/** A stream that ignores its signal and its `return`. */
const deaf: Model = {
  name: 'deaf',
  stream: () => ({ [Symbol.asyncIterator]: () => ({ next: () => never, return: () => never }) }),
};

test.each<[string, (run: Run, clock: VirtualClock) => unknown, number]>([
  ['immediately after a kill', (run) => run.cancel({}, { mode: 'kill' }), 0],
  ['a second after a gentler cancel', (run) => run.cancel({}, { mode: 'graceful' }), 1_000],
  [
    'at the kill that follows a gentler cancel',
    (run, clock) => {
      run.cancel({}, { mode: 'now' });
      clock.setTimer(300, () => run.cancel({}, { mode: 'kill' }));
    },
    300,
  ],
])('a run whose model stream is deaf ends %s, and its report names the stream', async (_, stop, settledAfterMs) => {
  const { start, clock, check } = setUp({ model: deaf });
  const { run } = start();
  await flushMicrotasks();
  stop(run, clock);
  await clock.advance(settledAfterMs);
  const settled = await Promise.race([run.outcome, flushMicrotasks()]);
  expect(settled).toMatchObject({ stop: { settledAfterMs, abandoned: [{ name: 'model stream' }] } });
  check();
});

test('a stream that closes by itself after a kill is not named', async () => {
  const { start, check } = setUp({ model: createScriptedModel([[{ until: never }]]) });
  const { run } = start();
  await flushMicrotasks();
  run.cancel({}, { mode: 'kill' });
  expect(await run.outcome).toMatchObject({ stop: { settledAfterMs: 0, isClean: true } });
  check();
});

test('a late result is recorded separately, and the report does not change', async () => {
  let end: ((step: ReturnType<typeof reply>) => void) | undefined;
  const { start, agent } = setUp({
    planner: { next: () => new Promise((resolve) => (end = resolve)) },
    model: undefined,
  });
  const { run } = start();
  await flushMicrotasks();
  run.cancel({}, { mode: 'kill' });
  const outcome = await run.outcome;
  end?.(reply('late'));
  await flushMicrotasks();
  expect(agent.lateResults.entries()).toMatchObject([{ name: 'planner', late: { state: 'finished' } }]);
  expect(outcome.text).toBe('');
});

test('an undo that does not end is in the late results too', async () => {
  const { start, clock, agent } = setUp({
    undoTimeoutMs: 100,
    tools: [tool({ undo: () => never })],
    model: createScriptedModel([[{ call: 'work', id: 'c' }], [{ until: never }]]),
  });
  const { run } = start();
  await flushMicrotasks();
  run.cancel({}, { mode: 'kill', undo: true });
  await clock.advance(100);
  expect(await run.outcome).toMatchObject({ stop: { settledAfterMs: 100, calls: [{ undo: 'unknown' }] } });
  expect(agent.lateResults.entries()).toMatchObject([{ name: 'undo of work (c)' }]);
});

test('a sub-agent’s abandoned work is named by its path', async () => {
  const inner = setUp({ name: 'inner', planner: { next: () => never }, model: undefined });
  const { start, check } = setUp({
    tools: [createAgentTool(inner.agent, { description: 'Helps.' }) as Tool],
    model: createScriptedModel([[{ call: 'inner', id: 'c', input: { task: 'x' } }], ['x']]),
  });
  const { run } = start();
  await flushMicrotasks();
  run.cancel({}, { mode: 'kill' });
  expect(await run.outcome).toMatchObject({ stop: { isClean: false, abandoned: [{ name: 'inner › planner' }] } });
  check();
});

test('a cancel is a cancel, even for a compact that receives it while the run drains', async () => {
  const { start, check } = setUp({
    compact: (_, { signal }) =>
      new Promise((__, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
  });
  const { run } = start();
  await flushMicrotasks();
  run.cancel();
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'cancelled', isComplete: false });
  expect(outcome).not.toHaveProperty('error');
  check();
});

test('a cancel inside the hook of a cancel is reported after it, and levels only rise', async () => {
  for (const inside of ['cancel-requested', 'level-changed'] as const) {
    const { recorder, agent, check, clock } = setUp({ model: createScriptedModel([['hi ', { until: never }]]) });
    const told: string[] = [];
    let once = false;
    const run = recorder.run(
      agent.run('go', {
        hooks: {
          [inside]: () => {
            if (!once) run.cancel({}, { mode: 'kill' });
            once = true;
          },
          any: (event) => told.push(describe(event)),
        },
      }),
    );
    await flushMicrotasks();
    run.cancel();
    await clock.advance(1_000);
    const outcome = await run.outcome;
    const cancels = told.filter((one) => ['accepted', 'escalated', 'drain', 'abort', 'kill'].includes(one));
    const [first, second] = inside === 'cancel-requested' ? ['escalated', 'drain'] : ['drain', 'escalated'];
    expect(cancels).toEqual(['accepted', first, second, 'kill']);
    if (outcome.status === 'cancelled')
      expect(outcome.stop.levels.map(({ level }) => level)).toEqual(['drain', 'kill']);
    check();
  }
});

test('a hook that cancels on every cancel event does not loop forever', async () => {
  const { recorder, agent, check } = setUp({ model: createScriptedModel([['hi ', { until: never }]]) });
  const answers: string[] = [];
  const run = recorder.run(
    agent.run('go', {
      hooks: {
        'cancel-requested': ({ receipt }) => {
          answers.push(receipt);
          run.cancel({}, { mode: 'kill' });
        },
      },
    }),
  );
  await flushMicrotasks();
  run.cancel();
  await run.outcome;
  expect(answers).toEqual(['accepted', 'escalated']);
  run.cancel();
  expect(answers).toEqual(['accepted', 'escalated', 'too-late']);
  check();
});

test('a reader gets no event after the end, even when its hook cancels', async () => {
  const { agent, recorder } = setUp({});
  const answers: string[] = [];
  const run = recorder.run(agent.run('go', { hooks: { 'run-end': () => answers.push(run.cancel().result) } }));
  const events: string[] = [];
  for await (const event of run.events) events.push(event.type);
  expect(answers).toEqual(['too-late']);
  expect(events.at(-1)).toBe('run-end');
});

const streaming = (parts: () => Generator<ModelPart> | AsyncGenerator<ModelPart>): Model => ({
  name: 'm',
  async *stream() {
    await Promise.resolve();
    yield* parts();
  },
});
const FINISH: ModelPart = { type: 'finish', stopReason: 'stop' };

/** CPU time of this thread, so that a busy machine does not count as our delay. */
const workMs = (): number => {
  const { user, system } = process.threadCpuUsage?.() ?? process.cpuUsage();
  return (user + system) / 1_000;
};

test.each<[string, (cancel: () => void) => void]>([
  ['a deadline', () => {}],
  ['a timer', (cancel) => setTimeout(cancel, 100)],
  [
    'a message',
    (cancel) => {
      const { port1, port2 } = new MessageChannel();
      port1.once('message', () => {
        port1.close();
        cancel();
      });
      setTimeout(() => port2.postMessage('stop'), 100);
    },
  ],
])('a stream that never waits receives %s within 50 ms of work', async (mode, ask) => {
  const dueAt = performance.now() + 100;
  let workAtDue: number | undefined;
  let heardAfter = Infinity;
  const model = streaming(function* () {
    for (;;) {
      if (performance.now() >= dueAt) workAtDue ??= workMs();
      yield { type: 'text', text: '' };
    }
  });
  // Without a rest this would never end: the stream does not.
  const hooks = { 'cancel-requested': () => (heardAfter = workAtDue === undefined ? 0 : workMs() - workAtDue) };
  const run = createAgent({
    name: 'a',
    model,
    hooks,
    budgets: mode === 'a deadline' ? { maxDurationMs: 100 } : {},
  }).run('x');
  ask(() => run.cancel({ kind: 'user' }));
  expect(await run.outcome).toMatchObject({ status: 'cancelled' });
  expect(heardAfter).toBeLessThan(50);
});

test.each<[string, () => unknown]>([
  ['is not asynchronous', () => ({ done: true, value: undefined })],
  [
    'throws',
    () => {
      throw new Error('closed already');
    },
  ],
])('a stream whose return() %s loses neither words nor usage', async (_, close) => {
  const parts: ModelPart[] = [
    { type: 'text', text: 'so far' },
    { type: 'usage', inputTokens: 7, outputTokens: 3 },
  ];
  const iterator = {
    next: () => (parts.length > 0 ? Promise.resolve({ done: false, value: parts.shift() }) : never),
    return: close,
  };
  const model = { name: 'm', stream: () => ({ [Symbol.asyncIterator]: () => iterator }) } as unknown as Model;
  const { start, clock } = setUp({ model });
  const { run } = start();
  await flushMicrotasks();
  run.cancel('enough', { mode: 'now' });
  await clock.advance(3_000);
  expect(await run.outcome).toMatchObject({
    status: 'cancelled',
    text: 'so far',
    usage: { inputTokens: 7, outputTokens: 3, isComplete: false },
  });
});

test('a reply is bounded in length, and its text so far is kept', async () => {
  const million = 'x'.repeat(1_000_000);
  const model = streaming(function* () {
    for (;;) yield { type: 'text', text: million };
  });
  const outcome = await createAgent({ name: 'a', model }).run('x').outcome;
  expect(outcome).toMatchObject({
    status: 'failed',
    error: { message: 'The reply is longer than 4000000 characters' },
    text: million.repeat(4),
  });
  const calls = streaming(function* () {
    yield { type: 'call-start', callId: 'c', tool: 't' };
    for (;;) yield { type: 'call-arguments', callId: 'c', text: million };
  });
  const asked = await createAgent({ name: 'a', model: calls }).run('x').outcome;
  expect(asked.status).toBe('failed');
});

test('a reply that is whole stays whole, whatever its stream does then', async () => {
  const after: Record<string, () => Promise<unknown>> = {
    'does not close': () => never,
    breaks: () => Promise.reject(new Error('socket hang up')),
  };
  for (const end of Object.values(after)) {
    const model = streaming(async function* () {
      yield { type: 'text', text: 'whole' };
      yield FINISH;
      await end();
    });
    const { start, clock } = setUp({ model });
    const { run } = start();
    await clock.advance(3_000);
    expect(await run.outcome).toMatchObject({ status: 'success', text: 'whole' });
  }
});

test('a reply that its provider ended with an error has failed, and its calls do not run', async () => {
  const model = createScriptedModel([['so ', { call: 'work' }, { type: 'finish', stopReason: 'error' }]]);
  const outcome = await createAgent({ name: 'a', model, tools: [tool({})] }).run('x').outcome;
  expect(outcome).toMatchObject({ status: 'failed', text: 'so ', calls: [], error: { code: 'REPLY_TRUNCATED' } });
  const planner = {
    next: () => ({ ...reply('so'), message: { ...reply('so').message, stopReason: 'error' as const } }),
  };
  expect(await createAgent({ name: 'a', planner }).run('x').outcome).toMatchObject({ status: 'failed', text: 'so' });
});

test.each<[string, unknown]>([
  ['a text without text', { type: 'text' }],
  ['a call without an id', { type: 'call-end', tool: 't', input: {} }],
  ['a call without a tool', { type: 'call-end', callId: 'c', input: {} }],
  ['null', null],
])('a model that sends %s fails the run', async (_, part) => {
  const model = streaming(function* () {
    yield part as ModelPart;
    yield FINISH;
  });
  expect(await createAgent({ name: 'a', model }).run('x').outcome).toMatchObject({ status: 'failed', calls: [] });
});

test('a model that cannot even begin fails the run, and invalid counts count nothing', async () => {
  const broken = { name: 'm', stream: () => 7 as never };
  expect(await createAgent({ name: 'a', model: broken }).run('x').outcome).toMatchObject({ status: 'failed' });
  const odd = streaming(function* () {
    yield { type: 'usage', inputTokens: Number.NaN, outputTokens: -5 };
    yield { type: 'usage', inputTokens: '7' as never, outputTokens: 3 };
    yield FINISH;
  });
  const { usage } = await createAgent({ name: 'a', model: odd }).run('x').outcome;
  expect(usage).toEqual({ inputTokens: 0, outputTokens: 3, isComplete: true });
});

test('usage of failed attempts is counted, even when a cancel ends the wait for the next', async () => {
  let attempts = 0;
  const model = streaming(function* () {
    yield { type: 'usage', inputTokens: 1_000, outputTokens: 50 };
    if (++attempts < 3) throw new ModelError('overloaded', { isRetryable: true, retryAfterMs: 10 });
    yield FINISH;
  });
  const first = setUp({ model });
  const { run } = first.start();
  await first.clock.advance(20);
  expect((await run.outcome).usage).toEqual({ inputTokens: 3_000, outputTokens: 150, isComplete: false });
  attempts = 0;
  const second = setUp({ model });
  const { run: other } = second.start();
  await second.clock.advance(5);
  other.cancel();
  expect((await other.outcome).usage).toEqual({ inputTokens: 1_000, outputTokens: 50, isComplete: false });
  attempts = -9;
  const third = setUp({ model, retry: { maxAttempts: 2 } });
  const { run: last } = third.start();
  await third.clock.advance(10);
  expect(await last.outcome).toMatchObject({ status: 'failed', usage: { inputTokens: 2_000, isComplete: false } });
});

test('an iterator that closes immediately, without a promise, loses nothing', async () => {
  const parts: ModelPart[] = [
    { type: 'usage', inputTokens: 77 },
    { type: 'text', text: 'hi' },
  ];
  const model = {
    name: 'm',
    stream: () => ({
      [Symbol.asyncIterator]: () => ({
        next: () => (parts.length > 0 ? Promise.resolve({ done: false, value: parts.shift()! }) : never),
        return: () => ({ done: true, value: undefined }) as never,
      }),
    }),
  };
  const { start, clock } = setUp({ model });
  const { run } = start();
  await flushMicrotasks();
  run.cancel();
  await clock.advance(1_000);
  expect(await run.outcome).toMatchObject({ status: 'cancelled', text: 'hi', usage: { inputTokens: 77 } });
});
