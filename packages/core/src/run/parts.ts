import type { LateResults } from '../stop/bounded/late-results.ts';
import type { World } from '../stop/clock.ts';
import { createHookDispatcher } from '../stop/hooks.ts';
import { tokenFor } from '../stop/token/source.ts';
import type { CancellationToken } from '../stop/token/token.ts';
import type { AnswerCall, Approve } from '../tool/call/call.ts';
import type { ExclusiveKeys } from '../tool/call/exclusive.ts';
import { NESTED, type ParentRun } from '../tool/call/nested.ts';
import { buildRuntime, type Runtime } from '../tool/runtime.ts';
import type { Tool } from '../tool/tool.ts';
import { overspent } from './budget.ts';
import { RunGate } from './gate.ts';
import type { UserMessage } from './history/message.ts';
import { Transcript } from './history/transcript.ts';
import type { Planner } from './reply/planner.ts';
import type { RunEvent } from './report/events.ts';
import { Leftovers } from './report/leftovers.ts';
import { type AgentParts, type InnerRunOptions, RESUMED } from './setup.ts';
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
  readonly startedAt: number;
  /** What an undo of its calls needs. */
  readonly undoing: UndoOptions;
}

/** Creates the parts of a run, inside the run that it is a call of, if any. */
export function createParts(setup: RunSetup): RunParts {
  const { agent, context } = setup;
  const { world } = agent;
  const parent = setup[NESTED];
  const id = setup.id ?? world.createId();
  const workId = setup.workId ?? parent?.workId ?? id;
  const keys = parent?.keys ?? agent.keys;
  const dispatch = createHookDispatcher<RunEvent>(agent.hooks, setup.hooks);
  const emitToHooks = (event: RunEvent): void => dispatch(event, { context });
  const gate = new RunGate({ runId: id, clock: world.clock, emitToHooks });
  const startedAt = gate.now();
  const token = tokenFor(setup, { name: agent.name, clock: world.clock });
  const transcript = new Transcript(parent?.addUsage);
  const leftovers = new Leftovers(world.clock);
  const inner: ParentRun = {
    // Usage of nested runs counts for this run. When it exceeds its budget it stops, and they stop with it.
    addUsage: (usage) => {
      transcript.addUsage(usage);
      const reason = overspent(agent.budgets ?? {}, { turn: 0, calls: 0, transcript, before: setup[RESUMED] });
      if (reason !== undefined) token.cancel(reason, { mode: 'now' });
    },
    undoes: () => token.undo,
    leaveRunning: leftovers.add,
    ...(parent?.path && { path: parent.path }),
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
    beforeCall: setup.beforeCall,
    redact: setup.redact ?? parent?.redact,
    hooks: { any: (event) => gate.emit(event) },
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
    beforeUndo: setup.beforeUndo,
    emit: (event, within) => {
      gate.emit(event);
      within.emit(gate.stamp(event));
    },
  };
  return { id, setup, token, gate, transcript, steering: new Steering(), leftovers, runtime, startedAt, undoing };
}
