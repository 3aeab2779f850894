import { createAgent, type Tool } from '@whoa/core';
import { ModelError } from '@whoa/core/model';
import { createScriptedModel, flushMicrotasks, type ScriptedStep } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { alterStore } from '../../../../test/tasks/altered-store.ts';
import { setUp, TASK, tool } from '../../../../test/tasks/runner-set-up.ts';
import type { TaskRecord, TaskRef } from '../task.ts';
import type { RunnerOptions } from './runner.ts';
import { createRunner } from './store-runner.ts';

type Reply = readonly ScriptedStep[];

const MINUTE_MS = 60_000;

const overloaded = (rest: Partial<ModelError> = {}): Reply => [
  { fail: new ModelError('claude answered 529: Overloaded', { isRetryable: true, status: 529, ...rest }) },
];

interface Setting {
  readonly tools?: readonly Tool[];
  readonly rule?: RunnerOptions['waitForProvider'] | undefined;
}

const RULE = { maxMs: 10 * MINUTE_MS };

/** Workers on one store whose model gives these replies. They do not retry. */
function open(replies: readonly Reply[], { tools = [], ...setting }: Setting = {}) {
  const { rule } = { rule: RULE, ...setting };
  const made = setUp();
  const { world, store, events, runnerOptions } = made;
  const model = createScriptedModel(replies, { clock: world.clock });
  const start = (version = '1', own = store) => {
    const agent = createAgent({ name: 'assistant', model, tools, world, version, retry: { maxAttempts: 1 } });
    return createRunner({
      ...runnerOptions,
      store: own,
      agents: { assistant: agent },
      ...(rule && { waitForProvider: rule }),
    });
  };
  const create = async (rest: { conversation?: string; deadline?: number } = {}): Promise<TaskRef> => {
    const receipt = await store.create({ ...TASK, ...rest });
    return { tenant: 'acme', id: (receipt as { task: TaskRecord }).task.id };
  };
  const stored = async (ref: TaskRef) => (await store.get(ref))!;
  const journal = async (ref: TaskRef) =>
    (await store.read(ref)).map(({ event }) => event as { type: string } & Record<string, unknown>);
  /** Lets a worker have a go at it when its time has come. */
  const retry = async (ref: TaskRef): Promise<TaskRecord> => {
    const { stageAt = 0 } = await stored(ref);
    await world.clock.advance(Math.max(0, stageAt - world.clock.now()) + 1_000);
    return stored(ref);
  };
  return { world, store, events, model, start, create, stored, journal, retry };
}

const messages = ({ requests }: ReturnType<typeof createScriptedModel>) =>
  requests.map((request) => request.messages.map(({ role, content }) => [role, content]));

test('a task whose provider is overloaded waits without a worker, shows why, and continues', async () => {
  const { store, events, start, create, stored, retry, model } = open([overloaded(), overloaded(), ['All ', 'well.']]);
  const ref = await create();
  await using runner = start();
  await runner.serve({ concurrency: 1 });
  await flushMicrotasks();
  const waiting = await stored(ref);
  expect(waiting).toMatchObject({ status: 'init', stage: 'delayed', attempts: 0, crashes: 0 });
  const { providerWait } = waiting.activity!;
  expect(providerWait).toEqual({ error: 'claude answered 529: Overloaded', since: waiting.startedAt, attempts: 1 });
  expect((await store.list({ tenant: 'acme' })).tasks[0]!.activity?.providerWait).toEqual(providerWait);
  expect(runner.live).toBe(0);
  expect(events).toContainEqual(expect.objectContaining({ type: 'task-left', status: 'released' }));
  expect(await retry(ref)).toMatchObject({ stage: 'delayed', activity: { providerWait: { attempts: 2 } } });
  const ended = await retry(ref);
  expect(ended).toMatchObject({ status: 'success', attempts: 0, outcome: { answer: 'All well.' } });
  expect(ended.activity?.providerWait).toBeUndefined();
  expect(new Set(messages(model).map((one) => JSON.stringify(one))).size).toBe(1);
});

test('a task fails immediately without the option, or if a retry cannot help', async () => {
  const refused: Reply = [{ fail: new ModelError('claude answered 401', { isRetryable: false, status: 401 }) }];
  for (const [reply, rule] of [
    [overloaded(), undefined],
    [refused, { maxMs: MINUTE_MS }],
  ] as const) {
    const { start, create, stored } = open([reply], { rule });
    const ref = await create();
    await using runner = start();
    await runner.serve();
    await flushMicrotasks();
    expect(await stored(ref)).toMatchObject({ status: 'failed', outcome: { error: { code: 'REPLY_TRUNCATED' } } });
  }
});

test('a later turn is repeated by another worker, its calls are not, and the model gets no message about it', async () => {
  const ran: string[] = [];
  const tools = [tool('pay', (_input, { callId }) => `paid ${ran.push(callId)}`)];
  const call: Reply = ['I pay. ', { call: 'pay', input: {}, id: 'c1' }];
  const { start, create, stored, retry, model } = open([call, overloaded(), ['Paid.']], { tools });
  const ref = await create();
  const first = start();
  await first.serve();
  await flushMicrotasks();
  expect(await stored(ref)).toMatchObject({ stage: 'delayed' });
  await first[Symbol.asyncDispose]();
  await using second = start();
  await second.serve();
  expect(await retry(ref)).toMatchObject({ status: 'success', outcome: { answer: 'Paid.' } });
  expect(ran).toEqual(['c1']);
  expect(messages(model)[2]).toEqual(messages(model)[1]);
});

test('text of a turn that failed stays until the turn is repeated, and its tokens count once', async () => {
  const cut: Reply = ['Once upon ', ...overloaded()];
  const { start, create, stored, journal, retry } = open([cut, ['Once upon a time.']]);
  const ref = await create();
  await using runner = start();
  await runner.serve();
  await flushMicrotasks();
  expect((await stored(ref)).activity).toMatchObject({ usage: { isComplete: false } });
  const types = (await journal(ref)).map(({ type }) => type);
  expect(types).toEqual(['run-start', 'turn-start', 'text', 'turn-postponed']);
  const { outcome, activity } = await retry(ref);
  expect(outcome).toMatchObject({ answer: 'Once upon a time.', usage: activity!.usage });
  expect(activity).toMatchObject({ turns: 1 });
  const later = (await journal(ref)).map(({ type }) => type).slice(4);
  expect(later).toEqual(['run-start', 'turn-start', 'turn-end']);
});

test('a waiting task fails when its time is over, with the provider’s error', async () => {
  const { world, start, create, stored } = open([overloaded()], { rule: { maxMs: MINUTE_MS } });
  const ref = await create();
  const startedAt = world.clock.now();
  await using runner = start();
  await runner.serve();
  await world.clock.advance(MINUTE_MS - 1);
  expect(await stored(ref)).toMatchObject({ stage: 'delayed', activity: { providerWait: { since: startedAt } } });
  await world.clock.advance(2_000);
  const { status, outcome, endedAt } = await stored(ref);
  expect([status, outcome?.error?.message]).toEqual(['failed', 'claude answered 529: Overloaded']);
  expect(endedAt! - startedAt).toBeGreaterThanOrEqual(MINUTE_MS);
});

test('a complete reply starts the time again', async () => {
  const call: Reply = [{ call: 'look', input: {} }];
  const tools = [tool('look', () => 'seen')];
  const replies = [overloaded(), overloaded(), call, overloaded(), ['Done.']];
  const { world, start, create, retry, stored } = open(replies, { tools, rule: { maxMs: MINUTE_MS } });
  const ref = await create();
  await using runner = start();
  await runner.serve();
  await flushMicrotasks();
  await retry(ref);
  const again = await retry(ref);
  expect(again).toMatchObject({ stage: 'delayed', activity: { providerWait: { attempts: 1 } } });
  expect(world.clock.now() - again.activity!.providerWait!.since).toBeLessThan(2_000);
  await retry(ref);
  expect(await stored(ref)).toMatchObject({ status: 'success' });
});

test('waits double up to a limit, each up to twice as long at random', async () => {
  const rule = { maxMs: 10 * MINUTE_MS, backoffMs: 1_000, maxBackoffMs: 4_000 };
  const { store, start, create, retry, stored } = open([overloaded()], { rule });
  const ref = await create();
  await using runner = start();
  await runner.serve();
  await flushMicrotasks();
  const delays: number[] = [];
  while (delays.length < 5) {
    const { at, event } = (await store.read(ref)).at(-1)!;
    expect(event).toMatchObject({ type: 'turn-postponed', until: (await stored(ref)).stageAt });
    delays.push((event as { until: number }).until - at);
    await retry(ref);
  }
  for (const [i, nominal] of [1_000, 2_000, 4_000, 4_000, 4_000].entries()) {
    expect(delays[i]).toBeGreaterThanOrEqual(nominal);
    expect(delays[i]).toBeLessThanOrEqual(2 * nominal);
  }
});

test('a task waits as long as the provider asks, and fails immediately if that is too long', async () => {
  const replies = [overloaded({ retryAfterMs: 90_000 }), overloaded({ retryAfterMs: 20 * MINUTE_MS })];
  const { world, start, create, retry, stored } = open(replies);
  const ref = await create();
  await using runner = start();
  await runner.serve();
  await flushMicrotasks();
  const waitMs = (await stored(ref)).stageAt! - world.clock.now();
  expect(waitMs).toBeGreaterThanOrEqual(90_000);
  expect(waitMs).toBeLessThanOrEqual(180_000);
  expect(await retry(ref)).toMatchObject({ status: 'failed' });
});

test.each(['before', 'twice', 'with undo'] as const)(
  'a cancel while it waits settles it immediately (%s)',
  async (variant) => {
    const undone: string[] = [];
    const undo = (): void => void undone.push('pay');
    const tools = [tool('pay', () => 'paid', { effects: 'write', undo })];
    const call: Reply = [{ call: 'pay', input: {} }];
    const cut: Reply = ['Paid, ', ...overloaded()];
    const { store, start, create, stored, model } = open([call, cut, ['never']], { tools });
    const ref = await create();
    await using runner = start();
    await runner.serve();
    await flushMicrotasks();
    const receipt = await store.cancel(ref, { by: 'ann' }, { undo: variant === 'with undo' });
    expect(receipt).toMatchObject({ result: 'accepted', status: 'cancelling' });
    if (variant === 'twice') await store.cancel(ref, { by: 'bob' }, { mode: 'kill' });
    await flushMicrotasks();
    const ended = await stored(ref);
    expect(ended).toMatchObject({ status: 'cancelled', outcome: { reason: { by: 'ann' }, answer: 'Paid, ' } });
    expect(undone).toEqual(variant === 'with undo' ? ['pay'] : []);
    expect(model.requests).toHaveLength(2);
    expect(await store.cancel(ref)).toMatchObject({ result: 'too-late' });
  },
);

test('a cancel during the last request is a cancel, and its worker does not put the task off', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { store, start, create, stored } = open([[{ until: promise }, ...overloaded()]]);
  const ref = await create();
  await using runner = start();
  await runner.serve();
  await flushMicrotasks();
  await store.cancel(ref, { by: 'ann' });
  resolve();
  await flushMicrotasks();
  expect(await stored(ref)).toMatchObject({ status: 'cancelled', outcome: { reason: { by: 'ann' } } });
});

test('a cancel between the failure and the wait is carried out by the next worker, with undo', async () => {
  const undone: string[] = [];
  const tools = [tool('pay', () => 'paid', { effects: 'write', undo: () => void undone.push('pay') })];
  const { store, start, create, stored } = open([[{ call: 'pay', input: {} }], overloaded()], { tools });
  const ref = await create();
  const cancelling = alterStore(store, async (name, call) => {
    if (name === 'release') await store.cancel(ref, { by: 'ann' }, { undo: true });
    return call();
  });
  await using runner = start('1', cancelling);
  await runner.serve();
  await flushMicrotasks();
  expect(await stored(ref)).toMatchObject({ status: 'cancelled', outcome: { reason: { by: 'ann' } } });
  expect(undone).toEqual(['pay']);
});

test('a waiting task is cancelled at its deadline', async () => {
  const { world, start, create, stored } = open([overloaded()]);
  const ref = await create({ deadline: world.clock.now() + 3_000 });
  await using runner = start();
  await runner.serve();
  await world.clock.advance(6_000);
  expect(await stored(ref)).toMatchObject({ status: 'cancelled', outcome: { reason: { kind: 'deadline' } } });
});

test.each([
  ['replace', 'cancelled', ['second']],
  ['queue', 'success', ['hello', 'second']],
  ['steer', 'success', ['hello', 'second']],
] as const)('a newer message while it waits acts as ever: %s', async (policy, status, said) => {
  const { store, start, create, stored, retry, model } = open([overloaded(), ['Fine.']]);
  const ref = await create({ conversation: 'c' });
  await using runner = start();
  await runner.serve();
  await flushMicrotasks();
  await store.create({ ...TASK, conversation: 'c', input: 'second' }, { policy });
  await retry(ref);
  expect(await stored(ref)).toMatchObject({ status });
  expect((await store.list({ tenant: 'acme', status: 'init' })).tasks).toEqual([]);
  const users = model.requests.at(-1)!.messages.flatMap(({ role, content }) => (role === 'user' ? [content] : []));
  expect(users.slice(policy === 'replace' ? -1 : 0)).toEqual(said);
});

test('a worker with other instructions tells the model, and a caller of run waits for the end', async () => {
  const tools = [tool('look', () => 'seen')];
  const replies: Reply[] = [[{ call: 'look', input: {} }], overloaded(), ['Done.']];
  const { start, create, stored, retry, model } = open(replies, { tools });
  const ref = await create();
  const first = start('1');
  await first.serve();
  await flushMicrotasks();
  await first[Symbol.asyncDispose]();
  await using second = start('2');
  const response = second.runExisting(ref);
  await retry(ref);
  expect(await response).toMatchObject({ status: 'success', answer: 'Done.' });
  expect(await stored(ref)).toMatchObject({ status: 'success' });
  expect(JSON.stringify(model.requests.at(-1)!.messages)).toContain('Your instructions or tools have changed');
});

test('a worker that leaves during the next try hands it on, and the time counts from the first failure', async () => {
  const never = new Promise<void>(() => {});
  const { world, start, create, stored, retry } = open([overloaded(), [{ until: never }], overloaded()]);
  const ref = await create();
  const runner = start();
  await runner.serve();
  await flushMicrotasks();
  const { since } = (await stored(ref)).activity!.providerWait!;
  await retry(ref);
  expect(await stored(ref)).toMatchObject({ stage: 'held' });
  await runner.stop('now');
  await using next = start();
  await next.serve();
  await world.clock.advance(1_000);
  expect((await stored(ref)).activity?.providerWait).toMatchObject({ since, attempts: 2 });
});

test('the settings of waitForProvider are validated', () => {
  const { start } = open([[]], { rule: { maxMs: 0 } });
  expect(() => start()).toThrow(/waitForProvider.maxMs/);
  const unknown = open([[]], { rule: { maxMs: 1, minMs: 1 } as never });
  expect(() => unknown.start()).toThrow(/waitForProvider.minMs/);
});
