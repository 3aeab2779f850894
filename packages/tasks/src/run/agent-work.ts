import {
  type Agent,
  type CallResult,
  type CancellationToken,
  createRuntime,
  isCancelledError,
  type Json,
  type Message,
  type Run,
  type RunEvent,
  type RunOptions,
  type Tool,
} from '@whoa/core';
import type { World } from '@whoa/core/embed';
import { type Hooks, NO_USAGE, type RuntimeEvent, toPreset } from '@whoa/core/internal';
import type { JournalEntry, TaskOutcome, TaskRecord } from '../task.ts';
import type { AdoptedRun, AdoptOptions } from './adopted-run.ts';
import type { ActivityCounter } from './journal/activity.ts';
import { toErrorData } from './journal/entry.ts';
import type { Journal } from './journal/journal.ts';
import { outcomeOfRun, saidIn, usedBefore } from './outcome.ts';
import {
  type AgentUpdate,
  fateOf,
  lostResult,
  resumeNotice,
  type Standing,
  standingOf,
  updateOf,
  wordsIn,
} from './recovery/resume.ts';
import type { ResumeRule } from './runner.ts';
import { messageOf } from './work.ts';

type RunInput = Parameters<Agent['run']>[0];

export interface AgentWork extends RecordedWork {
  readonly agent: Agent;
  readonly past: readonly JournalEntry[];
  readonly resume: ResumeRule;
  readonly world: World;
}

/** A task, and where its run is recorded. */
export interface RecordedWork {
  readonly task: TaskRecord;
  /** The earlier messages of the conversation. */
  readonly history: readonly Json[];
  readonly journal: Journal;
  readonly activity: ActivityCounter;
  readonly token: CancellationToken;
  /** Called with the run as soon as it exists, so that it can be steered. */
  readonly onRun: (run: Run) => void;
  readonly onEvent: (event: RunEvent) => void;
  /** Called before each turn and each wave. Cancels the token if the task must stop. */
  readonly check: () => Promise<void>;
  /** Resolves once the lease has been checked against the clock. If it may be lost, the token is cancelled by then. */
  readonly checkHeld: () => Promise<void>;
}

/** Events that are written immediately, because a crash must not lose them. So is `steer-delivered`, with its command. */
const WRITTEN_AT_ONCE: ReadonlySet<string> = new Set([
  'turn-end',
  'call-end',
  'history-compacted',
  'approval-request',
  'level-change',
  'undo-start',
  'undo-end',
]);

/** Returns the history before a task. It includes all inputs of merged messages except the last. */
export function historyBefore({ inputs }: TaskRecord, history: readonly Json[]): Message[] {
  return [...(history as unknown as readonly Message[]), ...inputs.slice(0, -1).map(messageOf)];
}

/** Runs an agent as a task, from the start or from where a lost worker left it. */
export async function runAgent(work: AgentWork): Promise<TaskOutcome> {
  const { task, history } = work;
  const standing = standingOf(work.past);
  const before = standing.isWhole ? [] : historyBefore(task, history);
  if (standing.complete) {
    // The lost worker had finished everything except reporting the end.
    const said = saidIn([...before, ...standing.messages], history);
    return { status: 'success', answer: wordsIn(standing.messages), ...usedBefore(task), ...said };
  }
  if (standing.messages.length <= 1 && !standing.isWhole)
    return start(work, { input: task.inputs.at(-1) as RunInput, history: before });
  const update = updateOf(standing, work.agent);
  const isRefused = update !== undefined && work.resume === 'same-version';
  const results = await closeOpenCalls(standing, work, isRefused ? [] : work.agent.tools);
  const unknown = results.filter(({ state }) => state === 'unknown');
  const closed = results.map((result): Message => ({ role: 'tool', ...result }));
  const messages = [...before, ...standing.messages, ...closed];
  if (!isRefused) return start(work, { input: resumeNotice(unknown, update), history: messages });
  const error = otherVersion(task, update);
  return { status: 'failed', error, answer: wordsIn(messages), ...usedBefore(task), ...saidIn(messages, history) };
}

function otherVersion({ agent }: TaskRecord, { from, to }: AgentUpdate): NonNullable<TaskOutcome['error']> {
  const message = `it was started by version ${from} of '${agent}', this worker has version ${to}, and resume is 'same-version'; requeue it to start again`;
  return { message, code: 'AGENT_VERSION' };
}

async function start(
  work: AgentWork,
  { input, history }: { input: RunInput; history: Message[] },
): Promise<TaskOutcome> {
  const before = work.activity.current?.usage ?? NO_USAGE;
  let run: Run;
  try {
    run = begin(work, { input, history });
  } catch (error) {
    // Fail the task if no worker can run it. Crashing the worker would take other tasks down too.
    return { status: 'failed', error: toErrorData(error) };
  }
  work.onRun(run);
  return outcomeOfRun(await run.outcome, work.history, before);
}

/** Throws on an invalid input or history. */
function begin(work: AgentWork, { input, history }: { input: RunInput; history: Message[] }): Run {
  const { agent, token } = work;
  const { context } = work.task;
  const { onEvent, ...options } = record(work, agent.version);
  return agent.run(input, { ...options, id: runIdOf(work), history, context, token, hooks: { any: onEvent } });
}

/** Follows a run that is under way, and records it. The task ends when all its events are recorded. */
export async function followRun(run: AdoptedRun, work: RecordedWork): Promise<TaskOutcome> {
  const { token } = work;
  const { adopted } = run;
  const { onEvent, ...options } = record(work);
  run.claim(options);
  token.onCancel((level, reason) => adopted.cancel(reason, { mode: toPreset(level), undo: token.undo }));
  work.onRun(adopted);
  for await (const event of adopted.events) onEvent(event);
  return outcomeOfRun(await adopted.outcome, work.history, NO_USAGE);
}

/** Returns what records a run in the journal of its task. */
function record(work: RecordedWork, version?: string): AdoptOptions & { readonly onEvent: (event: RunEvent) => void } {
  const boundary = new WaveBoundary(work);
  return {
    onEvent(event) {
      if (event.type === 'wave-start') boundary.reach();
      const isStart = event.type === 'run-start' && version !== undefined;
      if (event.type !== 'run-end') note(work, isStart ? { ...event, version } : event);
      work.onEvent(event);
    },
    beforeTurn: () => work.check(),
    beforeCall: boundary.beforeCall,
    // Wait for the flush: the `undo-start` event is in the journal by now, but not yet in the store.
    beforeUndo: () => work.journal.flushWhole(),
  };
}

interface Noted {
  readonly type: string;
  /** Of the agent whose run starts. */
  readonly version?: string;
  readonly reason?: { readonly kind: string };
  readonly messages?: unknown;
  readonly message?: unknown;
  readonly callId?: string;
  readonly tool?: string;
  /** The event of a run inside a call. */
  readonly event?: Noted;
}

/** Reasons that end the run but not the task: the worker hands the task on. */
const HANDED_ON: ReadonlySet<string> = new Set(['lease-lost', 'shutdown']);

function note({ journal, activity }: RecordedWork, event: Noted): void {
  activity.note(event);
  const isOfTask = event.reason === undefined || !HANDED_ON.has(event.reason.kind);
  if (!isOfTask && (event.type === 'level-change' || event.type === 'cancel-request')) return;
  journal.add(withoutHistory(event));
  const answered = nestedAnswer(event);
  if (answered !== undefined) journal.add(answered);
  // Write this as a separate entry: the next one replaces it.
  if (event.type === 'history-compacted') journal.add({ type: 'history', messages: event.messages });
  if (WRITTEN_AT_ONCE.has(event.type)) journal.flushSoon();
}

/** Returns the answer to a sub-agent's question with the call id and tool of that question. */
function nestedAnswer({ type, callId, tool, event }: Noted): Noted | undefined {
  if (type !== 'call-nested' || event === undefined) return undefined;
  const answer = event.type === 'approval-answer' ? event : nestedAnswer(event);
  return answer && { ...answer, callId: `${callId}/${answer.callId}`, tool: `${tool} › ${answer.tool}` };
}

/** Drops the history of a run inside a call: such a run is never resumed on its own. */
function withoutHistory(event: Noted): Noted {
  if (event.type === 'call-nested' && event.event !== undefined) {
    return { ...event, event: withoutHistory(event.event) };
  }
  if (event.type !== 'history-compacted') return event;
  const { messages: _messages, ...rest } = event;
  return rest;
}

/** What happens between a wave and its calls: the checker runs once, and each call is written to the journal. */
class WaveBoundary {
  readonly #work: RecordedWork;
  #checked: Promise<void> | undefined;

  constructor(work: RecordedWork) {
    this.#work = work;
  }

  /** Checks at the start of the wave, so that a pending approval does not delay a stop. */
  reach(): void {
    this.#checked = this.#work.check();
  }

  /** Don't let a call start before its intent is stored: after a crash nothing would show that it may have run. */
  readonly beforeCall: NonNullable<RunOptions['beforeCall']> = async ({ id, tool }) => {
    const { journal, token } = this.#work;
    await this.#checked;
    token.throwIfCancelled();
    journal.add({ type: 'call-intent', callId: id, tool });
    await journal.flushWhole();
    // Check again: a process that was suspended may get the response long after the store sent it.
    await this.#work.checkHeld();
    token.throwIfCancelled();
  };
}

function runIdOf({ task }: AgentWork): string {
  return `${task.id}.${task.epoch}`;
}

/**
 * Gives every call of the last turn one result: safe calls run again, the others get a result that says what is known.
 */
async function closeOpenCalls(
  standing: Standing,
  work: AgentWork,
  tools: readonly Tool[],
): Promise<readonly CallResult[]> {
  const { agent, world, token, journal } = work;
  const fates = new Map(standing.open.map((call) => [call.id, fateOf(call, tools)]));
  const again = standing.open.filter(({ id }) => fates.get(id) === 'again');
  const boundary = new WaveBoundary(work);
  const hooks: Hooks<RuntimeEvent> = {
    'wave-start': () => boundary.reach(),
    any: (event) => {
      note(work, event);
      work.onEvent({ ...event, runId: runIdOf(work) });
    },
  };
  const runtime = createRuntime({
    tools,
    ledger: agent.ledger,
    world,
    hooks,
    tellCancels: false,
    context: work.task.context,
    beforeCall: boundary.beforeCall,
  });
  const ran = new Map((await results(runtime.execute(again, { token }))).map((result) => [result.callId, result]));
  const closed = standing.open.map((call) => {
    const fate = fates.get(call.id)!;
    if (fate === 'again') return ran.get(call.id)!;
    const result = lostResult(call, fate, world.clock.now());
    journal.add({ type: 'call-end', result });
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
