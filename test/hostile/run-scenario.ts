// Runs one case: hostile values at one or more entry points, in one scenario, stopped at one moment. Returns the problems.
import { closeOpenCalls, createCallRecords, guardAiSdkTools } from '@whoa/ai-sdk';
import {
  type Agent,
  CancellationToken,
  createAgent,
  createAgentTool,
  createConversations,
  createRuntime,
  defineTool,
  guard,
  type Message,
  type Outcome,
  type RunEvent,
  type Tool,
  type ToolContext,
} from '@whoa/core';
import type { World } from '@whoa/core/embed';
import { createLateResults } from '@whoa/core/embed';
import {
  callTools,
  type Model,
  type ModelPart,
  type Planner,
  prepareMessages,
  reply,
  type Step,
} from '@whoa/core/model';
import { checkHistory, createRecorder, createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { UNDO_MS } from '../../packages/core/src/run/undo.ts';
import type { EntryPoint, Scenario } from './entry-points.ts';
import { anything, createKit, type Kit } from './kit.ts';
import type { HostileValue } from './values.ts';

/** `never`: not stopped. `at-start`: in the hook of the first call. `working`: while it works. `unresponsive`: it ends after the run. */
export const stops = ['never', 'at-start', 'working', 'unresponsive'] as const;
export const modes = ['graceful', 'now', 'kill'] as const;

export interface HostileCase {
  readonly scenario: Scenario;
  readonly hostile: readonly { readonly entryPoint: EntryPoint; readonly value: HostileValue }[];
  readonly stop: (typeof stops)[number];
  readonly mode: (typeof modes)[number];
  readonly undo: boolean;
  /** The tool was not made by `defineTool`. */
  readonly isBare: boolean;
}

export interface CaseResult {
  readonly problems: readonly string[];
  /** It was refused where it was handed in. */
  readonly isRejected: boolean;
}

const MAX_STEPS = 400;

export async function runCase(hostileCase: HostileCase): Promise<CaseResult> {
  const harness = new Harness(hostileCase);
  let end: unknown;
  try {
    const ending = SCENARIOS[hostileCase.scenario](harness).then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    end = await harness.drive(ending);
  } catch (error) {
    end = { error };
  }
  harness.release();
  await flushMicrotasks();
  return harness.judge(end);
}

/** Everything that a scenario needs. */
class Harness {
  readonly kit: Kit = createKit();
  readonly hostileCase: HostileCase;
  readonly virtual: ReturnType<typeof createVirtualWorld> = createVirtualWorld();
  readonly world: World;
  readonly root: CancellationToken;
  readonly recorder: ReturnType<typeof createRecorder> = createRecorder();
  readonly #problems: string[] = [];
  readonly #tokens: CancellationToken[] = [];
  readonly #ends = new Map<string, number>();
  readonly #released: Promise<void>;
  /** Called when hooks are. */
  onCancel: (() => unknown) | undefined;
  onCancelCall: ((...given: unknown[]) => unknown) | undefined;
  onEnd: (() => Promise<unknown>) | undefined;
  readonly #abort: AbortController = new AbortController();
  release: () => void = () => {};
  #isArmed = false;
  #hasStarted = false;
  #isCancelled = false;
  #siblings = { started: 0, ended: 0 };

  constructor(hostileCase: HostileCase) {
    this.hostileCase = hostileCase;
    for (const { entryPoint, value } of hostileCase.hostile) entryPoint.put(this.kit, () => value.make());
    this.world = this.#createWorld();
    this.root = new CancellationToken({ name: 'root', clock: this.virtual.clock });
    this.#released = new Promise((resolve) => (this.release = resolve));
  }

  /** The clock is well-behaved until the objects that use it have been created. */
  #createWorld(): World {
    const { clock } = this.virtual;
    const hostile = this.kit.clock;
    return {
      ...this.virtual,
      clock: {
        now: () => (this.#isArmed && hostile.now ? (hostile.now(clock.now()) as number) : clock.now()),
        setTimer: (ms, callback) =>
          this.#isArmed && hostile.setTimer ? (hostile.setTimer() as Disposable) : clock.setTimer(ms, callback),
      },
    };
  }

  #isHostile(name: string): boolean {
    return this.hostileCase.hostile.some(({ entryPoint, value }) => entryPoint.name === name || value.name === name);
  }

  get hasHostileClock(): boolean {
    return this.hostileCase.hostile.some(({ entryPoint }) => entryPoint.kind === 'clock');
  }

  arm(): void {
    this.#isArmed = true;
  }

  get tools(): readonly Tool[] {
    const definition = {
      name: 'hostile',
      description: 'Does what nobody expects.',
      inputSchema: this.kit.schema,
      inputJsonSchema: { type: 'object' },
      execute: (_input: unknown, context: ToolContext) => this.work(context) as Promise<string>,
      ...(this.hostileCase.undo && { undo: () => {} }),
    };
    const victim = this.hostileCase.isBare
      ? ({ ...defineTool(definition), ...this.kit.tool } as Tool)
      : defineTool({ ...definition, ...this.kit.tool } as typeof definition);
    const sibling = defineTool({
      name: 'sibling',
      description: 'Does its work.',
      inputSchema: anything,
      inputJsonSchema: { type: 'object' },
      effects: 'read',
      execute: async () => {
        this.#siblings.started++;
        await flushMicrotasks();
        this.#siblings.ended++;
        return 'sibling';
      },
    });
    return [victim, sibling];
  }

  /** Runs the hostile tool. */
  async work(context: ToolContext): Promise<unknown> {
    const { stop } = this.hostileCase;
    this.kit.begin(context);
    if (stop === 'never' || stop === 'at-start') return this.kit.execute(context);
    this.#hasStarted = true;
    if (stop === 'unresponsive') await this.#released;
    else await Promise.race([this.#released, new Promise<void>((resolve) => context.token.onCancel(() => resolve()))]);
    return this.kit.execute(context);
  }

  get model(): Model {
    let asked = 0;
    const { kit } = this;
    return {
      name: 'hostile',
      async *stream(): AsyncGenerator<ModelPart> {
        await Promise.resolve();
        if (++asked === 1) {
          yield* kit.parts() as readonly ModelPart[];
          yield { type: 'call-end', ...kit.call } as ModelPart;
          yield { type: 'call-end', callId: 'sibling', tool: 'sibling', input: {} };
        } else yield { type: 'text', text: 'done' };
        yield { type: 'finish', stopReason: 'stop' };
      },
    };
  }

  get agent(): Agent {
    const hooks = { 'hook-error': () => {}, ...this.kit.hooks };
    const { model, tools, world } = this;
    const planned =
      'planner' in this.kit.agent
        ? {}
        : (this.kit.plan ?? this.kit.tell) === undefined
          ? { model }
          : { planner: this.planner };
    return createAgent({ name: 'agent', tools, world, hooks, ...planned, ...this.kit.agent } as never);
  }

  get planner(): Planner {
    const { plan, tell } = this.kit;
    return {
      next: (_, context) => {
        if (context.turn > 1) return reply('done');
        if (plan !== undefined) return plan() as Step;
        const told = tell!() as { readonly text?: unknown };
        context.emit(told as never);
        // The step repeats what was emitted, as it must.
        return callTools(
          [{ id: 'hostile', tool: 'hostile', input: {} }],
          typeof told.text === 'string' ? told.text : '',
        );
      },
    };
  }

  get runOptions(): object {
    const { run } = this.kit;
    // If all options are hostile, they are passed unchanged.
    if (this.kit.allOfRun !== undefined) return this.kit.allOfRun() as object;
    return { ...this.source(this.root), hooks: { any: (event: RunEvent) => this.onEvent(event) }, ...run };
  }

  /** The sources that may stop the work: a token, and a signal if that is hostile. */
  source(token: CancellationToken): { token: CancellationToken; signal?: AbortSignal } {
    return { token, ...(this.kit.abort && { signal: this.#abort.signal }) };
  }

  /** Called for every event of a call. */
  onEvent(event: { readonly type: string; readonly result?: { readonly callId: string } }): void {
    if ('runId' in event) (this.recorder.hooks.any as (event: unknown) => void)(event);
    if (event.type === 'call-end' && event.result) {
      const { callId } = event.result;
      this.#ends.set(callId, (this.#ends.get(callId) ?? 0) + 1);
    }
    if (event.type === 'call-start' && this.hostileCase.stop === 'at-start') this.cancel();
    if (event.type === 'turn-start' && this.kit.steer !== undefined) this.#isArmed = true;
  }

  cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    try {
      if (this.kit.cancelCall !== undefined) this.onCancelCall?.(...this.kit.cancelCall());
    } catch (error) {
      this.expectRejection(error);
    }
    try {
      if (this.kit.abort === undefined) this.onCancel?.();
      else this.#abort.abort(this.kit.abort());
    } catch (error) {
      this.expectRejection(error);
    }
  }

  get cancelOptions(): object {
    if (this.kit.allOfCancel !== undefined) return this.kit.allOfCancel() as object;
    return { mode: this.hostileCase.mode, undo: this.hostileCase.undo, ...this.kit.cancel };
  }

  /** Advances time until the scenario has ended, and stops it at the moment that the case names. */
  async drive<T>(ending: Promise<T>): Promise<T | 'hang'> {
    let end: T | undefined;
    ending.then((value) => (end = value)).catch(() => {});
    let forced = 0;
    for (let step = 0; step < MAX_STEPS; step++) {
      await flushMicrotasks();
      if (end !== undefined) return end;
      if (this.#hasStarted && !this.#isCancelled) this.cancel();
      else if (!this.virtual.clock.fireNext() || step > MAX_STEPS / 2) {
        if (forced++ > 5) return 'hang';
        if (forced === 3) this.release();
        this.root.cancel({}, { mode: 'kill' });
      }
    }
    return 'hang';
  }

  async judge(end: unknown): Promise<CaseResult> {
    if (end === 'hang') return { problems: ['it hangs', ...this.#problems], isRejected: false };
    const after = await this.drive((this.onEnd?.() ?? Promise.resolve()).then(() => 'over'));
    if (after === 'hang') this.#problems.push('what follows the end hangs');
    const { value, error } = end as { value?: unknown; error?: unknown };
    const isRejected = 'error' in (end as object);
    // A guard rejects as its work does.
    const isGuard = this.hostileCase.scenario === 'guard' || this.hostileCase.scenario === 'ai-sdk';
    if (isRejected && !isGuard) this.expectRejection(error);
    else if (!isRejected && !this.hasHostileClock) this.#judgeRecord(value);
    for (const token of [...this.#tokens, this.root]) token[Symbol.dispose]();
    await flushMicrotasks();
    if (this.virtual.clock.pending > 0 && !this.hasHostileClock) this.#problems.push('a timer is left');
    return { problems: this.#problems, isRejected };
  }

  /** Creates a token for work of the scenario. It is disposed with the scenario. */
  child(name: string): CancellationToken {
    const token = this.root.child(name);
    this.#tokens.push(token);
    return token;
  }

  problem(what: string): void {
    this.#problems.push(what);
  }

  /** A rejection has a message and a code, as every error of ours does. */
  expectRejection(error: unknown): void {
    // An error of the clock reaches the code that passed the clock.
    if (this.hasHostileClock) return;
    let words: unknown;
    try {
      const { code, message } = error as { code?: unknown; message?: unknown };
      if (typeof code === 'string' && typeof message === 'string' && message !== '') return;
      words = (error as Error).stack;
    } catch {
      words = 'what cannot be read';
    }
    this.#problems.push(`refused with ${String(words)}`);
  }

  #judgeRecord(value: unknown): void {
    const isSilent = this.kit.allOfRun !== undefined;
    for (const { promise, what } of isSilent ? [] : checkHistory(this.recorder.history, { undoTimeoutMs: UNDO_MS })) {
      // A sub-agent may use up its own budget, and a thrown value is stored unchanged, so it may change later.
      if (this.#isHostile('a limit of the budget') && what.endsWith('child was stopped though its run was not'))
        continue;
      if (this.#isHostile('a getter that changes') && what.includes('its outcome is not the one')) continue;
      this.#problems.push(`${promise}: ${what}`);
    }
    for (const [id, ends] of this.#ends) if (ends !== 1) this.#problems.push(`call ${id} ended ${ends} times`);
    const { started, ended } = this.#siblings;
    if (started !== ended && this.hostileCase.mode !== 'kill') this.#problems.push('a sibling was not waited for');
    this.recorder.recordToken(this.root);
    for (const outcome of findOutcomes(value)) this.#judgeOutcome(outcome);
  }

  #judgeOutcome(outcome: Outcome): void {
    const { messages, calls } = outcome;
    if (!Object.isFrozen(outcome) || !messages.every((message) => Object.isFrozen(message))) {
      this.#problems.push('the record is not frozen');
    }
    try {
      JSON.stringify([messages, calls, outcome.usage, outcome.text]);
      const prepared = prepareMessages(messages);
      JSON.stringify(prepared);
      this.#judgeText(prepared);
    } catch (error) {
      this.#problems.push(`the record cannot be read: ${String(error)}`);
    }
    if (typeof outcome.text !== 'string') this.#problems.push('the text is no text');
    for (const number of [outcome.usage.inputTokens, outcome.usage.outputTokens]) {
      if (typeof number !== 'number' || !Number.isFinite(number)) this.#problems.push(`usage of ${String(number)}`);
    }
  }

  /** Text and names that no provider accepts: half characters, invalid ids, invalid names. */
  #judgeText(prepared: readonly unknown[]): void {
    const look = (value: unknown): void => {
      if (typeof value === 'string' && !value.isWellFormed()) this.#problems.push('half a character is sent');
      if (typeof value !== 'object' || value === null) return;
      for (const [key, inner] of Object.entries(value)) {
        const isName = (key === 'callId' || key === 'tool') && 'type' in value && value.type === 'call';
        if (isName && !/^[a-zA-Z0-9_-]{1,64}$/.test(String(inner)))
          this.#problems.push(`${key} ${String(inner)} is sent`);
        if (key !== 'input' && key !== 'providerId') look(inner);
      }
    };
    for (const message of prepared) look(message);
  }
}

function findOutcomes(value: unknown): Outcome[] {
  const given = value as { outcome?: Outcome; messages?: readonly Message[]; status?: string } | undefined;
  if (given?.outcome !== undefined) return [given.outcome];
  return given !== undefined && typeof given === 'object' && 'runId' in given ? [given as Outcome] : [];
}

const SCENARIOS: Readonly<Record<Scenario, (harness: Harness) => Promise<unknown>>> = {
  wave: async (harness) => {
    const { kit, tools, world } = harness;
    const own: Record<string, (event: never) => unknown> = { ...kit.hooks };
    const any = own['any'] as ((event: unknown) => unknown) | undefined;
    const hooks = {
      'hook-error': () => {},
      ...own,
      any: (event: never) => {
        harness.onEvent(event);
        return any?.(event);
      },
    };
    const runtime = createRuntime({ tools, world, hooks, ...kit.agent } as never);
    const token = harness.child('wave');
    harness.onCancel = () => token.cancel(kit.reason as string, harness.cancelOptions);
    harness.arm();
    const calls = [
      { id: kit.call.callId, tool: kit.call.tool, input: kit.call.input },
      { id: 'sibling', tool: 'sibling', input: {} },
    ];
    harness.onCancelCall = (...given) => runtime.cancelCall(...(given as [string]));
    const results = await runtime
      .execute(calls as never, harness.source(token))
      .catch((error: { partial?: unknown }) => {
        if (error?.partial === undefined) throw error as unknown as Error;
        return error.partial;
      });
    if ((results as unknown[]).length !== 2) harness.problem(`${(results as unknown[]).length} results`);
    JSON.stringify(results);
    return undefined;
  },

  run: async (harness) => {
    const { agent, kit } = harness;
    harness.arm();
    const run = harness.recorder.run(agent.run(kit.said as string, harness.runOptions as never));
    harness.onCancel = () => run.cancel(kit.reason as string, harness.cancelOptions);
    harness.onCancelCall = (...given) => run.cancelCall(...(given as [string]));
    if (kit.steer !== undefined) steer(harness, () => run.steer(kit.steer!() as string));
    const outcome = await run.outcome;
    harness.onEnd = async () => {
      await run.undo();
    };
    return outcome;
  },

  'sub-agent': async (harness) => {
    const { agent, kit, world } = harness;
    const child: Agent = {
      ...agent,
      name: 'child',
      run: (_input, options) =>
        agent.run(
          kit.said as string,
          { ...options, ...harness.runOptions, token: options?.token, signal: undefined } as never,
        ),
    };
    const tools = [createAgentTool(child, { description: 'helps' })];
    const replies = [[{ type: 'call-end', callId: 'child', tool: 'child', input: { task: 'x' } }], []];
    let asked = 0;
    const model: Model = {
      name: 'parent',
      async *stream() {
        await Promise.resolve();
        yield* (replies[asked++] ?? []) as ModelPart[];
        yield { type: 'finish', stopReason: 'stop' };
      },
    };
    const parent = createAgent({ name: 'parent', model, tools, world, hooks: harness.recorder.hooks });
    harness.arm();
    const run = harness.recorder.run(parent.run('x', harness.source(harness.root)));
    harness.onCancel = () => run.cancel(kit.reason as string, harness.cancelOptions);
    return run.outcome;
  },

  conversation: async (harness) => {
    const { agent, kit, world } = harness;
    const recorded: Agent = {
      ...agent,
      run: (input, options) =>
        harness.recorder.run(
          agent.run(input, {
            ...options,
            hooks: {
              ...options?.hooks,
              any: (event, about) => {
                harness.onEvent(event);
                return options?.hooks?.any?.(event, about);
              },
            },
          }),
        ),
    };
    const hooks = { 'hook-error': () => {} };
    const conversations = createConversations({ agent: recorded, world, hooks, ...kit.conversations } as never);
    harness.onCancel = () => conversations.cancel('c', kit.reason as string, harness.cancelOptions);
    harness.arm();
    const { id = 'c', ...given } = kit.message;
    const options = { ...harness.source(harness.root), ...given };
    const first = conversations.processMessage(id as string, kit.said as string, options as never);
    const others = [conversations.processMessage('c', 'another', { policy: 'queue', token: harness.root })];
    if (kit.steer !== undefined) {
      others.push(conversations.processMessage('c', kit.steer() as string, { policy: 'steer', token: harness.root }));
    }
    const [reply] = await Promise.allSettled([first, ...others]);
    await conversations[Symbol.asyncDispose]();
    if (reply.status === 'rejected') throw reply.reason as Error;
    return reply.value;
  },

  guard: async (harness) => {
    const { kit } = harness;
    const token = harness.child('guard');
    harness.onCancel = () => token.cancel(kit.reason as string, harness.cancelOptions);
    harness.arm();
    const options = { name: 'guard', ...harness.source(token), lateResults: createLateResults(), ...kit.agent };
    await guard((context) => harness.work({ ...context, token: context.token } as ToolContext), options as never);
    return undefined;
  },

  'ai-sdk': async (harness) => {
    const { kit } = harness;
    const calls = createCallRecords();
    const token = harness.child('ai-sdk');
    harness.onCancel = () => token.cancel(kit.reason as string, harness.cancelOptions);
    const {
      toolCallId = 'c1',
      input = {},
      messages = [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: [{ type: 'tool-call', toolCallId, toolName: 'hostile', input }] },
      ],
    } = kit.aiSdk;
    const execute = (_input: unknown, { abortSignal }: { abortSignal?: AbortSignal }): Promise<unknown> =>
      harness.work({ token: CancellationToken.from(abortSignal!), signal: abortSignal } as unknown as ToolContext);
    const guarded = guardAiSdkTools({ hostile: { execute } } as never, { token, calls, ...kit.agent }) as unknown as {
      hostile: { execute: (input: unknown, options: object) => Promise<unknown> };
    };
    harness.onEnd = async () => {
      try {
        const closed = closeOpenCalls(messages as never, calls);
        if (Object.keys(kit.aiSdk).length === 0) JSON.stringify(closed);
      } catch (error) {
        harness.expectRejection(error);
      }
      await flushMicrotasks();
    };
    const { signal = token.signal } = harness.source(token);
    await guarded.hostile.execute(input, { toolCallId, messages, abortSignal: signal });
    return undefined;
  },
};

/** Sends a message to the run, and expects a proper error if it is rejected. */
function steer(harness: Harness, say: () => unknown): void {
  try {
    say();
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'INVALID_SETTING') harness.problem(`steer threw ${String(error)}`);
  }
}
