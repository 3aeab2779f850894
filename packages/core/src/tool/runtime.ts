import { type AppContext, contextRule } from '../stop/app-context.ts';
import { CLEANUP_MS } from '../stop/bounded/cleanup.ts';
import { createEffectKeys } from '../stop/bounded/effect-key.ts';
import { createLateResults, type LateResults, lateResultsRule } from '../stop/bounded/late-results.ts';
import { systemWorld, type World, worldRule } from '../stop/clock.ts';
import { CancelledError } from '../stop/errors.ts';
import { createHookDispatcher, type Hooks } from '../stop/hooks.ts';
import { LoopYielder } from '../stop/loop-yielder.ts';
import * as settings from '../stop/settings.ts';
import { emitStopEvents } from '../stop/stop-events.ts';
import type { CancelReasonLike } from '../stop/token/reason.ts';
import { type CancelOptions, readCancelOptions } from '../stop/token/receipt.ts';
import { shieldMs } from '../stop/token/shield.ts';
import { type CancelSource, SOURCE_RULES, tokenFor } from '../stop/token/source.ts';
import { waitUntilLevel } from '../stop/wait.ts';
import { type AnswerCall, type Approve, type BeforeCall, type Call, type CallScope, readCalls } from './call/call.ts';
import { lost } from './call/ending.ts';
import { ExclusiveKeys } from './call/exclusive.ts';
import { type CallCancelReceipt, LiveCall } from './call/live-call.ts';
import { NESTED, type ParentRun, type WithNested } from './call/nested.ts';
import { runCall } from './call/start.ts';
import type { RuntimeEvent } from './events.ts';
import type { Redact } from './redact.ts';
import type { CallResult } from './result.ts';
import { DEFAULTS, type Tool, toolsRule } from './tool.ts';
import { PlanError, planWaves } from './waves.ts';

export interface RuntimeOptions {
  readonly tools: readonly Tool[];
  /** How many calls of a wave run at the same time. */
  readonly concurrency?: number | undefined;
  readonly approve?: Approve | undefined;
  /** Gets the answers to calls of tools with `answeredBy`. Without it they are not started. */
  readonly answer?: AnswerCall | undefined;
  readonly beforeCall?: BeforeCall | undefined;
  /** Removes secrets from results before observers, the model or a journal see them. Inputs are never changed. */
  readonly redact?: Redact | undefined;
  /** Passed to tools, hooks and `approve`. */
  readonly context?: AppContext | undefined;
  /** Identifies the work that the calls belong to, for tools that keep something for it. */
  readonly workId?: string | undefined;
  readonly hooks?: Hooks<RuntimeEvent> | undefined;
  /** Whether hooks receive cancels too. Defaults to true. A run reports its own. */
  readonly emitsCancelEvents?: boolean | undefined;
  readonly lateResults?: LateResults | undefined;
  /** The owner's name in the late results: entries are `owner/call`. */
  readonly owner?: string | undefined;
  readonly cleanupTimeoutMs?: number | undefined;
  /** Shared by runtimes whose calls must respect each other's exclusive keys. */
  readonly keys?: ExclusiveKeys | undefined;
  readonly world?: World | undefined;
}

/** Runs calls in waves. It outlives single executions, so an abandoned call keeps its exclusive keys. */
export interface Runtime {
  readonly tools: ReadonlyMap<string, Tool>;
  readonly lateResults: LateResults;
  /**
   * Runs the calls and returns their results in the order of the calls. The token is checked before every wave and
   * every call, never inside one. When cancelled it rejects with a `CancelledError` whose `partial` holds one result
   * for every call, including those that were not started.
   */
  execute(calls: readonly Call[], options?: CancelSource): Promise<CallResult[]>;
  /** Stops one call, by default with `now`; the others continue. One that has started and must `finish` refuses. */
  cancelCall(callId: string, reason?: CancelReasonLike, options?: CancelOptions): CallCancelReceipt;
}

/** The key of calls that must not start, by id, with the reasons. Between parts of this package. */
export const REFUSED: unique symbol = Symbol('refused');

export type ExecuteOptions = CancelSource & { readonly [REFUSED]?: ReadonlyMap<string, string> | undefined };

const CONCURRENCY = 16;

/** How many calls that return immediately start before the clock is read: reading it costs as much as some of them. */
const REST_EVERY = 64;

/** The settings that agents share with runtimes. */
export const SHARED_RULES: settings.Rules<
  Pick<RuntimeOptions, 'concurrency' | 'approve' | 'answer' | 'hooks' | 'lateResults' | 'cleanupTimeoutMs' | 'world'>
> = {
  concurrency: settings.count(),
  approve: settings.callback,
  answer: settings.callback,
  hooks: settings.hooks,
  lateResults: lateResultsRule,
  cleanupTimeoutMs: shieldMs,
  world: worldRule,
};

const RUNTIME_RULES: settings.Rules<RuntimeOptions> = {
  ...SHARED_RULES,
  tools: settings.required(toolsRule),
  beforeCall: settings.callback,
  redact: settings.callback,
  context: contextRule,
  workId: settings.nonEmptyText,
  emitsCancelEvents: settings.flag,
  owner: settings.nonEmptyText,
  keys: settings.rule('ExclusiveKeys', (value) => value instanceof ExclusiveKeys),
};

/**
 * Creates a runtime: it runs calls of some tools in waves, without a model.
 *
 * @returns The runtime.
 * @throws {@link SettingsError} when an option is not valid, or two tools have the same name.
 *
 * @example
 * ```ts
 * import { createRuntime } from '@whoa/core';
 *
 * const runtime = createRuntime({ tools: toolsFor('/srv/project') });
 * const results = await runtime.execute([{ id: 'one', tool: 'read', input: { path: 'README.md' } }], { token });
 * ```
 */
export function createRuntime(options: RuntimeOptions): Runtime {
  return buildRuntime(settings.readSettings<RuntimeOptions>(options, RUNTIME_RULES));
}

/** Builds a runtime from settings that have been checked. */
export function buildRuntime(options: WithNested<RuntimeOptions, ParentRun>): Runtime {
  const {
    concurrency = CONCURRENCY,
    emitsCancelEvents = true,
    owner = 'runtime',
    world = systemWorld,
    lateResults = createLateResults(),
  } = options;
  const tools = new Map(options.tools.map((tool) => [tool.name, tool]));
  const live = new Map<string, LiveCall>();
  const { context } = options;
  const dispatch = options.hooks && createHookDispatcher<RuntimeEvent>(options.hooks);
  const emit = dispatch && ((event: RuntimeEvent) => dispatch(event, { context }));
  const shared: Omit<CallScope, 'token'> = {
    emit,
    approve: options.approve,
    answer: options.answer,
    beforeCall: options.beforeCall,
    redact: options.redact,
    context,
    workId: options.workId,
    lateResults,
    lateKey: (callId) => `${owner}/${callId}`,
    keys: options.keys ?? new ExclusiveKeys(),
    parent: options[NESTED],
    forget: (callId) => live.delete(callId),
    cleanupTimeoutMs: options.cleanupTimeoutMs ?? CLEANUP_MS,
    createEffectKey: createEffectKeys(() => world.createId()),
  };

  return {
    tools,
    lateResults,
    async execute(calls, executeOptions = {}) {
      const source = settings.readSettings<ExecuteOptions>(executeOptions, SOURCE_RULES);
      const token = tokenFor(source, { name: 'execution', clock: source.token?.clock ?? world.clock });
      if (emit !== undefined && emitsCancelEvents)
        emitStopEvents(token, (event) => emit({ ...event, at: token.clock.now() }));
      try {
        return await executeWaves(calls, {
          scope: { ...shared, token },
          live,
          tools,
          concurrency,
          refused: source[REFUSED],
        });
      } finally {
        token[Symbol.dispose]();
      }
    },
    cancelCall(callId, reason = {}, cancelOptions = {}) {
      const checked = readCancelOptions(cancelOptions, 'now');
      return live.get(callId)?.cancel(reason, checked) ?? { result: 'too-late' };
    },
  };
}

interface Execution {
  readonly scope: CallScope;
  /** Calls that have not ended yet, by id. */
  readonly live: Map<string, LiveCall>;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly concurrency: number;
  readonly refused: ReadonlyMap<string, string> | undefined;
}

async function executeWaves(given: readonly Call[], execution: Execution): Promise<CallResult[]> {
  const { token, emit } = execution.scope;
  const { wanted, plan } = enlist(readCalls(given), execution);
  const results = new Map<string, CallResult>();
  // Start in a later microtask: the caller may still cancel in this tick, and then nothing starts.
  await Promise.resolve();
  for (const [wave, waveCalls] of plan.entries()) {
    // Checkpoint: between waves, never inside a call.
    if (token.isCancelled) break;
    emit?.({ type: 'wave-start', at: token.clock.now(), wave, callIds: waveCalls.map(({ id }) => id) });
    await runWave(waveCalls, results, execution);
    emit?.({ type: 'wave-end', at: token.clock.now(), wave });
  }
  const inOrder = wanted.map((call) => call.result ?? emitEnd(call.endUnstarted(), execution.scope));
  if (token.reason !== undefined) throw new CancelledError(token.reason, { partial: inOrder });
  return inOrder;
}

/** After this, each call can be stopped individually, by its id. */
function enlist(calls: readonly Call[], execution: Execution): { wanted: LiveCall[]; plan: LiveCall[][] } {
  const { scope, live, tools } = execution;
  const wanted = calls.map((call) => new LiveCall(call, tools.get(call.tool) ?? unknownTool(call, tools), scope));
  const plan = planWaves(wanted);
  const taken = wanted.find(({ id }) => live.has(id));
  if (taken !== undefined) throw new PlanError(`A call with the id '${taken.id}' is already running in this runtime`);
  for (const call of wanted) live.set(call.id, call);
  return { wanted, plan };
}

/** Runs the calls of a wave. Those that the token prevented from starting get no result here. */
async function runWave(
  wave: readonly LiveCall[],
  results: Map<string, CallResult>,
  { scope, concurrency, refused }: Execution,
): Promise<void> {
  let next = 0;
  const yielder = new LoopYielder(scope.token.clock);
  const worker = async (): Promise<void> => {
    for (let call = wave[next++]; call !== undefined; call = wave[next++]) {
      const rest = next % REST_EVERY === 0 ? yielder.yieldIfDue() : undefined;
      if (rest !== undefined) await waitUntilLevel(rest, scope.token, 'drain');
      if (scope.token.isCancelled) return;
      const unmet = refused?.get(call.id) ?? unmetNeed(call, results);
      let result: CallResult;
      try {
        result = unmet === undefined ? await runCall(call, scope) : call.endUnstarted(new Error(unmet));
      } catch (error) {
        // A failure around one call must not stop the wait for the others.
        result = lost(call.call, scope.token, error);
      }
      call.result = result.startedAt === undefined ? emitEnd(result, scope) : result;
      results.set(call.id, call.result);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, wave.length) }, worker));
  yielder[Symbol.dispose]();
}

/** A call that never started ends too: every call has exactly one end. */
function emitEnd(result: CallResult, { emit }: CallScope): CallResult {
  emit?.({ type: 'call-end', at: result.endedAt, result });
  return result;
}

/** Stands in for a tool that the model invented: its calls are rejected. */
function unknownTool(call: Call, tools: ReadonlyMap<string, Tool>): Tool {
  const message = `there is no tool '${call.tool}'; the tools are ${[...tools.keys()].join(', ')}`;
  const refuse = (): never => {
    throw new Error(message);
  };
  const inputSchema = { '~standard': { version: 1, vendor: 'whoa', validate: refuse } } as const;
  return { ...DEFAULTS, name: call.tool, description: message, inputSchema, effects: 'read', execute: refuse };
}

function unmetNeed({ dependsOn }: LiveCall, results: ReadonlyMap<string, CallResult>): string | undefined {
  const unmet = dependsOn?.find((id) => results.get(id)?.isError !== false);
  return unmet === undefined ? undefined : `it needs '${unmet}', which did not succeed`;
}
