// A hook may cancel in the very tick in which it gets an event. Here the hook of every event does, with every ladder,
// and cancels again two events later: in the hooks of a run, of a separate runtime, and of a conversation.
import {
  type CallResult,
  CancellationToken,
  createAgent,
  createAgentTool,
  createConversations,
  createRuntime,
  defineTool,
  isCancelledError,
  type Policy,
  type Reply,
  type Run,
  type StopMode,
  type Tool,
} from '@whoa/core';
import type { CancelOptions, CancelReceipt } from '@whoa/core/embed';
import {
  checkHistory,
  createRecorder,
  createScriptedModel,
  createVirtualWorld,
  flushMicrotasks,
} from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { z } from 'zod';

const LADDERS: readonly StopMode[] = [
  'graceful',
  'now',
  'kill',
  { drainMs: 0, abortMs: 0 },
  { drainMs: 1 },
  { abortMs: 0 },
];

type Cancel = (reason: string, options: CancelOptions) => CancelReceipt;

/** Cancels at one event, and perhaps again at the next but one. */
class Trigger {
  cancel: Cancel = () => ({ result: 'too-late' });
  readonly receipts: CancelReceipt[] = [];
  readonly #at: number;
  readonly #mode: StopMode;
  readonly #second: StopMode | undefined;
  #seen = 0;

  constructor({ at, mode, second }: Case) {
    this.#at = at;
    this.#mode = mode;
    this.#second = second;
  }

  /** Whether the event it waits for has come. */
  get hasFired(): boolean {
    return this.#seen > this.#at;
  }

  readonly hear = (): void => {
    const event = this.#seen++;
    if (event === this.#at) this.#fire('first', { mode: this.#mode, undo: this.#at % 2 === 0 });
    if (this.#second !== undefined && event === this.#at + 2) this.#fire('second', { mode: this.#second });
  };

  #fire(reason: string, options: CancelOptions): void {
    this.receipts.push(this.cancel(reason, options));
  }
}

interface Case {
  readonly at: number;
  readonly mode: StopMode;
  readonly second: StopMode | undefined;
}

/** Plays a scene with a cancel at its first event, its second, and so on, until there are no more. */
async function runAll(runOne: (one: Case, trigger: Trigger) => Promise<void>): Promise<number> {
  let count = 0;
  for (const mode of LADDERS) {
    for (const second of [undefined, 'kill'] as const) {
      for (let at = 0; ; at++) {
        const one = { at, mode, second };
        const trigger = new Trigger(one);
        await runOne(one, trigger);
        count++;
        if (!trigger.hasFired) break;
      }
    }
  }
  return count;
}

function setUp(trigger: Trigger) {
  const world = createVirtualWorld();
  const recorder = createRecorder();
  const wait = (ms: number) => new Promise<void>((resolve) => world.clock.setTimer(ms, resolve));
  const tool = (name: string, execute: Tool['execute'], rest: Partial<Tool> = {}): Tool =>
    recorder.tool({ ...defineTool({ name, description: name, inputSchema: z.unknown(), execute }), ...rest } as Tool);
  const quick = tool(
    'quick',
    (_input, { defer }) => {
      defer(() => wait(20));
      return 'q';
    },
    { undo: () => Promise.reject(new Error('cannot')) },
  );
  const hearing = tool(
    'hearing',
    (_input, { signal, update }) =>
      new Promise((resolve, reject) => {
        update({ content: 'half' });
        const timer = world.clock.setTimer(50, () => resolve('whole'));
        signal.addEventListener('abort', () => {
          timer[Symbol.dispose]();
          reject(signal.reason as Error);
        });
      }),
    { undo: () => undefined },
  );
  const deaf = tool('deaf', () => wait(5_000).then(() => 'd'));
  const pay = tool('pay', () => wait(700).then(() => 'paid'), {
    whenCancelled: 'finish',
    timeoutMs: 1_000,
    undo: () => wait(10),
  });
  const approve = () => wait(5).then(() => true);
  const model = (...replies: Parameters<typeof createScriptedModel>[0][number][]) =>
    createScriptedModel(replies, { clock: world.clock });
  const helper = createAgent({
    name: 'helper',
    world,
    tools: [pay, deaf],
    model: model(['I help ', { call: 'pay', id: 'h1' }, { call: 'deaf', id: 'h2' }], ['helped']),
  });
  const tools = [quick, hearing, deaf, pay];
  const script = () =>
    model(
      ['one ', { call: 'quick', id: 'c1' }, { call: 'hearing', id: 'c2' }],
      ['two ', { call: 'pay', id: 'c3' }, { call: 'helper', id: 'c5', input: { task: 't' } }],
      ['three'],
    );
  const createLead = (hooks: (() => void)[] = []) =>
    createAgent({
      name: 'lead',
      world,
      model: script(),
      approve,
      tools: [...tools, createAgentTool(helper, { description: 'Helps.' })],
      hooks: {
        any: (event, about) => {
          recorder.hooks.any!(event, about);
          for (const hook of hooks) hook();
        },
      },
    });
  return { world, recorder, tools, approve, createLead, trigger };
}

/** Lets time pass until the work has ended, and then until nothing is left to happen. */
async function finish<T>({ world }: ReturnType<typeof setUp>, work: Promise<T>, where: string): Promise<T> {
  let isDone = false;
  const noticing = work.then(
    () => (isDone = true),
    () => (isDone = true),
  );
  for (let i = 0; i < 1_000 && !isDone; i++) {
    await flushMicrotasks();
    if (!isDone) world.clock.fireNext();
  }
  expect(isDone, `${where} ends`).toBe(true);
  await noticing;
  for (let i = 0; i < 100 && world.clock.fireNext(); i++) await flushMicrotasks();
  expect(world.clock.pending, `${where} leaves no timer`).toBe(0);
  return work;
}

interface Told {
  readonly type: string;
  readonly receipt?: string;
  readonly level?: string;
}

/** A cancel is accepted once, before any level, and levels only rise. */
function expectStops(told: readonly Told[], isCancelled: boolean, where: string): void {
  const stops = told.filter(({ type }) => type === 'cancel-requested' || type === 'level-changed');
  const accepted = stops.filter(({ receipt }) => receipt === 'accepted');
  expect(accepted.length, `${where}: accepted is told once`).toBeLessThanOrEqual(1);
  const levels = stops.flatMap(({ level }) => level ?? []);
  const order = ['drain', 'abort', 'kill'].filter((level) => levels.includes(level));
  expect(levels, `${where}: levels rise`).toEqual(order);
  if (levels.length > 0) expect(stops[0]?.receipt, where).toBe('accepted');
  expect(accepted.length === 1, `${where}: what was accepted was told`).toBe(isCancelled);
}

test('every cancel in the hooks of a run settles', { timeout: 240_000 }, async () => {
  const count = await runAll(async (one, trigger) => {
    const where = JSON.stringify(one);
    const told: Told[] = [];
    const scenario = setUp(trigger);
    const { recorder, createLead } = scenario;
    let run: Run | undefined;
    trigger.cancel = (reason, options) => run?.cancel(reason, options) ?? { result: 'too-late' };
    run = recorder.run(createLead([trigger.hear]).run('go', { hooks: { any: (event) => told.push(event) } }));
    const streamed: Told[] = [];
    const reading = (async () => {
      for await (const event of run.events) streamed.push(event);
    })();
    const outcome = await finish(scenario, run.outcome, where);
    await reading;
    expect(checkHistory(recorder.history, { undoTimeoutMs: 30_000 }), where).toEqual([]);
    expectStops(told, outcome.status === 'cancelled', where);
    expect(streamed.at(-1), `${where}: nothing follows the end`).toMatchObject({
      type: 'run-end',
      outcome: { runId: outcome.runId },
    });
    expect(told.filter(({ type }) => type === 'run-end').length, where).toBe(1);
    const after = told.slice(told.findIndex(({ type }) => type === 'run-end') + 1).map(({ type }) => type);
    expect(
      after.filter((type) => type !== 'call-ended-late'),
      `${where}: only late calls follow the end`,
    ).toEqual([]);
  });
  console.log(`hooks of a run: ${count} cases`);
});

test('every cancel in the hooks of a runtime settles', { timeout: 240_000 }, async () => {
  const count = await runAll(async (one, trigger) => {
    const where = JSON.stringify(one);
    const told: (Told & { readonly result?: CallResult })[] = [];
    const scenario = setUp(trigger);
    const { world, tools, approve, recorder } = scenario;
    const token = new CancellationToken({ clock: world.clock });
    trigger.cancel = (reason, options) => token.cancel(reason, options);
    const runtime = createRuntime({
      tools,
      approve,
      world,
      concurrency: 2,
      hooks: {
        any: (event) => {
          told.push(event);
          trigger.hear();
        },
      },
    });
    const calls = ['quick', 'hearing', 'pay', 'deaf', 'quick'].map((name, i) => ({
      id: `c${i}`,
      tool: name,
      input: {},
    }));
    const last = { id: 'last', tool: 'hearing', input: {}, dependsOn: ['c0'] };
    let isCancelled = false;
    const executing = runtime.execute([...calls, last], { token }).catch((error: unknown) => {
      if (!isCancelledError(error)) throw error;
      isCancelled = true;
      return error.partial as CallResult[];
    });
    const results = await finish(scenario, executing, where);
    token[Symbol.dispose]();
    const ends = told.flatMap(({ type, result }) => (type === 'call-end' && result ? [result.callId] : []));
    expect(ends.toSorted(), `${where}: every call ends once`).toEqual(results.map(({ callId }) => callId).toSorted());
    const started = new Set(
      recorder.history.flatMap((entry) => (entry.seen === 'effect' && entry.phase === 'begin' ? [entry.callId] : [])),
    );
    for (const { callId, state } of results)
      expect(started.has(callId), `${where}: ${callId} is ${state}`).toBe(state !== 'not-started');
    expectStops(told, isCancelled, where);
  });
  console.log(`hooks of a runtime: ${count} cases`);
});

test.each<Policy>(['replace', 'queue', 'steer', 'reject'])(
  'every cancel in the hooks of a conversation settles, with the policy %s',
  { timeout: 240_000 },
  async (policy) => {
    const count = await runAll(async (one, trigger) => {
      const where = JSON.stringify(one);
      const scenario = setUp(trigger);
      const { world, recorder, createLead } = scenario;
      const told = new Map<string | undefined, Told[]>();
      let runs = 0;
      const agent = createLead();
      const counted = {
        ...agent,
        run: (...args: Parameters<typeof agent.run>) => {
          expect(++runs, `${where}: one run at a time`).toBe(1);
          const run = recorder.run(agent.run(...args));
          return { ...run, outcome: run.outcome.finally(() => runs--) };
        },
      };
      const conversations = createConversations({
        agent: counted,
        world,
        hooks: {
          any: (event) => {
            const runId = 'runId' in event ? event.runId : undefined;
            told.set(runId, [...(told.get(runId) ?? []), event]);
            trigger.hear();
          },
        },
      });
      trigger.cancel = (reason, options) => conversations.cancel('c', reason, options);
      const first = conversations.processMessage('c', 'one');
      await flushMicrotasks();
      const second = conversations.processMessage('c', 'two', { policy });
      const replies: Reply[] = await finish(scenario, Promise.all([first, second]), where);
      expect(checkHistory(recorder.history, { undoTimeoutMs: 30_000 }), where).toEqual([]);
      expect(conversations.cancel('c').result, where).toBe('too-late');
      const outcomes = replies.flatMap(({ outcome }) => outcome ?? []);
      for (const { runId, status } of outcomes) expectStops(told.get(runId) ?? [], status === 'cancelled', where);
      const wasAccepted = trigger.receipts[0]?.result === 'accepted';
      if (wasAccepted)
        expect(
          replies.some(({ status }) => status === 'cancelled' || status === 'superseded'),
          where,
        ).toBe(true);
    });
    console.log(`hooks of a conversation, ${policy}: ${count} cases`);
  },
);
