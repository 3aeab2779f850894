import type { LateResults } from '../stop/bounded/late-results.ts';
import type { World } from '../stop/clock.ts';
import { createHookDispatcher } from '../stop/hooks.ts';
import { tokenFor } from '../stop/token/source.ts';
import type { CancellationToken } from '../stop/token/token.ts';
import type { AnswerCall, Approve, BeforeCall } from '../tool/call/call.ts';
import type { ExclusiveKeys } from '../tool/call/exclusive.ts';
import { NESTED, type NestedContext, type ParentRun } from '../tool/call/nested.ts';
import { buildRuntime, type Runtime } from '../tool/runtime.ts';
import type { Tool } from '../tool/tool.ts';
import { askForMore } from './ask-for-more.ts';
import { overspent } from './budget.ts';
import type { Reached } from './budget-question.ts';
import { RunGate } from './gate.ts';
import type { UserMessage } from './history/message.ts';
import { Transcript } from './history/transcript.ts';
import type { Planner } from './reply/planner.ts';
import type { RunEvent } from './report/events.ts';
import { Leftovers } from './report/leftovers.ts';
import { type AgentParts, type InnerRunOptions, RESUMED } from './setup.ts';
import { Account } from './spending/account.ts';
import { MICRO_USD } from './spending/price.ts';
import { Requests } from './spending/requests.ts';
import { Steering } from './steering.ts';
import { UNDO_MS, type UndoOptions } from './undo.ts';

export interface RunSetup extends InnerRunOptions {
  readonly agent: AgentParts & {
    readonly planner: Planner;
    readonly tools: readonly Tool[];
    readonly world: World;
    readonly lateResults: LateResults;
    readonly keys: ExclusiveKeys;
  };
  readonly input: UserMessage;
}

/** The parts of one run, which its loop, its end and its caller share. */
export interface RunParts {
  readonly id: string;
  readonly setup: RunSetup;
  readonly token: CancellationToken;
  readonly gate: RunGate;
  readonly transcript: Transcript;
  readonly steering: Steering;
  readonly leftovers: Leftovers;
  readonly runtime: Runtime;
  /** Its own money, if that has a limit. */
  readonly account: Account | undefined;
  /** What its requests are paid from. */
  readonly requests: Requests | undefined;
  /** Deals with a limit that is reached. Resolves with how much more was given. */
  readonly raise: (reached: Reached) => Promise<number>;
  readonly startedAt: number;
  /** What an undo of its calls needs. */
  readonly undoing: UndoOptions;
}

/** Creates the parts of a run, inside the run that it is a call of, if any. */
export function createParts(setup: RunSetup): RunParts {
  const { agent, context } = setup;
  const parent = setup[NESTED];
  const id = setup.id ?? agent.world.createId();
  const workId = setup.workId ?? parent?.workId ?? id;
  const keys = parent?.keys ?? agent.keys;
  const dispatch = createHookDispatcher<RunEvent>(agent.hooks, setup.hooks);
  const emitToHooks = (event: RunEvent): void => dispatch(event, { context });
  const gate = new RunGate({ runId: id, clock: agent.world.clock, emitToHooks });
  const startedAt = gate.now();
  const token = tokenFor(setup, { name: agent.name, clock: agent.world.clock });
  const transcript = new Transcript(parent?.addUsage);
  const leftovers = new Leftovers(agent.world.clock);
  const emit = (event: Parameters<RunGate['emit']>[0]): void => gate.emit(event);
  const asking = { runId: id, budgets: agent.budgets ?? {}, token, context, leaveRunning: leftovers.add, emit };
  const raise: RunParts['raise'] = (reached) => askForMore(reached, asking);
  const account = openAccount(setup, { gate, token, raise });
  const outer = parent?.requests as Requests | undefined;
  const requests = account === undefined ? outer : new Requests([account, ...(outer?.accounts ?? [])]);
  const recorder = setup[RESUMED]?.recorder ?? parent?.recorder;
  const inner: ParentRun = {
    requests,
    // Usage of nested runs counts for this run. When it exceeds its budget it stops, and they stop with it.
    addUsage: (usage) => {
      transcript.addUsage(usage);
      stopIfOver(setup, { transcript, token });
    },
    undoes: () => token.undo,
    leaveRunning: leftovers.add,
    ...(parent?.path && { path: parent.path }),
    ...(recorder && { recorder }),
  };
  const runtime = buildRuntime({
    ...agent,
    approve: agent.approve ?? (parent?.approve as Approve | undefined),
    answer: setup.answer ?? agent.answer ?? (parent?.answer as AnswerCall | undefined),
    context,
    workId,
    keys,
    [NESTED]: inner,
    owner: id,
    emitsCancelEvents: false,
    beforeCall: setup.beforeCall ?? recordCalls(parent),
    redact: setup.redact ?? parent?.redact,
    hooks: { any: emit },
  });
  const undoing: UndoOptions = {
    get calls() {
      return transcript.calls;
    },
    keys,
    context,
    workId,
    leaveRunning: leftovers.add,
    tools: runtime.tools,
    token,
    timeoutMs: agent.undoTimeoutMs ?? UNDO_MS,
    beforeUndo: setup.beforeUndo ?? parent?.recorder?.beforeUndo,
    emit: (event, within) => {
      gate.emit(event);
      within.emit(gate.stamp(event));
    },
  };
  const steering = new Steering();
  const shared = { id, setup, token, gate, transcript, steering, leftovers, runtime };
  return { ...shared, account, requests, raise, startedAt, undoing };
}

/** With `ask` the run asks at its next boundary instead. */
function stopIfOver(setup: RunSetup, { transcript, token }: Pick<RunParts, 'transcript' | 'token'>): void {
  const { budgets = {} } = setup.agent;
  if (budgets.onReached === 'ask') return;
  const over = overspent(budgets, { turn: 0, calls: 0, transcript, before: setup[RESUMED] });
  if (over !== undefined) token.cancel({ kind: 'budget', message: over.message }, { mode: 'now' });
}

function openAccount(
  setup: RunSetup,
  { gate, token, raise }: Pick<RunParts, 'gate' | 'token' | 'raise'>,
): Account | undefined {
  const { usd, prices, price } = setup.agent.budgets ?? {};
  if (usd === undefined) return undefined;
  const account = new Account({
    usd,
    prices,
    price,
    before: setup[RESUMED]?.spending,
    onChange: (spending) => gate.emit({ type: 'spending', ...spending }),
    beforeRequest: setup.beforeRequest,
    async onReached(what, missing) {
      const { spent, limit } = account.spending;
      const turns = (setup[RESUMED]?.turns ?? 0) + gate.turns;
      const about = {
        used: spent / MICRO_USD,
        of: limit / MICRO_USD,
        what: `${what} in ${turns} ${turns === 1 ? 'turn' : 'turns'}`,
      };
      const message = `the run reached its limit: ${what}`;
      // No amount helps where the price is not known.
      if (missing !== undefined) {
        token.cancel({ kind: 'budget', message }, { mode: 'now' });
        return false;
      }
      const more = await raise({ limit: 'usd', ...about, ask: 'How much more?', message });
      account.raise(more);
      return more > 0;
    },
  });
  return account;
}

/** A call of a run inside a call is recorded by whoever records the outermost run. */
function recordCalls(parent: NestedContext | undefined): BeforeCall | undefined {
  const { recorder, path = [] } = parent ?? {};
  return recorder && ((call, { tool, effectKey }) => recorder.beforeCall(call, { tool, effectKey, path }));
}
