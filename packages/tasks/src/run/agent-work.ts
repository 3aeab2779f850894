import type { Agent, Json, Message, Run } from '@whoa/core';
import type { UserMessage } from '@whoa/core/embed';
import { type Call, NO_USAGE, RESUMED, toPreset } from '@whoa/core/internal';
import type { TaskOutcome, TaskRecord } from '../task.ts';
import type { AdoptedRun } from './adopted-run.ts';
import { toErrorData } from './journal/entry.ts';
import { outcomeOfRun, toNewMessages, usedBefore } from './outcome.ts';
import { type RecordedWork, record, WaveBoundary } from './recording.ts';
import { type AgentWork, createNestedRecorder, describeOtherVersion, planContinuation } from './recovery/continue.ts';
import { joinWords } from './recovery/resume.ts';
import { undoEarlier } from './recovery/undo.ts';
import { toUserMessage } from './work.ts';

type RunInput = Parameters<Agent['run']>[0];

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
  const {
    messages: known,
    results: _results,
    refused,
    ...given
  } = await planContinuation({ recovery, agent: work.agent, path: [] }, work);
  const messages = [...before, ...known];
  if (refused !== undefined) {
    const error = { message: describeOtherVersion(refused, task.agent), code: 'AGENT_VERSION' };
    const added = toNewMessages(messages, history);
    return { status: 'failed', error, answer: joinWords(messages), ...usedBefore(task), ...added };
  }
  const outcome = await start(work, { ...given, history: messages });
  const { token, journal } = work.holder;
  const now = (): number => work.world.clock.now();
  const { id: workId, context } = task;
  const undoing = { tools: work.agent.tools, closed: work.closed, journal, token, context, workId, now };
  return undoEarlier(outcome, recovery, undoing);
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
  const boundary = new WaveBoundary(work);
  const { onEvent, ...options } = record(work, boundary, { version: agent.version, nested: 1 });
  const resumed = { [RESUMED]: { left, recorder: createNestedRecorder(work, boundary), ...toSpent(work, left) } };
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
  const { onEvent, ...options } = record(work, new WaveBoundary(work));
  run.claim(options);
  token.onCancel((level, reason) => adopted.cancel(reason, { mode: toPreset(level), undo: token.undo }));
  commands.begin(adopted);
  for await (const event of adopted.events) onEvent(event);
  return outcomeOfRun(await adopted.outcome, work.history, NO_USAGE);
}

function getRunId({ task }: AgentWork): string {
  return `${task.id}.${task.epoch}`;
}
