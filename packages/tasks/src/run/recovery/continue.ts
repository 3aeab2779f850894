import { type Agent, type CallResult, createRuntime, isCancelledError, type Message, type Tool } from '@whoa/core';
import type { ApprovalRequest, Approve } from '@whoa/core/approval';
import type { UserMessage, World } from '@whoa/core/embed';
import {
  type Call,
  findOutResult,
  type Hooks,
  NESTED,
  type NestedRecorder,
  RESUMED,
  type RuntimeEvent,
} from '@whoa/core/internal';
import { type CallPath, toPathId, wrapEvent } from '../journal/nested.ts';
import type { TaskApprovals } from '../questions/approvals.ts';
import { type RecordedWork, recordEvent, WaveBoundary } from '../recording.ts';
import type { ResumeRule } from '../runner.ts';
import { findAgent } from './find-agent.ts';
import { type AgentUpdate, diffAgentVersion, resumeNotice } from './notice.ts';
import {
  createLostResult,
  decideRecovery,
  findStartable,
  joinWords,
  type OpenCall,
  type RecoveryState,
} from './resume.ts';

export interface AgentWork extends RecordedWork {
  readonly agent: Agent;
  /** What the journal says. */
  readonly recovery: RecoveryState;
  readonly resume: ResumeRule;
  readonly world: World;
  readonly approvals: TaskApprovals | undefined;
  /** What was decided about calls of lost workers, by the call that their run is in. */
  readonly closed: Map<string, readonly CallResult[]>;
}

/** A run that a lost worker left: the task's own, or one inside its calls. */
export interface LostRun {
  readonly recovery: RecoveryState;
  readonly agent: Agent;
  /** The calls that it is inside of. */
  readonly path: CallPath;
}

/** What a run continues with. */
export interface Continuation {
  readonly messages: readonly Message[];
  /** What was decided about calls that its worker had started. */
  readonly results: readonly CallResult[];
  /** Calls that are still to run. Missing if the model goes on with `input`. */
  readonly left?: readonly Call[];
  readonly input?: UserMessage;
  /** What the model must know after the calls in `left`. */
  readonly notice?: UserMessage;
  /** Why it must not continue. */
  readonly refused?: AgentUpdate;
}

/** Gives every call that a lost worker had started a result, or continues it, and decides what the model is told. */
export async function planContinuation(lost: LostRun, work: AgentWork): Promise<Continuation> {
  const { recovery, agent } = lost;
  const update = diffAgentVersion(recovery, agent);
  const isRefused = update !== undefined && work.resume === 'same-version';
  const { left, results } = await closeLost(lost, work, isRefused);
  work.closed.set(toPathId(lost.path, ''), results);
  const unknown = results.filter(({ state }) => state === 'unknown');
  const messages = [...recovery.messages, ...results.map((result): Message => ({ role: 'tool', ...result }))];
  if (isRefused) return { messages, results, refused: update };
  // The model gets no message about the restart, unless it must know something, or its own reply came last.
  const isSilent = unknown.length === 0 && update === undefined;
  const notice = isSilent ? undefined : resumeNotice(unknown, update);
  const isReplied = left.length === 0 && (notice !== undefined || messages.at(-1)?.role === 'assistant');
  if (isReplied) return { messages, results, input: resumeNotice(unknown, update) };
  return { messages, results, left, ...(notice && { notice }) };
}

/** Explains why a run must not continue. */
export function describeOtherVersion({ from, to }: AgentUpdate, agent: string): string {
  return `it was started by version ${from} of '${agent}', this worker has version ${to}, and resume is 'same-version'; requeue it to start again`;
}

/** Returns what records the runs inside a task's run, and continues those that a lost worker left. */
export function createNestedRecorder(work: AgentWork, boundary: WaveBoundary): NestedRecorder {
  return {
    beforeTurn: () => work.check(),
    beforeCall: boundary.beforeCall,
    beforeUndo: () => work.holder.journal.flushWhole(),
    async resume(path, given) {
      const agent = given as Agent;
      const recovery = findLeft(work.recovery, path);
      // A run that got no further than its input starts again.
      if (recovery === undefined || (recovery.messages.length <= 1 && !recovery.isWhole)) return undefined;
      if (recovery.isComplete) return { answer: joinWords(recovery.messages) };
      const { messages, results, refused, ...more } = await planContinuation({ recovery, agent, path }, work);
      if (refused !== undefined) throw new Error(describeOtherVersion(refused, agent.name));
      const { turns, calls, tokens } = recovery.spent;
      const spent = { turns, calls: Math.max(0, calls - (more.left?.length ?? 0)), tokens };
      return { history: messages, results: [...recovery.results, ...results], spent, ...more };
    },
  };
}

/** Returns the run in a call that was still open when its worker was lost. */
function findLeft(recovery: RecoveryState, path: CallPath): RecoveryState | undefined {
  let found: RecoveryState | undefined = recovery;
  for (const { callId } of path) {
    const isOpen: boolean = found.open.some(({ id, started }) => id === callId && started);
    found = isOpen ? found.nested.get(callId) : undefined;
    if (found === undefined) return undefined;
  }
  return found;
}

/** Whether a call of a sub-agent can continue: the journal has everything that the run inside it did. */
function canContinue(call: OpenCall, { recovery, agent }: LostRun, work: AgentWork): boolean {
  const inner = findAgent(call.tool, agent.tools);
  if (!call.started || inner === undefined || !(RESUMED in inner)) return false;
  // Without a run in it, none had begun: each of its calls is recorded before it starts.
  return work.recovery.isNestedRecorded && recovery.nested.get(call.id)?.isCut !== true;
}

/**
 * Gives every call that a lost worker has started one result. Those that were not started, run in a client or are calls of
 * sub-agents are left to the run that continues.
 */
async function closeLost(
  lost: LostRun,
  work: AgentWork,
  isRefused: boolean,
): Promise<{ readonly left: readonly Call[]; readonly results: readonly CallResult[] }> {
  const { recovery, agent, path } = lost;
  const { questions } = work.holder;
  const tools = isRefused ? [] : agent.tools;
  // If its tool has code now, or is gone, it may still have run in a client.
  const isInClient = (call: OpenCall): boolean =>
    questions.isAsked(toPathId(path, call.id), 'client') &&
    tools.some((one) => one.name === call.tool && one.answeredBy === 'client');
  const isOpen = (call: OpenCall): boolean =>
    !isRefused && !call.isTruncated && (!call.started || isInClient(call) || canContinue(call, lost, work));
  const closeAll = (open: readonly OpenCall[]) => closeOpenCalls(open, { ...lost, tools }, work);
  const results = await closeAll(recovery.open.filter((call) => !isOpen(call)));
  const left = findStartable(recovery.open.filter(isOpen), [...recovery.results, ...results]);
  for (const { id, shown } of left) if (shown !== undefined) questions.allowAgain(toPathId(path, id), shown);
  const isDropped = (call: OpenCall): boolean => isOpen(call) && !left.some(({ id }) => id === call.id);
  return { left: left.map(toCall), results: [...results, ...(await closeAll(recovery.open.filter(isDropped)))] };
}

/** Gives open calls one result each: safe ones run again, the others get a result that says what is known. */
async function closeOpenCalls(
  open: readonly OpenCall[],
  { tools, path, ...lost }: LostRun & { readonly tools: readonly Tool[] },
  work: AgentWork,
): Promise<readonly CallResult[]> {
  const { agent, world } = work;
  const { token, journal, questions } = work.holder;
  const toId = ({ id }: OpenCall): string => toPathId(path, id);
  const decide = (call: OpenCall) => {
    if (questions.isAsked(toId(call), 'client')) return 'unknown';
    const fate = decideRecovery(call, tools);
    // A sub-agent continues or is unknown: from its start it would repeat what its calls have done.
    return fate === 'again' && findAgent(call.tool, tools) !== undefined ? 'unknown' : fate;
  };
  const fates = new Map(open.map((call) => [call.id, decide(call)]));
  const again = open.filter(({ id }) => fates.get(id) === 'again');
  const boundary = new WaveBoundary(work);
  const hooks: Hooks<RuntimeEvent> = {
    any: (given) => {
      const event = given.type === 'call-end' ? { ...given, result: toLostResult(given.result) } : given;
      const wrapped = wrapEvent(path, event) as RuntimeEvent;
      boundary.note(wrapped);
      recordEvent(work, wrapped);
      work.onEvent?.({ ...wrapped, at: event.at, runId: `${work.task.id}.${work.task.epoch}` });
    },
  };
  const approved = new Map(again.flatMap((call) => (call.shown === undefined ? [] : [[toId(call), call.shown]])));
  const runtime = createRuntime({
    tools,
    lateResults: agent.lateResults,
    world,
    hooks,
    emitsCancelEvents: false,
    context: work.task.context,
    workId: [work.task.id, ...path.map(({ callId }) => callId)].join('/'),
    beforeCall: (call, { tool, effectKey }) => boundary.beforeCall(call, { tool, effectKey, path }),
    approve: approveAgain(approved, lost.agent, work),
    answer: questions.answerCall,
    ...(path.length > 0 && { [NESTED]: { ...UNUSED, path } }),
  });
  // What they depend on has succeeded: they were started.
  const calls = again.map(({ id, tool, input, effectKey }) => ({ id, tool, input, ...(effectKey && { effectKey }) }));
  const ran = new Map(
    (await results(runtime.execute(calls, { token }))).map((result) => [result.callId, toLostResult(result)]),
  );
  const found = await findOutLost(
    open.filter(({ id }) => fates.get(id) === 'unknown'),
    { tools, path, ...lost },
    work,
  );
  const closed = open.map((call) => {
    const fate = fates.get(call.id)!;
    if (fate === 'again') return ran.get(call.id)!;
    const result = found.get(call.id) ?? createLostResult(call, fate, world.clock.now());
    journal.add(wrapEvent(path, { type: 'call-end', result }));
    questions.endCall(toId(call));
    return result;
  });
  await journal.flush();
  return closed;
}

/** A runtime outside a run has no agents in its calls. */
const UNUSED = { addUsage: (): void => {}, undoes: (): boolean => false, leaveRunning: (): void => {} };

/** Asks tools how their calls ended. A call that is still unknown has no result here. */
async function findOutLost(
  unknown: readonly OpenCall[],
  { tools, path }: LostRun & { readonly tools: readonly Tool[] },
  { holder, task }: AgentWork,
): Promise<ReadonlyMap<string, CallResult>> {
  const found = new Map<string, CallResult>();
  const workId = [task.id, ...path.map(({ callId }) => callId)].join('/');
  const { context } = task;
  await Promise.all(
    unknown.map(async ({ id, tool: name, input, isTruncated, effectKey, startedAt = 0 }) => {
      const tool = tools.find((one) => one.name === name);
      // Without its input or its key, a look could be about another effect.
      if (tool?.findOut === undefined || isTruncated || effectKey === undefined) return;
      const about = { callId: id, effectKey, startedAt, workId, context };
      const result = await findOutResult(tool, { input, about, token: holder.token });
      if (result !== undefined) found.set(id, result);
    }),
  );
  return found;
}

const toCall = ({ id, tool, input, dependsOn: needs, effectKey }: OpenCall): Call => {
  return { id, tool, input, ...(needs && { dependsOn: needs }), ...(effectKey && { effectKey }) };
};

/** Allows calls again that still are what was approved. Other calls may need approval now. */
function approveAgain(
  approved: ReadonlyMap<string, string>,
  own: Agent,
  { agent, holder, approvals }: AgentWork,
): Approve {
  type Asking = { readonly [RESUMED]?: Approve };
  const ask = (own as Asking)[RESUMED] ?? (agent as Asking)[RESUMED];
  for (const [id, shown] of approved) holder.questions.allowAgain(id, shown);
  const wasApproved = ({ call }: ApprovalRequest): boolean => approved.has(call.id);
  const isRequired = (request: ApprovalRequest): boolean =>
    wasApproved(request) || (ask !== undefined && (ask.isRequired?.(request) ?? request.effects !== 'read'));
  const approve: Approve = (request, context) => {
    if (wasApproved(request)) return approvals?.approve(request, context) ?? false;
    return ask?.(request, context) ?? 'its agent has no `approve` function';
  };
  return Object.assign(approve, { isRequired });
}

/** A call that a lost worker had started may have had an effect, even if it does not start again. */
function toLostResult(result: CallResult): CallResult {
  const { callId: id, tool, endedAt } = result;
  return result.state === 'not-started' ? createLostResult({ id, tool }, 'unknown', endedAt) : result;
}

async function results(executing: Promise<CallResult[]>): Promise<readonly CallResult[]> {
  try {
    return await executing;
  } catch (error) {
    if (isCancelledError(error)) return error.partial as readonly CallResult[];
    throw error;
  }
}
