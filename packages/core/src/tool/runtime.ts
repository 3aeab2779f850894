import { CLEANUP_MS } from '../stop/cleanup.ts';
import { systemWorld, type World } from '../stop/clock.ts';
import { CancelledError } from '../stop/errors.ts';
import { createTeller, type Hooks } from '../stop/hooks.ts';
import { createLedger, type Ledger } from '../stop/ledger.ts';
import type { CancelReasonInit } from '../stop/reason.ts';
import type { CancelReceipt } from '../stop/receipt.ts';
import { CancellationToken, type CancelOptions } from '../stop/token.ts';
import type { Approve, BeforeCall, Call, CallScope, LiveCall } from './call.ts';
import { notStarted, refused } from './ending.ts';
import type { CallEvent } from './events.ts';
import { ExclusiveKeys } from './exclusive.ts';
import type { CallResult } from './result.ts';
import { runCall } from './start.ts';
import type { Tool } from './tool.ts';
import { waves } from './waves.ts';

export interface RuntimeOptions {
  readonly tools: readonly Tool[];
  /** How many calls of a wave run at once. */
  readonly concurrency?: number;
  readonly approve?: Approve | undefined;
  readonly beforeCall?: BeforeCall | undefined;
  readonly hooks?: Hooks<CallEvent> | undefined;
  readonly ledger?: Ledger;
  /** Names the owner in the ledger: entries are `owner/call`. */
  readonly owner?: string;
  readonly cleanupMs?: number;
  /** Shared by runtimes whose calls must respect each other's exclusive keys. */
  readonly keys?: ExclusiveKeys;
  readonly world?: World;
}

export interface ExecuteOptions {
  readonly token?: CancellationToken;
  readonly signal?: AbortSignal;
}

/** The answer to a cancel of one call. */
export type CallCancelReceipt = CancelReceipt | { readonly answer: 'refused'; readonly message: string };

/** Runs calls in waves. It outlives single executions, so that an abandoned call keeps its exclusive keys. */
export interface Runtime {
  readonly tools: ReadonlyMap<string, Tool>;
  readonly ledger: Ledger;
  /**
   * Runs the calls and returns their results in the order of the calls. The token is looked at before every wave and
   * every call, never inside one. When cancelled it rejects with a `CancelledError` whose `partial` holds one result for
   * every call, the ones that were not started included.
   */
  execute(calls: readonly Call[], options?: ExecuteOptions): Promise<CallResult[]>;
  /** Stops one call, `now` unless said otherwise; the others go on. A call that must `finish` refuses. */
  cancelCall(callId: string, reason?: CancelReasonInit, options?: CancelOptions): CallCancelReceipt;
}

const CONCURRENCY = 16;

/** Creates a runtime for some tools. */
export function createRuntime(options: RuntimeOptions): Runtime {
  const { concurrency = CONCURRENCY, owner = 'runtime', world = systemWorld, ledger = createLedger() } = options;
  if (!(Number.isInteger(concurrency) && concurrency > 0)) {
    throw new RangeError(`concurrency: expected a whole number from 1, got ${concurrency}`);
  }
  const tools = indexTools(options.tools);
  const live = new Map<string, LiveCall>();
  const shared: Omit<CallScope, 'token'> = {
    tell: options.hooks && createTeller(options.hooks),
    approve: options.approve,
    beforeCall: options.beforeCall,
    ledger,
    ledgerKey: (callId) => `${owner}/${callId}`,
    keys: options.keys ?? new ExclusiveKeys(),
    live,
    cleanupMs: options.cleanupMs ?? CLEANUP_MS,
  };

  return {
    tools,
    ledger,
    async execute(calls, { token: parent, signal } = {}) {
      const tokenOptions = { parent, name: 'execution', clock: parent?.clock ?? world.clock };
      const token = signal ? CancellationToken.from(signal, tokenOptions) : new CancellationToken(tokenOptions);
      try {
        return await executeWaves(calls, { scope: { ...shared, token }, tools, concurrency });
      } finally {
        token[Symbol.dispose]();
      }
    },
    cancelCall(callId, reason = {}, cancelOptions = {}) {
      const call = live.get(callId);
      if (call?.own === undefined) return { answer: 'too-late' };
      if (call.tool.whenCancelled === 'finish') {
        return {
          answer: 'refused',
          message: `${call.tool.name} must finish; it ends within ${call.tool.timeoutMs} ms`,
        };
      }
      return call.own.cancel(reason, { how: 'now', ...cancelOptions });
    },
  };
}

interface Execution {
  readonly scope: CallScope;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly concurrency: number;
}

async function executeWaves(calls: readonly Call[], execution: Execution): Promise<CallResult[]> {
  const { token, tell } = execution.scope;
  const results = new Map<string, CallResult>();
  const plan = waves(calls);
  // Begin in a later microtask: whoever called may still cancel in this tick, and then nothing starts.
  await Promise.resolve();
  for (const [wave, waveCalls] of plan.entries()) {
    // Checkpoint: between waves, never inside a call.
    if (token.isCancelled) break;
    tell?.({ type: 'wave-start', at: token.clock.now(), wave, callIds: waveCalls.map(({ id }) => id) });
    await runWave(waveCalls, results, execution);
    tell?.({ type: 'wave-end', at: token.clock.now(), wave });
  }
  const inOrder = calls.map((call) => results.get(call.id) ?? endUnstarted(notStarted(call, token), execution.scope));
  if (token.reason !== undefined) throw new CancelledError(token.reason, { partial: inOrder });
  return inOrder;
}

/** Runs the calls of a wave, as many at once as allowed. Calls the token kept from starting get no result here. */
async function runWave(wave: readonly Call[], results: Map<string, CallResult>, execution: Execution): Promise<void> {
  const { scope, tools, concurrency } = execution;
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let call = wave[next++]; call !== undefined; call = wave[next++]) {
      if (scope.token.isCancelled) return;
      const tool = tools.get(call.tool);
      const obstacle = tool === undefined ? unknownTool(call, tools) : unmetNeed(call, results);
      const result =
        obstacle === undefined
          ? await runCall({ call, tool: tool! }, scope)
          : refused(call, scope.token, new Error(obstacle));
      results.set(call.id, result.startedAt === undefined ? endUnstarted(result, scope) : result);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, wave.length) }, worker));
}

/** A call that never began ends too: every call has exactly one end. */
function endUnstarted(result: CallResult, { tell }: CallScope): CallResult {
  tell?.({ type: 'call-end', at: result.endedAt, result });
  return result;
}

function unknownTool(call: Call, tools: ReadonlyMap<string, Tool>): string {
  return `there is no tool '${call.tool}'; the tools are ${[...tools.keys()].join(', ')}`;
}

function unmetNeed(call: Call, results: ReadonlyMap<string, CallResult>): string | undefined {
  const unmet = call.dependsOn?.find((id) => results.get(id)?.state !== 'finished' || results.get(id)?.isError);
  return unmet === undefined ? undefined : `it needs '${unmet}', which did not succeed`;
}

function indexTools(tools: readonly Tool[]): Map<string, Tool> {
  const byName = new Map<string, Tool>();
  for (const tool of tools) {
    if (byName.has(tool.name)) throw new TypeError(`tools: two tools are named '${tool.name}'`);
    byName.set(tool.name, tool);
  }
  return byName;
}
