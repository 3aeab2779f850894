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
} from '@whoa/core';
import type { World } from '@whoa/core/embed';
import type { Hooks, RuntimeEvent } from '@whoa/core/internal';
import type { JournalEntry, TaskOutcome, TaskRecord } from '../task.ts';
import { describeError } from './journal/entry.ts';
import type { Journal } from './journal/journal.ts';
import { outcomeOfRun, saidIn } from './outcome.ts';
import { fateOf, lostResult, resumeNotice, type Standing, standingOf, wordsIn } from './recovery/resume.ts';
import { messageOf } from './work.ts';

type RunInput = Parameters<Agent['run']>[0];

export interface AgentWork {
  readonly agent: Agent;
  readonly task: TaskRecord;
  /** What was said in the conversation before. */
  readonly history: readonly Json[];
  readonly past: readonly JournalEntry[];
  readonly journal: Journal;
  readonly world: World;
  readonly token: CancellationToken;
  /** Told the run as soon as there is one, so that it can be steered. */
  readonly onRun: (run: Run) => void;
  readonly onEvent: (event: RunEvent) => void;
  /** Asked before each turn and each wave: cancels the token if the task must stop. */
  readonly check: () => Promise<void>;
  /** Resolves when the task is still ours as far as the clock can tell; otherwise its token is cancelled by then. */
  readonly checkHeld: () => Promise<void>;
}

/** These are written down at once: they are what a crash must not lose. */
const WRITTEN_AT_ONCE: ReadonlySet<string> = new Set([
  'turn-end',
  'call-end',
  'steer-delivered',
  'history-compacted',
  'approval-request',
  'level-change',
  'undo-start',
  'undo-end',
]);

/** What had been said when a task began; messages that were taken as one are all but the last in it. */
export function historyBefore({ inputs }: TaskRecord, history: readonly Json[]): Message[] {
  return [...(history as unknown as readonly Message[]), ...inputs.slice(0, -1).map(messageOf)];
}

/** Runs an agent as a task, from the beginning or from where a lost worker left it. */
export async function runAgent(work: AgentWork): Promise<TaskOutcome> {
  const { task, history } = work;
  const standing = standingOf(work.past);
  const before = standing.isWhole ? [] : historyBefore(task, history);
  if (standing.complete) {
    // The lost worker had everything but the time to say so.
    const said = saidIn([...before, ...standing.messages], history);
    return { status: 'success', answer: wordsIn(standing.messages), ...said };
  }
  if (standing.messages.length <= 1 && !standing.isWhole)
    return start(work, { input: task.inputs.at(-1) as RunInput, history: before });
  const results = await closeOpenCalls(standing, work);
  const unknown = results.filter(({ state }) => state === 'unknown');
  const closed = results.map((result): Message => ({ role: 'tool', ...result }));
  return start(work, { input: resumeNotice(unknown), history: [...before, ...standing.messages, ...closed] });
}

async function start(
  work: AgentWork,
  { input, history }: { input: RunInput; history: Message[] },
): Promise<TaskOutcome> {
  let run: Run;
  try {
    run = begin(work, { input, history });
  } catch (error) {
    // What no worker can run is no worker's death: it would take others' tasks along.
    return { status: 'failed', error: describeError(error) };
  }
  work.onRun(run);
  return outcomeOfRun(await run.outcome, work.history);
}

/** Throws for an input or a history that is none. */
function begin(work: AgentWork, { input, history }: { input: RunInput; history: Message[] }): Run {
  const { agent, token } = work;
  const boundary = new WaveBoundary(work);
  return agent.run(input, {
    id: runIdOf(work),
    history,
    token,
    hooks: {
      'wave-start': () => boundary.reach(),
      any: (event) => {
        if (event.type !== 'run-end') note(work, event);
        work.onEvent(event);
      },
    },
    beforeTurn: () => work.check(),
    beforeCall: boundary.beforeCall,
    // Its `undo-start` is in the journal by now, but not yet in the store.
    beforeUndo: () => work.journal.flushWhole(),
  });
}

interface Noted {
  readonly type: string;
  readonly reason?: { readonly kind: string };
  readonly messages?: unknown;
  /** Of a run inside a call. */
  readonly event?: Noted;
}

/** Why a worker stops that hands its task on: these end the run, not the task. */
const HANDED_ON: ReadonlySet<string> = new Set(['lease-lost', 'shutdown']);

function note({ journal }: AgentWork, event: Noted): void {
  const isOfTask = event.reason === undefined || !HANDED_ON.has(event.reason.kind);
  if (!isOfTask && (event.type === 'level-change' || event.type === 'cancel-request')) return;
  journal.add(withoutHistory(event));
  // An entry of its own: the next one replaces it.
  if (event.type === 'history-compacted') journal.add({ type: 'history', messages: event.messages });
  if (WRITTEN_AT_ONCE.has(event.type)) journal.flushSoon();
}

/** A run inside a call is never resumed by itself, so nobody needs its history. */
function withoutHistory(event: Noted): Noted {
  if (event.type === 'call-nested' && event.event !== undefined) {
    return { ...event, event: withoutHistory(event.event) };
  }
  if (event.type !== 'history-compacted') return event;
  const { messages: _messages, ...told } = event;
  return told;
}

/** What happens between a wave and its calls: the checker is asked once, and each call is written down. */
class WaveBoundary {
  readonly #work: AgentWork;
  #checked: Promise<void> | undefined;

  constructor(work: AgentWork) {
    this.#work = work;
  }

  /** Asks at the start of the wave: a person who is asked for approval meanwhile does not delay a stop. */
  reach(): void {
    this.#checked = this.#work.check();
  }

  /** Don't let a call begin before its intent is in the store: after a crash nobody could tell that it may have run. */
  readonly beforeCall: NonNullable<RunOptions['beforeCall']> = async ({ id, tool }) => {
    const { journal, token } = this.#work;
    await this.#checked;
    token.throwIfCancelled();
    journal.add({ type: 'call-intent', callId: id, tool });
    await journal.flushWhole();
    // A process that was stopped, or slept, hears the answer long after it was given.
    await this.#work.checkHeld();
    token.throwIfCancelled();
  };
}

function runIdOf({ task }: AgentWork): string {
  return `${task.id}.${task.epoch}`;
}

/** Gives every call of the last turn its one result: those that are safe run again, the others are told truthfully. */
async function closeOpenCalls(standing: Standing, work: AgentWork): Promise<readonly CallResult[]> {
  const { agent, world, token, journal } = work;
  const fates = new Map(standing.open.map((call) => [call.id, fateOf(call, agent.tools)]));
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
    tools: agent.tools,
    ledger: agent.ledger,
    world,
    hooks,
    tellCancels: false,
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
