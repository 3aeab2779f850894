import {
  type Agent,
  type CallResult,
  createRuntime,
  isCancelledError,
  type Json,
  type Message,
  type Run,
  type Tool,
} from '@whoa/core';
import type { ApprovalRequest, Approve } from '@whoa/core/approval';
import type { UserMessage, World } from '@whoa/core/embed';
import { type Call, type Hooks, NO_USAGE, RESUMED, type RuntimeEvent, toPreset } from '@whoa/core/internal';
import type { TaskOutcome, TaskRecord } from '../task.ts';
import type { AdoptedRun } from './adopted-run.ts';
import { toErrorData } from './journal/entry.ts';
import { outcomeOfRun, toNewMessages, usedBefore } from './outcome.ts';
import type { TaskApprovals } from './questions/approvals.ts';
import { type RecordedWork, record, recordEvent, WaveBoundary } from './recording.ts';
import {
  type AgentUpdate,
  createLostResult,
  decideRecovery,
  diffAgentVersion,
  findStartable,
  joinWords,
  type OpenCall,
  type RecoveryState,
  resumeNotice,
} from './recovery/resume.ts';
import { undoEarlier } from './recovery/undo.ts';
import type { ResumeRule } from './runner.ts';
import { toUserMessage } from './work.ts';

type RunInput = Parameters<Agent['run']>[0];

export interface AgentWork extends RecordedWork {
  readonly agent: Agent;
  /** What the journal says. */
  readonly recovery: RecoveryState;
  readonly resume: ResumeRule;
  readonly world: World;
  readonly approvals: TaskApprovals | undefined;
}

/** Returns the history before a task. It includes all inputs of merged messages except the last. */
export function historyBefore({ inputs }: TaskRecord, history: readonly Json[]): Message[] {
  return [...(history as unknown as readonly Message[]), ...inputs.slice(0, -1).map(toUserMessage)];
}

/** Runs an agent as a task, from the start or from where a lost worker left it. */
export async function runAgent(work: AgentWork): Promise<TaskOutcome> {
  const { task, history, recovery } = work;
  const before = recovery.isWhole ? [] : historyBefore(task, history);
  if (recovery.isComplete) {
    // The lost worker had finished everything except reporting the end.
    const added = toNewMessages([...before, ...recovery.messages], history);
    return { status: 'success', answer: joinWords(recovery.messages), ...usedBefore(task), ...added };
  }
  if (recovery.messages.length <= 1 && !recovery.isWhole)
    return start(work, { input: task.inputs.at(-1) as RunInput, history: before });
  const update = diffAgentVersion(recovery, work.agent);
  const isRefused = update !== undefined && work.resume === 'same-version';
  const { left, results } = await closeLost(recovery, work, isRefused);
  const unknown = results.filter(({ state }) => state === 'unknown');
  const closed = results.map((result): Message => ({ role: 'tool', ...result }));
  const messages = [...before, ...recovery.messages, ...closed];
  if (!isRefused) {
    // The model gets no message about the restart, unless it must know something, or its own reply came last.
    const isSilent = unknown.length === 0 && update === undefined;
    const notice = isSilent ? undefined : resumeNotice(unknown, update);
    const isReplied = left.length === 0 && (notice !== undefined || messages.at(-1)?.role === 'assistant');
    const given = isReplied ? { input: resumeNotice(unknown, update) } : { left, ...(notice && { notice }) };
    const outcome = await start(work, { ...given, history: messages });
    const { token, journal } = work.holder;
    const earlier = { ...recovery, results: [...recovery.results, ...results] };
    const now = (): number => work.world.clock.now();
    const { id: workId, context } = task;
    return undoEarlier(outcome, earlier, { tools: work.agent.tools, journal, token, context, workId, now });
  }
  const error = otherVersion(task, update);
  return {
    status: 'failed',
    error,
    answer: joinWords(messages),
    ...usedBefore(task),
    ...toNewMessages(messages, history),
  };
}

/**
 * Gives every call that a lost worker has started one result. Those that were not started, or run in a client, are left to
 * the run that continues.
 */
async function closeLost(
  recovery: RecoveryState,
  work: AgentWork,
  isRefused: boolean,
): Promise<{ readonly left: readonly Call[]; readonly results: readonly CallResult[] }> {
  const { questions } = work.holder;
  const tools = isRefused ? [] : work.agent.tools;
  // If its tool has code now, or is gone, it may still have run in a client.
  const isInClient = (call: OpenCall): boolean =>
    questions.isAsked(call.id, 'client') && tools.some((one) => one.name === call.tool && one.answeredBy === 'client');
  const isOpen = (call: OpenCall): boolean => !isRefused && !call.isTruncated && (!call.started || isInClient(call));
  const closeAll = (open: readonly OpenCall[]) => closeOpenCalls({ ...recovery, open }, work, tools);
  const results = await closeAll(recovery.open.filter((call) => !isOpen(call)));
  const left = findStartable(recovery.open.filter(isOpen), [...recovery.results, ...results]);
  const isDropped = (call: OpenCall): boolean => isOpen(call) && !left.some(({ id }) => id === call.id);
  return { left: left.map(toCall), results: [...results, ...(await closeAll(recovery.open.filter(isDropped)))] };
}

function otherVersion({ agent }: TaskRecord, { from, to }: AgentUpdate): NonNullable<TaskOutcome['error']> {
  const message = `it was started by version ${from} of '${agent}', this worker has version ${to}, and resume is 'same-version'; requeue it to start again`;
  return { message, code: 'AGENT_VERSION' };
}

/** What a run starts with: an input, or calls that a lost worker left and what the model must know after them. */
interface Start {
  readonly history: Message[];
  readonly input?: RunInput;
  readonly left?: readonly Call[];
  readonly notice?: UserMessage;
}

async function start(work: AgentWork, given: Start): Promise<TaskOutcome> {
  const before = work.holder.activity.current?.usage ?? NO_USAGE;
  let run: Run;
  try {
    run = begin(work, given);
  } catch (error) {
    // Fail the task if no worker can run it. Crashing the worker would take other tasks down too.
    return { status: 'failed', error: toErrorData(error) };
  }
  if (!given.left?.length) work.holder.commands.begin(run);
  return outcomeOfRun(await run.outcome, work.history, before);
}

/** Throws on an invalid input or history. */
function begin(work: AgentWork, { input = '', history, left, notice }: Start): Run {
  const { agent, holder } = work;
  const { onEvent, ...options } = record(work, agent.version);
  const resumed = { [RESUMED]: { left, ...toSpent(work, left) } };
  // Calls that were left can be stopped once they are in a wave.
  const onWave = left?.length && { 'wave-start': () => holder.commands.begin(run) };
  const run: Run = agent.run(input, {
    ...options,
    id: getRunId(work),
    workId: work.task.id,
    history,
    context: work.task.context,
    token: holder.token,
    hooks: { any: onEvent, ...onWave },
    ...resumed,
  });
  if (notice !== undefined) run.steer(notice);
  return run;
}

/** Returns what earlier runs of the task have used. The calls that they left count when they run. */
function toSpent({ holder }: AgentWork, left: readonly Call[] = []) {
  const { turns = 0, calls = 0, usage = NO_USAGE, spending } = holder.activity.current ?? {};
  const tokens = usage.inputTokens + usage.outputTokens;
  return { turns, calls: Math.max(0, calls - left.length), tokens, spending };
}

/** Follows a run in progress, and records it. The task ends when all its events are recorded. */
export async function followRun(run: AdoptedRun, work: RecordedWork): Promise<TaskOutcome> {
  const { token, commands } = work.holder;
  const { adopted } = run;
  const { onEvent, ...options } = record(work);
  run.claim(options);
  token.onCancel((level, reason) => adopted.cancel(reason, { mode: toPreset(level), undo: token.undo }));
  commands.begin(adopted);
  for await (const event of adopted.events) onEvent(event);
  return outcomeOfRun(await adopted.outcome, work.history, NO_USAGE);
}

function getRunId({ task }: AgentWork): string {
  return `${task.id}.${task.epoch}`;
}

/**
 * Gives every call of the last turn one result: safe calls run again, the others get a result that says what is known.
 */
async function closeOpenCalls(
  recovery: RecoveryState,
  work: AgentWork,
  tools: readonly Tool[],
): Promise<readonly CallResult[]> {
  const { agent, world } = work;
  const { token, journal } = work.holder;
  const decide = (call: OpenCall) =>
    work.holder.questions.isAsked(call.id, 'client') ? 'unknown' : decideRecovery(call, tools);
  const fates = new Map(recovery.open.map((call) => [call.id, decide(call)]));
  const again = recovery.open.filter(({ id }) => fates.get(id) === 'again');
  const boundary = new WaveBoundary(work);
  const hooks: Hooks<RuntimeEvent> = {
    'wave-start': () => boundary.reach(),
    any: (given) => {
      const event = given.type === 'call-end' ? { ...given, result: toLostResult(given.result) } : given;
      recordEvent(work, event);
      work.onEvent?.({ ...event, runId: getRunId(work) });
    },
  };
  const runtime = createRuntime({
    tools,
    lateResults: agent.lateResults,
    world,
    hooks,
    emitsCancelEvents: false,
    context: work.task.context,
    workId: work.task.id,
    beforeCall: boundary.beforeCall,
    approve: approveAgain(again, work),
    answer: work.holder.questions.answerCall,
  });
  // What they depend on has succeeded: they were started.
  const calls = again.map(({ id, tool, input }) => ({ id, tool, input }));
  const ran = new Map(
    (await results(runtime.execute(calls, { token }))).map((result) => [result.callId, toLostResult(result)]),
  );
  const closed = recovery.open.map((call) => {
    const fate = fates.get(call.id)!;
    if (fate === 'again') return ran.get(call.id)!;
    const result = createLostResult(call, fate, world.clock.now());
    journal.add({ type: 'call-end', result });
    work.holder.questions.endCall(call.id);
    return result;
  });
  await journal.flush();
  return closed;
}

const toCall = ({ id, tool, input, dependsOn: needs }: OpenCall): Call => {
  return { id, tool, input, ...(needs && { dependsOn: needs }) };
};

/** Allows calls again that still are what was approved. Other calls may need approval now, as those of sub-agents do. */
function approveAgain(again: readonly OpenCall[], { agent, holder, approvals }: AgentWork): Approve {
  const { [RESUMED]: ask } = agent as { readonly [RESUMED]?: Approve };
  const approved = new Map(again.flatMap(({ id, shown }) => (shown === undefined ? [] : [[id, shown] as const])));
  for (const [id, shown] of approved) holder.questions.allowAgain(id, shown);
  const wasApproved = ({ within, call }: ApprovalRequest): boolean => within === undefined && approved.has(call.id);
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
