import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { type Agent, createAgent, createAgentTool, defineTool } from '@whoa/core';
import { createScriptedModel, createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { createMemoryStore, createRunner, createTaskApprovals, type RunnerOptions, type TaskStore } from '@whoa/tasks';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { type Around, alterStore } from '../../../../../test/tasks/altered-store.ts';
import { claimFor } from '../../../../../test/tasks/claimed.ts';
import { readValue } from '../../../../../test/telemetry/read-value.ts';
import { createPrometheusMetrics } from './prometheus.ts';
import { createTelemetry, type TelemetryOptions } from './telemetry.ts';
import type { TelemetryLog } from './work-counts.ts';

const TASK = { tenant: 'acme', agent: 'assistant', input: 'hello', conversation: 'c1' };
const NOTHING = z.object({}).loose();
const look = defineTool({
  name: 'look',
  description: 'Looks.',
  inputSchema: NOTHING,
  effects: 'read',
  execute: () => Promise.resolve('seen'),
});

/** A runner whose spans and metrics are kept by the real SDK. */
async function setUp(
  work: RunnerOptions['agents'][string],
  options: TelemetryOptions & Pick<RunnerOptions, 'hooks' | 'approvals'> & { readonly around?: Around } = {},
) {
  const world = createVirtualWorld();
  const exporter = new InMemorySpanExporter();
  const tracerProvider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  const logs: TelemetryLog[] = [];
  const { hooks, approvals, around = (_name, call) => call(), ...rest } = options;
  const prometheus = await createPrometheusMetrics();
  const telemetry = createTelemetry({ tracerProvider, prometheus, world, onLog: (log) => logs.push(log), ...rest });
  const store = createMemoryStore({ world });
  const runner = createRunner(
    telemetry.observe({
      store: alterStore(store, around),
      agents: { assistant: work },
      world,
      ...(hooks && { hooks }),
      ...(approvals && { approvals }),
    }),
  );
  const spans = () => exporter.getFinishedSpans();
  const { read } = prometheus;
  return { world, telemetry, read, store, runner, logs, spans, tracerProvider };
}

const agentWith = (options: Partial<Parameters<typeof createAgent>[0]>): Agent =>
  createAgent({ name: 'assistant', model: createScriptedModel([['Hi.']]), ...options } as Parameters<
    typeof createAgent
  >[0]);

const getName = (span: ReadableSpan): string => span.name;
const findParent = (span: ReadableSpan, all: readonly ReadableSpan[]): string | undefined =>
  all.find((one) => one.spanContext().spanId === span.parentSpanContext?.spanId)?.name;

test('a task, its run, its calls and the runs inside them are one tree of spans, named by the conventions', async () => {
  const helper = agentWith({
    name: 'helper',
    model: createScriptedModel([[{ call: 'look' }], ['Found.']]),
    tools: [look],
  });
  const ask = createAgentTool(helper, { name: 'ask', description: 'Asks the helper.' });
  const model = createScriptedModel([[{ call: 'ask', input: { task: 'Look.' } }], ['All is well.']]);
  const { runner, spans } = await setUp(agentWith({ model, tools: [ask] }));
  const { id } = await runner.run(TASK);
  await runner.stop();
  const all = spans();
  expect(all.map((span) => [getName(span), findParent(span, all)])).toEqual([
    ['execute_tool look', 'invoke_agent helper'],
    ['invoke_agent helper', 'execute_tool ask'],
    ['execute_tool ask', 'invoke_agent assistant'],
    ['invoke_agent assistant', 'whoa.task assistant'],
    ['whoa.task assistant', undefined],
  ]);
  expect(new Set(all.map((span) => span.spanContext().traceId)).size).toBe(1);
  expect(all[0]!.attributes).toMatchObject({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'look',
    'gen_ai.tool.call.id': expect.any(String) as string,
    'whoa.call.state': 'finished',
  });
  expect(all[3]!.attributes).toMatchObject({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'assistant',
    'gen_ai.conversation.id': 'c1',
    'gen_ai.usage.output_tokens': expect.any(Number) as number,
    'whoa.run.status': 'success',
  });
  expect(all[4]!.attributes).toMatchObject({
    'whoa.task.id': id,
    'whoa.tenant': 'acme',
    'whoa.task.status': 'success',
  });
  // Nothing that a user, a model or a tool wrote.
  expect(JSON.stringify(all.map(({ name, attributes, events }) => [name, attributes, events]))).not.toMatch(
    /hello|seen|well/,
  );
});

test('a cancel is timed from the request to the end, and its leftovers are counted', async () => {
  const started = Promise.withResolvers<void>();
  const back = Promise.withResolvers<string>();
  const execute = (): Promise<string> => {
    started.resolve();
    return back.promise;
  };
  const deaf = defineTool({
    name: 'deaf',
    description: 'Never listens.',
    inputSchema: NOTHING,
    effects: 'read',
    execute,
  });
  const model = createScriptedModel([[{ call: 'deaf' }]]);
  const { world, runner, store, telemetry, read, spans, logs } = await setUp(agentWith({ model, tools: [deaf] }));
  const { id, response } = await runner.start(TASK);
  await started.promise;
  await world.clock.advance(1_000);
  await telemetry.observeStore(store).cancel({ tenant: 'acme', id }, { message: 'enough' }, { mode: 'now' });
  await world.clock.advance(60_000);
  expect((await response).status).toBe('cancelled');
  const text = await read();
  expect(readValue(text, 'whoa.cancel.requested', '{result="accepted"}')).toBe(1);
  expect(text).toContain('whoa_cancel_observed_seconds_count 1');
  expect(text).toContain('whoa_cancel_settled_seconds_count 1');
  expect(readValue(text, 'whoa.work.abandoned')).toBe(1);
  expect(readValue(text, 'whoa.work.late')).toBe(0);
  const cancels = spans().filter(({ name }) => name === 'whoa.cancel');
  expect(cancels.map((span) => findParent(span, spans()))).toEqual(['invoke_agent assistant', 'whoa.task assistant']);
  expect(cancels[0]!.events.map(({ name }) => name)).toEqual(['whoa.level.abort', 'whoa.level.kill']);
  expect(cancels[0]!.attributes).toMatchObject({ 'whoa.cancel.kind': 'user', 'whoa.stop.clean': false });
  back.resolve('after all');
  await flushMicrotasks();
  expect(readValue(await read(), 'whoa.work.late')).toBe(1);
  expect(logs.map(({ event, taskId }) => [event, taskId])).toEqual([
    ['work-abandoned', id],
    ['work-late', id],
  ]);
  await runner.stop('now');
});

test('a task that was cancelled before its start, twice and after its end is counted with its real outcome', async () => {
  const { runner, store, telemetry, read } = await setUp(() => Promise.resolve('done'));
  const seen = telemetry.observeStore(store);
  const created = (await seen.create(TASK)) as { task: { id: string } };
  const ref = { tenant: 'acme', id: created.task.id };
  for (let i = 0; i < 2; i++) await seen.cancel(ref);
  await runner.run(TASK);
  await runner.stop();
  const text = await read();
  expect(readValue(text, 'whoa.cancel.requested', '{result="accepted"}')).toBe(1);
  expect(readValue(text, 'whoa.cancel.requested', '{result="too-late"}')).toBe(1);
  expect(readValue(text, 'whoa.claim.ended', '{agent="assistant",status="success"}')).toBe(1);
  expect(text).not.toContain('whoa_cancel_settled_seconds');
});

test('a task that is created under a span in the same process is inside it, and its span is active in the work', async () => {
  const contexts = new AsyncLocalStorageContextManager().enable();
  context.setGlobalContextManager(contexts);
  onTestFinished(() => {
    context.disable();
    contexts.disable();
  });
  const seen: unknown[] = [];
  const { runner, spans, tracerProvider } = await setUp(() => {
    seen.push((trace.getActiveSpan() as unknown as ReadableSpan).name);
    return Promise.resolve('done');
  });
  const { id } = await tracerProvider.getTracer('test').startActiveSpan('request', async (request) => {
    const response = await runner.run(TASK);
    request.end();
    return response;
  });
  await runner.stop();
  expect(spans().map((span) => [span.name, findParent(span, spans())])).toEqual([
    ['whoa.task assistant', 'request'],
    ['request', undefined],
  ]);
  expect(spans()[1]!.events).toMatchObject([{ name: 'whoa.task.created', attributes: { 'whoa.task.id': id } }]);
  expect(seen).toEqual(['whoa.task assistant']);
});

test('failed work is an error by its code, without its message', async () => {
  const fails = (): Promise<never> =>
    Promise.reject(Object.assign(new Error('the password is x'), { code: 'NO_ROOM' }));
  const { runner, spans, logs } = await setUp(fails);
  await runner.run(TASK);
  await runner.stop();
  const [span] = spans();
  expect(span).toMatchObject({ name: 'whoa.task assistant', status: { code: SpanStatusCode.ERROR } });
  expect(span!.attributes).toMatchObject({ 'error.type': 'NO_ROOM', 'whoa.task.status': 'failed' });
  expect(JSON.stringify([span!.attributes, logs])).not.toContain('password');
  expect(logs).toEqual([{ level: 'warn', event: 'task-failed', taskId: expect.any(String) as string }]);
});

test('the tokens of work that is not an agent are counted from its outcome', async () => {
  const usage = { inputTokens: 7, outputTokens: 3, isComplete: false };
  const { runner, read } = await setUp({ runTask: () => Promise.resolve({ status: 'success', usage }) });
  await runner.run(TASK);
  await runner.stop();
  const text = await read();
  expect(readValue(text, 'whoa.model.tokens', '{agent="assistant",type="input"}')).toBe(7);
  expect(readValue(text, 'whoa.model.tokens', '{agent="assistant",type="output"}')).toBe(3);
});

test('a refused input ends its span', async () => {
  const { telemetry, spans } = await setUp(() => Promise.resolve('unused'));
  expect(() => telemetry.observeAgent(agentWith({})).run(undefined as never)).toThrow('input');
  expect(spans()).toMatchObject([{ name: 'invoke_agent assistant', status: { code: SpanStatusCode.ERROR } }]);
});

/** The operations with which a worker gives up its tasks. */
const LAST_WORDS: ReadonlySet<string> = new Set(['heartbeat', 'release']);

test('rings, waits, beats, freed and lost tasks are measured where they happen', async () => {
  let isDown = false;
  const end = Promise.withResolvers<string>();
  const { world, runner, store, read, logs } = await setUp(() => end.promise, {
    // A worker that can release its tasks has lost nothing.
    around: (name, call) => (isDown && LAST_WORDS.has(name) ? Promise.reject(new Error('down')) : call()),
  });
  const tenant = 'acme';
  const left = (await store.create({ tenant, agent: 'assistant', input: 'left' })) as { task: { id: string } };
  await claimFor(store, left.task.id, { worker: 'dead', leaseMs: 1_000 });
  await runner.serve({ concurrency: 4 });
  // Now it waits for a notification.
  await world.clock.advance(1);
  await store.create({ tenant, agent: 'assistant', input: 'later', notBefore: world.clock.now() + 2_000 });
  await store.create({ tenant, agent: 'assistant', input: 'now' });
  await world.clock.advance(40_000);
  const text = await read();
  expect(readValue(text, 'whoa.task.running')).toBe(3);
  expect(readValue(text, 'whoa.task.reclaimed')).toBe(1);
  expect(text).toContain('whoa_task_wait_seconds_count{agent="assistant"} 2');
  expect(text).toMatch(/whoa_take_wakeup_seconds_count [1-9]/);
  expect(Number(/whoa_heartbeat_delay_seconds_count (\d+)/.exec(text)![1])).toBeGreaterThan(2);
  expect(text).toContain('whoa_heartbeat_delay_seconds_sum 0\n');
  isDown = true;
  await world.clock.advance(60_000);
  const after = await read();
  expect(readValue(after, 'whoa.claim.ended', '{agent="assistant",status="lost"}')).toBeGreaterThanOrEqual(3);
  expect(readValue(after, 'whoa.store.errors', '{operation="other"}')).toBeGreaterThan(0);
  expect(logs.filter(({ event }) => event === 'task-lost').length).toBeGreaterThanOrEqual(3);
  isDown = false;
  end.resolve('too late');
  const stopped = runner.stop('kill');
  await world.clock.advance(60_000);
  await stopped;
  expect(readValue(await read(), 'whoa.task.running')).toBe(0);
});

test('how long people take is measured by how a question closed, from asked to answered', async () => {
  const approvals = createTaskApprovals({ parkAfterMs: 0, timeoutMs: 7_200_000 });
  const save = defineTool({
    name: 'save',
    description: 'Saves.',
    inputSchema: NOTHING,
    effects: 'write',
    execute: () => 'ok',
  });
  const calls = ['c1', 'c2'].map((id) => ({ call: 'save', id, input: {} }));
  const model = createScriptedModel([calls, ['Done.']]);
  const agent = agentWith({ model, tools: [save], approve: approvals.approve });
  const { world, runner, store, read } = await setUp(agent, { approvals });
  await store.create(TASK);
  await runner.serve();
  const question = async () => (await store.questions({ tenant: 'acme' })).questions[0]!;
  await world.clock.advance(3_600_000);
  await store.answer({ tenant: 'acme', id: (await question()).id }, { value: { decision: 'yes' }, by: 'ann' });
  await world.clock.advance(7_300_000);
  await runner.stop();
  const text = await read();
  for (const [end, seconds] of [
    ['answered', 3_600],
    ['expired', 7_200],
  ] as const) {
    expect(text).toContain(`whoa_question_wait_seconds_count{kind="approve",end="${end}"} 1`);
    const sum = Number(
      new RegExp(`whoa_question_wait_seconds_sum\\{kind="approve",end="${end}"\\} (\\S+)`).exec(text)![1],
    );
    expect(Math.abs(sum - seconds)).toBeLessThan(60);
  }
});

const OF_ASSISTANT = '{agent="assistant"}';

test('figures of the store are read at intervals, even after the store failed, and not after the end', async () => {
  let isDown = false;
  const { world, store, telemetry, read, logs } = await setUp(() => Promise.resolve('unused'));
  const around: Around = (_name, call) => (isDown ? Promise.reject(new Error('down')) : call());
  const ready = async () => readValue(await read(), 'whoa.ready.tasks', OF_ASSISTANT);
  const oldest = async () => readValue(await read(), 'whoa.oldest.ready', OF_ASSISTANT);
  const watching = await telemetry.watchStore(alterStore(store, around));
  await flushMicrotasks();
  expect(await ready()).toBeUndefined();
  expect(readValue(await read(), 'whoa.open.questions')).toBe(0);
  await store.create(TASK);
  await store.create({ ...TASK, tenant: 'globex' });
  await world.clock.advance(15_000);
  expect(await ready()).toBe(2);
  expect(await oldest()).toBe(15);
  isDown = true;
  await world.clock.advance(15_000);
  expect(logs[0]).toMatchObject({ event: 'store-error' });
  isDown = false;
  await world.clock.advance(15_000);
  expect(await oldest()).toBe(45);
  const [first] = (await store.list({ tenant: TASK.tenant })).tasks;
  await store.cancel(first!);
  const [other] = (await store.list({ tenant: 'globex' })).tasks;
  await store.cancel(other!);
  await world.clock.advance(15_000);
  // No longer waiting is 0, not what it was.
  expect([await ready(), await oldest()]).toEqual([0, 0]);
  for (let i = 0; i < 2; i++) await watching[Symbol.asyncDispose]();
  await store.create(TASK);
  await world.clock.advance(60_000);
  expect(await ready()).toBe(0);
});

test('every end is counted once, in every process alike, also those that no worker wrote', async () => {
  const { world, store, telemetry, read } = await setUp(() => Promise.resolve('unused'));
  await using stack = new AsyncDisposableStack();
  const prometheus = await createPrometheusMetrics();
  stack.use(await createTelemetry({ world, prometheus }).watchStore(store));
  stack.use(await telemetry.watchStore(store));
  const lost = await create(store);
  while ((await store.get(lost))?.endedAt === undefined) {
    await store.claim(lost.id, { session: crypto.randomUUID(), worker: 'dead', leaseMs: 1_000, claim: 'c' });
    for (let i = 0; i < 2; i++) {
      await world.clock.advance(1_000);
      await store.sweep();
    }
    await world.clock.advance(120_000);
  }
  await store.cancel(await create(store), { kind: 'deadline' });
  const parked = await create(store);
  const by = await claimFor(store, parked.id, { worker: 'w', leaseMs: 86_400_000 });
  const asks = [{ id: `${parked.id}.1`, callId: 'c1', kind: 'approve' as const, shown: 'digest' }];
  await store.append(by, { after: 0, events: ['asked'], asks });
  const { position, orderNumber } = (await store.get(parked))!;
  await store.park(by, { position, orderNumber });
  await world.clock.advance(32_000);
  for (const text of [await read(), await prometheus.read()]) {
    expect(text.split('\n').filter((line) => line.startsWith('whoa_task_ended_total'))).toEqual([
      'whoa_task_ended_total{agent="assistant",status="failed",code="WORKERS_LOST"} 1',
      'whoa_task_ended_total{agent="assistant",status="cancelled",code="deadline"} 1',
    ]);
    expect(readValue(text, 'whoa.parked.tasks')).toBe(1);
    expect(readValue(text, 'whoa.asking.tasks')).toBe(0);
    expect(readValue(text, 'whoa.open.questions')).toBe(1);
    expect(readValue(text, 'whoa.oldest.question')).toBeGreaterThan(14);
    expect(readValue(text, 'whoa.feed.age', '{consumer="totals"}')).toBe(0);
  }
});

async function create(store: TaskStore): Promise<{ readonly tenant: string; readonly id: string }> {
  const receipt = await store.create(TASK);
  if (receipt.result !== 'created') throw new Error(receipt.result);
  return { tenant: TASK.tenant, id: receipt.task.id };
}

test('a process that starts while another one reads the store has its first figures a second later', async () => {
  const { world, store, telemetry, read } = await setUp(() => Promise.resolve('unused'));
  await store.create(TASK);
  const reading = Promise.withResolvers<void>();
  const slow: Around = (name, call) => (name === 'queues' ? reading.promise.then(call) : call());
  await using stack = new AsyncDisposableStack();
  const other = createTelemetry({ world, prometheus: await createPrometheusMetrics() });
  stack.use(await other.watchStore(alterStore(store, slow)));
  stack.use(await telemetry.watchStore(store));
  await flushMicrotasks();
  expect(readValue(await read(), 'whoa.ready.tasks', OF_ASSISTANT)).toBeUndefined();
  reading.resolve();
  await world.clock.advance(1_000);
  expect(readValue(await read(), 'whoa.ready.tasks', OF_ASSISTANT)).toBe(1);
});

test('an end waits for the last spans, but not for ever', async () => {
  const asked: string[] = [];
  const stuck = { getTracer: () => undefined, forceFlush: () => new Promise(() => asked.push('flush')) };
  const { world, telemetry } = await setUp(() => Promise.resolve('unused'), {
    tracerProvider: stuck as unknown as TracerProvider,
  });
  const ended = telemetry[Symbol.asyncDispose]();
  await world.clock.advance(2_000);
  await ended;
  expect(asked).toEqual(['flush']);
});

test('an observed agent keeps its version', async () => {
  const { telemetry } = await setUp(() => Promise.resolve('unused'));
  expect(telemetry.observeAgent(agentWith({ version: '7' })).version).toBe('7');
});

test('a tracer, a logger and hooks that throw disturb nothing, and are warned of once', async () => {
  const warnings: Error[] = [];
  const listeners = process.listeners('warning');
  process.removeAllListeners('warning');
  process.on('warning', (warning) => warnings.push(warning));
  const broken = {
    getTracer: () => ({
      startSpan: () => {
        throw new Error('the tracer failed');
      },
    }),
  } as unknown as TracerProvider;
  const heard: string[] = [];
  const { runner, telemetry } = await setUp(agentWith({}), {
    tracerProvider: broken,
    onLog: () => Promise.reject(new Error('the logger failed')),
    hooks: { 'task-end': ({ status }) => heard.push(status), any: ({ type }) => heard.push(type) },
  });
  expect((await runner.run(TASK)).status).toBe('success');
  telemetry.log({ level: 'info', event: 'store-error' });
  await runner.stop();
  await new Promise((resolve) => setImmediate(resolve));
  process.removeAllListeners('warning');
  for (const listener of listeners) process.on('warning', listener as never);
  expect(heard).toEqual(['task-start', 'success', 'task-end']);
  expect(warnings).toHaveLength(1);
});
