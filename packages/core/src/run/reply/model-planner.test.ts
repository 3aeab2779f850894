import { expect, test } from 'vitest';
import { z } from 'zod';
import { CancellationToken } from '../../stop/token/token.ts';
import { checkHistory } from '../../testing/checker.ts';
import { createRecorder } from '../../testing/recorder.ts';
import { createScriptedModel, type ScriptedReply } from '../../testing/scripted-model.ts';
import { createVirtualWorld, flushMicrotasks } from '../../testing/virtual-world.ts';
import { defineTool, type Tool } from '../../tool/tool.ts';
import { createAgent } from '../agent.ts';
import type { RunEvent } from '../report/events.ts';
import type { AgentParts } from '../setup.ts';
import { ModelError } from './model.ts';
import { createModelPlanner, type RetryOptions } from './model-planner.ts';

const never = new Promise<never>(() => {});

function setUp(replies: readonly ScriptedReply[], options: Partial<AgentParts> & { retry?: RetryOptions } = {}) {
  const world = createVirtualWorld();
  const recorder = createRecorder();
  const model = createScriptedModel(replies, { clock: world.clock });
  const lookup = defineTool({
    name: 'lookup',
    description: 'Looks.',
    inputSchema: z.object({ q: z.string() }),
    effects: 'read',
    execute: ({ q }) => `found ${q}`,
  });
  const agent = createAgent({
    name: 'test',
    model,
    instructions: 'Be brief.',
    tools: [recorder.tool(lookup as Tool)],
    world,
    hooks: recorder.hooks,
    ...options,
  });
  const root = new CancellationToken({ clock: world.clock });
  const run = recorder.run(agent.run('hello', { token: root }));
  const until = async (type: RunEvent['type']) => {
    for await (const event of run.events) if (event.type === type) return event;
    return expect.fail(`no ${type}`);
  };
  const check = () => {
    recorder.recordToken(root);
    expect(checkHistory(recorder.history)).toEqual([]);
    expect(model.open).toBe(0);
    expect(world.clock.pending).toBe(0);
  };
  return { ...world, agent, model, run, recorder, until, check };
}

test('a model is asked with instructions, tools and the prepared history, turn by turn', async () => {
  const { run, model, check } = setUp([
    ['Let me look. ', { call: 'lookup', input: { q: 'rooms' }, id: 'c1' }],
    ['Room 4 is free.'],
  ]);
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'success', text: 'Room 4 is free.', turns: 2 });
  expect(model.requests[0]).toMatchObject({
    instructions: 'Be brief.',
    tools: [{ name: 'lookup' }],
    messages: [{ role: 'user', content: 'hello' }],
  });
  expect(model.requests[1]?.messages).toEqual([
    { role: 'user', content: 'hello' },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'Let me look. ' },
        { type: 'call', callId: 'c1', tool: 'lookup', input: { q: 'rooms' } },
      ],
    },
    { role: 'tool', callId: 'c1', tool: 'lookup', content: 'found rooms', isError: false },
  ]);
  expect(outcome.messages[1]).toMatchObject({ stopReason: 'tool-use' });
  expect(outcome.usage).toMatchObject({ outputTokens: 7, isComplete: true });
  check();
});

test('cancelled mid-text: the stream is closed immediately at every level, the words so far and the usage are kept', async () => {
  for (const mode of ['graceful', 'now', 'kill'] as const) {
    const { run, model, until, check } = setUp([['One two ', { until: never }, 'three']]);
    await until('text');
    await flushMicrotasks();
    run.cancel({}, { mode });
    const outcome = await run.outcome;
    expect(outcome).toMatchObject({
      status: 'cancelled',
      text: 'One two ',
      usage: { outputTokens: 0, isComplete: false },
    });
    expect(outcome.usage.inputTokens).toBeGreaterThan(0);
    expect(outcome.messages.at(-1)).toMatchObject({ role: 'assistant', stopReason: 'aborted' });
    expect(outcome.status === 'cancelled' && outcome.stop.reply).toEqual({ characters: 8, afterMs: 0 });
    await flushMicrotasks();
    expect(model.requests).toHaveLength(1);
    check();
  }
});

test('cancelled before the first word, the transcript has no empty message and the next turn works', async () => {
  const { run, agent, model, check } = setUp([[{ until: never }], ['Hi again.']]);
  await flushMicrotasks();
  run.cancel();
  const outcome = await run.outcome;
  expect(outcome.messages).toEqual([{ role: 'user', content: 'hello' }]);
  expect((await agent.run('again', { history: outcome.messages }).outcome).status).toBe('success');
  expect(model.requests[1]?.messages).toHaveLength(2);
  check();
});

test('cancelled mid-arguments: the half call never runs and leaves no trace', async () => {
  const { run, recorder, until, check } = setUp([
    [
      'Looking. ',
      { type: 'call-start', callId: 'c', tool: 'lookup' },
      { type: 'call-arguments', callId: 'c', text: '{"q": "ro' },
      { until: never },
    ],
  ]);
  await until('call-planned');
  run.cancel();
  const outcome = await run.outcome;
  expect(outcome.calls).toEqual([]);
  expect(outcome.messages.at(-1)).toMatchObject({ content: [{ type: 'text', text: 'Looking. ' }] });
  expect(recorder.history.some((entry) => entry.seen === 'effect')).toBe(false);
  check();
});

test('cancelled after a whole call but before the reply was over: the call never runs', async () => {
  const { run, recorder, check } = setUp([[{ call: 'lookup', input: { q: 'x' } }, { until: never }]]);
  await flushMicrotasks();
  run.cancel();
  expect((await run.outcome).calls).toEqual([]);
  expect(recorder.history.some((entry) => entry.seen === 'effect')).toBe(false);
  check();
});

test('thinking is shown and, when signed, replayed', async () => {
  const { run, model, recorder, check } = setUp([
    [
      { type: 'thinking', text: 'unsigned, before' },
      { type: 'thinking-end' },
      { type: 'thinking', text: 'let ' },
      { type: 'thinking', text: 'me see' },
      { type: 'thinking-end', signature: 'sig' },
      { type: 'thinking-end', signature: 'redacted' },
      { type: 'thinking', text: 'unsigned' },
      { type: 'thinking-end' },
      { call: 'lookup', input: { q: 'x' }, id: 'c' },
    ],
    ['Done.'],
  ]);
  await run.outcome;
  expect(model.requests[1]?.messages[1]?.content).toMatchObject([
    { type: 'thinking', text: 'let me see', signature: 'sig' },
    { type: 'thinking', text: '', signature: 'redacted' },
    { type: 'call' },
  ]);
  expect(recorder.history.filter((entry) => entry.seen === 'event' && entry.event.type === 'thinking')).toHaveLength(4);
  check();
});

const refusal = (rest: Partial<ConstructorParameters<typeof ModelError>[1]> = {}) =>
  new ModelError('overloaded', { isRetryable: true, ...rest });

test('a request that may be repeated is, with growing waits', async () => {
  const { run, model, clock, recorder, check } = setUp([
    [{ fail: refusal() }],
    [{ fail: refusal({ retryAfterMs: 7_000 }) }],
    [{ fail: refusal() }],
    ['Finally.'],
  ]);
  await clock.advance(60_000);
  expect(await run.outcome).toMatchObject({ status: 'success', text: 'Finally.' });
  expect(model.requests).toHaveLength(4);
  const waits = recorder.history.flatMap((entry) =>
    entry.seen === 'event' && entry.event.type === 'turn-retry' ? [entry.event.delayMs] : [],
  );
  expect(waits[0]).toBeGreaterThanOrEqual(250);
  expect(waits[0]).toBeLessThanOrEqual(500);
  expect(waits[1]).toBe(7_000);
  expect(waits[2]).toBeGreaterThanOrEqual(1_000);
  check();
});

test('a cancel does not wait for the back-off', async () => {
  const { run, model, clock, until, check } = setUp([[{ fail: refusal() }]]);
  await until('turn-retry');
  run.cancel();
  expect(await run.outcome).toMatchObject({ status: 'cancelled', stop: { settledAfterMs: 0 } });
  await clock.advance(60_000);
  expect(model.requests).toHaveLength(1);
  check();
});

test('errors that cannot be retried fail the run: a refusal, too many attempts, too long a wait, text that was already shown', async () => {
  const cases: [ScriptedReply[], number, RetryOptions?][] = [
    [[[{ fail: refusal({ isRetryable: false, status: 400 }) }]], 1],
    [[[{ fail: refusal() }]], 2, { maxAttempts: 2, backoffMs: 1 }],
    [[[{ fail: refusal({ retryAfterMs: 61_000 }) }]], 1],
    [[['Half a ', { fail: refusal() }]], 1],
    [[[{ fail: new TypeError('a bug') }]], 1],
  ];
  for (const [replies, requests, retry = {}] of cases) {
    const { run, model, clock, check } = setUp(replies, { retry });
    await clock.advance(10);
    const outcome = await run.outcome;
    expect(outcome.status).toBe('failed');
    expect(model.requests).toHaveLength(requests);
    check();
  }
});

test('text shown before a failure is kept, and marked as cut off', async () => {
  const { run } = setUp([['Half a ', { fail: refusal() }]]);
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({
    status: 'failed',
    text: 'Half a ',
    error: { message: 'overloaded', cause: { code: 'MODEL_ERROR' } },
    usage: { isComplete: false },
  });
  expect(outcome.messages.at(-1)).toMatchObject({ stopReason: 'error' });
});

test('a silent provider is abandoned and retried', async () => {
  const { run, model, clock, check } = setUp([[{ until: never }], ['Here.']], { retry: { idleTimeoutMs: 5_000 } });
  await clock.advance(4_999);
  expect(model.requests).toHaveLength(1);
  await clock.advance(10_000);
  expect(await run.outcome).toMatchObject({ status: 'success', text: 'Here.' });
  check();
});

test('a stream that ignores its signal delays a cancel only briefly, and is named', async () => {
  const world = createVirtualWorld();
  let returned = false;
  const agent = createAgent({
    name: 'x',
    world,
    model: {
      name: 'deaf',
      async *stream() {
        try {
          yield { type: 'text', text: 'so ' } as const;
          await never;
        } finally {
          returned = true;
        }
      },
    },
  });
  const run = agent.run('x');
  for await (const event of run.events) if (event.type === 'text') break;
  run.cancel();
  await world.clock.advance(1_000);
  expect(await run.outcome).toMatchObject({
    status: 'cancelled',
    text: 'so ',
    stop: { settledAfterMs: 1_000, isClean: false, abandoned: [{ name: 'model stream', afterMs: 1_000 }] },
  });
  expect(returned).toBe(false);
  expect(agent.lateResults.entries()).toMatchObject([{ name: 'model stream', reason: { kind: 'user' } }]);
});

test('a stream that just ends is not mistaken for a whole reply', async () => {
  const world = createVirtualWorld();
  const agent = createAgent({
    name: 'x',
    world,
    model: {
      name: 'cut',
      // oxlint-disable-next-line typescript/require-await -- a stream
      async *stream() {
        yield { type: 'text', text: 'so ' } as const;
      },
    },
  });
  expect(await agent.run('x').outcome).toMatchObject({
    status: 'failed',
    text: 'so ',
    error: { message: 'The stream ended before the reply was complete' },
  });
});

test('the model gets an error for invalid arguments, and may correct them', async () => {
  const { run, model } = setUp([[{ call: 'lookup', input: '{"q": ', id: 'c' }], ['Sorry.']]);
  expect((await run.outcome).calls).toMatchObject([{ state: 'not-started', isError: true }]);
  expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: 'tool', isError: true });
});

test('an agent needs tools whose schemas can be described to a model', () => {
  const mute = { '~standard': { version: 1, vendor: 'x', validate: () => ({ value: 1 }) } } as const;
  const tool = defineTool({ name: 'mute', description: '', inputSchema: mute, execute: () => '' });
  expect(() => createAgent({ name: 'x', model: createScriptedModel([]), tools: [tool] })).toThrow(
    "the schema of 'mute' cannot describe itself",
  );
});

// The duration is not under test, and it depends on other load.
test('hundreds of turns and thousands of calls are one run', { timeout: 60_000 }, async () => {
  const step = Array.from({ length: 10 }, () => ({ call: 'lookup', input: { q: 'x' } }));
  const { run, check } = setUp([...Array.from({ length: 300 }, () => step), ['Done.']]);
  expect(await run.outcome).toMatchObject({ status: 'success', turns: 301, calls: { length: 3_000 } });
  check();
});

test('a custom planner closes its stream at any level and returns the words so far', async () => {
  const world = createVirtualWorld();
  const model = createScriptedModel([['One ', { until: never }, 'two']], { clock: world.clock });
  const planner = createModelPlanner({ model, tools: [], world });
  const token = new CancellationToken({ clock: world.clock });
  const told: string[] = [];
  const step = planner.next([], { token, turn: 1, emit: (event) => event.type === 'text' && told.push(event.text) });
  await flushMicrotasks();
  expect([told, model.open]).toEqual([['One '], 1]);
  token.cancel();
  expect(await step).toMatchObject({
    message: { stopReason: 'aborted', content: [{ text: 'One ' }], usage: { isComplete: false } },
    calls: [],
  });
  await flushMicrotasks();
  expect(model.open).toBe(0);
  token[Symbol.dispose]();
  expect(world.clock.pending).toBe(0);
});
