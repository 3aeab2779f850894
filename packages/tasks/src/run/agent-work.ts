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
import type { UserMessage, World } from '@whoa/core/embed';
import { type Call, type Hooks, NO_USAGE, RESUMED, type RuntimeEvent, toPreset } from '@whoa/core/internal';
import type { JournalEntry, TaskOutcome, TaskRecord } from '../task.ts';
import type { AdoptedRun } from './adopted-run.ts';
import { toErrorData } from './journal/entry.ts';
import { outcomeOfRun, saidIn, usedBefore } from './outcome.ts';
import { note, type RecordedWork, record, WaveBoundary } from './recording.ts';
import {
  type AgentUpdate,
  createLostResult,
  decideRecovery,
  diffAgentVersion,
  type RecoveryState,
  resumeNotice,
  standingOf,
  wordsIn,
} from './recovery/resume.ts';
import { undoEarlier } from './recovery/undo.ts';
import type { ResumeRule } from './runner.ts';
import { messageOf } from './work.ts';

type RunInput = Parameters<Agent['run']>[0];

export interface AgentWork extends RecordedWork {
  readonly agent: Agent;
  readonly past: readonly JournalEntry[];
  readonly resume: ResumeRule;
  readonly world: World;
}

/** Returns the history before a task. It includes all inputs of merged messages except the last. */
export function historyBefore({ inputs }: TaskRecord, history: readonly Json[]): Message[] {
  return [...(history as unknown as readonly Message[]), ...inputs.slice(0, -1).map(messageOf)];
}

/** Runs an agent as a task, from the start or from where a lost worker left it. */
export async function runAgent(work: AgentWork): Promise<TaskOutcome> {
  const { task, history } = work;
  const standing = standingOf(work.past);
  const before = standing.isWhole ? [] : historyBefore(task, history);
  if (standing.isComplete) {
    // The lost worker had finished everything except reporting the end.
    const said = saidIn([...before, ...standing.messages], history);
    return { status: 'success', answer: wordsIn(standing.messages), ...usedBefore(task), ...said };
  }
  if (standing.messages.length <= 1 && !standing.isWhole)
    return start(work, { input: task.inputs.at(-1) as RunInput, history: before });
  const update = diffAgentVersion(standing, work.agent);
  const isRefused = update !== undefined && work.resume === 'same-version';
  // A task that waits for answers continues where it was, and its model gets no message about it.
  const isWaiting = !isRefused && work.holder.questions.hasLive;
  const left = isWaiting ? standing.open.filter((call) => !call.started && !call.isTruncated) : [];
  const lost = { ...standing, open: standing.open.filter((call) => !left.includes(call)) };
  const results = await closeOpenCalls(lost, work, isRefused ? [] : work.agent.tools);
  const unknown = results.filter(({ state }) => state === 'unknown');
  const closed = results.map((result): Message => ({ role: 'tool', ...result }));
  const messages = [...before, ...standing.messages, ...closed];
  if (!isRefused) {
    const notice = resumeNotice(unknown, update);
    const given = left.length === 0 ? { input: notice } : { left, ...(unknown.length > 0 || update ? { notice } : {}) };
    const outcome = await start(work, { ...given, history: messages });
    const { token, journal } = work.holder;
    const earlier = { ...standing, results: [...standing.results, ...results] };
    const now = (): number => work.world.clock.now();
    const { id: workId, context } = task;
    return undoEarlier(outcome, earlier, { tools: work.agent.tools, journal, token, context, workId, now });
  }
  const error = otherVersion(task, update);
  return { status: 'failed', error, answer: wordsIn(messages), ...usedBefore(task), ...saidIn(messages, history) };
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
  work.holder.commands.begin(run);
  return outcomeOfRun(await run.outcome, work.history, before);
}

/** Throws on an invalid input or history. */
function begin(work: AgentWork, { input = '', history, left, notice }: Start): Run {
  const { agent, holder } = work;
  const { context } = work.task;
  const { onEvent, ...options } = record(work, agent.version);
  const run = agent.run(input, {
    ...options,
    id: runIdOf(work),
    workId: work.task.id,
    history,
    context,
    token: holder.token,
    hooks: { any: onEvent },
    ...(left && { [RESUMED]: left }),
  });
  if (notice !== undefined) run.steer(notice);
  return run;
}

/** Follows a run that is under way, and records it. The task ends when all its events are recorded. */
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

function runIdOf({ task }: AgentWork): string {
  return `${task.id}.${task.epoch}`;
}

/**
 * Gives every call of the last turn one result: safe calls run again, the others get a result that says what is known.
 */
async function closeOpenCalls(
  standing: RecoveryState,
  work: AgentWork,
  tools: readonly Tool[],
): Promise<readonly CallResult[]> {
  const { agent, world } = work;
  const { token, journal } = work.holder;
  const fates = new Map(standing.open.map((call) => [call.id, decideRecovery(call, tools)]));
  const again = standing.open.filter(({ id }) => fates.get(id) === 'again');
  const boundary = new WaveBoundary(work);
  const hooks: Hooks<RuntimeEvent> = {
    'wave-start': () => boundary.reach(),
    any: (event) => {
      note(work, event);
      work.onEvent?.({ ...event, runId: runIdOf(work) });
    },
  };
  const runtime = createRuntime({
    tools,
    ledger: agent.ledger,
    world,
    hooks,
    emitsCancelEvents: false,
    context: work.task.context,
    workId: work.task.id,
    beforeCall: boundary.beforeCall,
  });
  const ran = new Map((await results(runtime.execute(again, { token }))).map((result) => [result.callId, result]));
  const closed = standing.open.map((call) => {
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

async function results(executing: Promise<CallResult[]>): Promise<readonly CallResult[]> {
  try {
    return await executing;
  } catch (error) {
    if (isCancelledError(error)) return error.partial as readonly CallResult[];
    throw error;
  }
}
