import {
  type Agent,
  type BeforeCall,
  type CallResult,
  type CancellationToken,
  createRuntime,
  isCancelledError,
  type Json,
  type Message,
  type Run,
  type RunInput,
  type World,
} from '@whoa/core';
import type { JournalEntry, TaskOutcome, TaskRecord } from '../task.ts';
import type { Journal } from './journal.ts';
import { outcomeOfRun, saidIn } from './outcome.ts';
import { fateOf, lostResult, resumeNotice, type Standing, standingOf, wordsIn } from './resume.ts';

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
  readonly onEvent: (event: { readonly type: string }) => void;
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
  const earlier = inputs.slice(0, -1) as readonly RunInput[];
  return [...(history as unknown as readonly Message[]), ...earlier.map(asMessage)];
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
  const { agent, task, token } = work;
  const run = agent.run(input, {
    id: `${task.id}.${task.epoch}`,
    history,
    token,
    hooks: { any: (event) => event.type !== 'run-end' && note(work, event) },
    beforeCall: writeIntent(work),
    // Its `undo-start` is in the journal by now, but not yet in the store.
    beforeUndo: () => work.journal.flushWhole(),
  });
  work.onRun(run);
  return outcomeOfRun(await run.outcome, work.history);
}

interface Noted {
  readonly type: string;
  readonly messages?: unknown;
  /** Of a run inside a call. */
  readonly event?: Noted;
}

function note({ journal, onEvent }: AgentWork, event: Noted): void {
  journal.add(withoutHistory(event));
  // An entry of its own: the next one replaces it.
  if (event.type === 'history-compacted') journal.add({ type: 'history', messages: event.messages });
  if (WRITTEN_AT_ONCE.has(event.type)) journal.flushSoon();
  onEvent(event);
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

/** Don't let a call begin before this is in the store: after a crash nobody could tell that it may have run. */
function writeIntent({ journal }: AgentWork): BeforeCall {
  return async ({ id, tool }) => {
    journal.add({ type: 'call-intent', callId: id, tool });
    await journal.flushWhole();
  };
}

/** Gives every call of the last turn its one result: those that are safe run again, the others are told truthfully. */
async function closeOpenCalls(standing: Standing, work: AgentWork): Promise<readonly CallResult[]> {
  const { agent, world, token, journal } = work;
  const fates = new Map(standing.open.map((call) => [call.id, fateOf(call, agent.tools)]));
  const again = standing.open.filter(({ id }) => fates.get(id) === 'again');
  const hooks = { any: (event: { readonly type: string }) => note(work, event) };
  const runtime = createRuntime({
    tools: agent.tools,
    ledger: agent.ledger,
    world,
    hooks,
    beforeCall: writeIntent(work),
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

function asMessage(input: RunInput): Message {
  return typeof input === 'object' && 'role' in input ? input : { role: 'user', content: input };
}
