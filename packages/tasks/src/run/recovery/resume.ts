import type { Agent, CallResult, CancelReason, Json, Message, RunEvent, StopReport, Tool } from '@whoa/core';
import type { AssistantMessage, UserMessage } from '@whoa/core/embed';
import { HistoryBuilder, toReplyText } from '@whoa/core/internal';
import type { JournalEntry, StopOrder } from '../../task.ts';
import { isTruncated } from '../journal/truncate.ts';

/** A call of the last turn that has no result in the journal. */
export interface OpenCall {
  readonly id: string;
  readonly tool: string;
  readonly input: unknown;
  /** The journal has its intent, so it may have taken effect. */
  readonly started: boolean;
  /** Its input was too large for the journal, so it cannot be run again. */
  readonly isTruncated: boolean;
}

/** The state of a run when its worker was lost, as far as the journal shows. */
export interface RecoveryState {
  /** What the run added to the history: its input, whole turns, results. */
  readonly messages: readonly Message[];
  readonly open: readonly OpenCall[];
  readonly results: readonly CallResult[];
  /** The text of a reply that was cut off. */
  readonly partial: string;
  /** The run had given its final reply. */
  readonly isComplete: boolean;
  readonly undone: ReadonlyMap<string, 'undone' | 'failed' | 'unknown'>;
  /** The input of each call. */
  readonly inputs: ReadonlyMap<string, unknown>;
  /** The messages are the whole history, not only what the run added: it had compacted the history. */
  readonly isWhole: boolean;
  /** Calls that the journal has only in part. */
  readonly cut: ReadonlySet<string>;
  /** The version of the agent that ran it last. */
  readonly version?: string | undefined;
}

interface Reading {
  readonly history: HistoryBuilder;
  readonly undone: Map<string, 'undone' | 'failed' | 'unknown'>;
  readonly inputs: Map<string, unknown>;
  readonly cut: Set<string>;
  isWhole: boolean;
  version?: string | undefined;
}

/** Events in a journal that do not come from a run. */
type OwnEvent =
  | { readonly type: 'history'; readonly messages: readonly Message[] }
  | { readonly type: 'call-intent' | 'undo-start'; readonly callId: string }
  | { readonly type: 'undo-end'; readonly callId: string; readonly state: 'undone' | 'failed' };

/** Reads a journal from the start. */
export function standingOf(journal: readonly JournalEntry[]): RecoveryState {
  const history = new HistoryBuilder();
  const reading: Reading = { history, undone: new Map(), inputs: new Map(), cut: new Set(), isWhole: false };
  for (const { event } of journal) read(reading, event as unknown as RunEvent | OwnEvent);
  const { undone, inputs, cut, isWhole } = reading;
  const { messages, results } = history;
  const open = [...history.openCalls].map(({ callId, tool, input, isStarted }) => {
    return { id: callId, tool, input, started: isStarted, isTruncated: isTruncated(input) };
  });
  const partial = toReplyText({ content: history.partial });
  const last = messages.at(-1);
  const isComplete = open.length === 0 && last?.role === 'assistant' && last.stopReason === 'stop' && partial === '';
  const { version } = reading;
  return { messages, open, results, undone, inputs, cut, partial, isComplete: isComplete, isWhole, version };
}

function read(reading: Reading, event: RunEvent | OwnEvent): void {
  const { history, undone } = reading;
  switch (event.type) {
    case 'run-start':
      // A run that got no further than its input was started again.
      if (history.messages.length === 1 && !reading.isWhole) history.replace([]);
      history.dropPartial();
      history.apply(event);
      reading.version = (event as { readonly version?: string }).version;
      break;
    case 'history':
      history.replace(event.messages);
      reading.isWhole = true;
      break;
    case 'turn-end':
      // A reply that failed or was cut off is requested again. Its text stays in the journal.
      if (event.message.stopReason === 'error') history.dropPartial();
      else readReply(reading, event);
      break;
    case 'call-intent':
      history.startCall(event.callId);
      break;
    case 'call-end':
      if ('cut' in event) reading.cut.add(event.result.callId);
      history.apply(event);
      break;
    case 'undo-start':
      undone.set(event.callId, 'unknown');
      break;
    case 'undo-end':
      undone.set(event.callId, event.state);
      break;
    // The messages of a compaction are in `history`. A call counts as started only if its intent was written before.
    case 'history-compacted':
    case 'call-start':
      break;
    default:
      history.apply(event);
  }
}

function readReply({ history, inputs, cut }: Reading, event: Extract<RunEvent, { type: 'turn-end' }>): void {
  history.apply(event);
  for (const part of event.message.content) {
    if (part.type !== 'call') continue;
    inputs.set(part.callId, part.input);
    if (isTruncated(part.input)) cut.add(part.callId);
  }
}

/** Decides about an open call after a crash: run it again, or give it a truthful result without running it. */
export function decideRecovery(call: OpenCall, tools: readonly Tool[]): 'again' | 'unknown' | 'not-started' {
  // It may have been waiting for a yes.
  if (!call.started) return 'not-started';
  const tool = tools.find(({ name }) => name === call.tool);
  return tool?.replay === 'safe' && !call.isTruncated ? 'again' : 'unknown';
}

const LOST_CALL_TEXT = {
  unknown: 'Outcome unknown: the process that ran it stopped before it ended. It may have taken effect.',
  'not-started': 'Not started: the process that should have run it stopped first. It had no effect.',
};

/** The result of a call whose worker was lost. */
export function createLostResult(call: OpenCall, state: 'unknown' | 'not-started', endedAt: number): CallResult {
  return { callId: call.id, tool: call.tool, state, content: LOST_CALL_TEXT[state], isError: true, endedAt };
}

/** The agent was changed while its worker was away. */
export interface AgentUpdate {
  readonly from: string;
  readonly to: string;
  /** Tools that the run has used and that the agent no longer has. */
  readonly removedTools: readonly string[];
}

/** Returns what changed since a run was started; `undefined` if its agent is the same, or not known to be another. */
export function diffAgentVersion(
  { version: from, messages, open }: RecoveryState,
  { version: to, tools }: Pick<Agent, 'version' | 'tools'>,
): AgentUpdate | undefined {
  if (from === undefined || to === undefined || from === to) return undefined;
  const results = messages.filter((message) => message.role === 'tool');
  const used = [...results, ...open].map(({ tool }) => tool);
  const has = new Set(tools.map(({ name }) => name));
  return { from, to, removedTools: [...new Set(used)].filter((name) => !has.has(name)) };
}

/** The message to the model when it continues after a crash. */
export function resumeNotice(unknown: readonly CallResult[], update?: AgentUpdate): UserMessage {
  const said = ['The process you ran in was restarted; go on from where you were.'];
  if (update !== undefined) {
    said.push('Your instructions or tools were changed in between; those you see now hold.');
    if (update.removedTools.length > 0) said.push(`You no longer have these tools: ${update.removedTools.join(', ')}.`);
  }
  if (unknown.length > 0) {
    const names = unknown.map(({ tool, callId }) => `${tool} (${callId})`).join(', ');
    said.push(`It is not known whether these took effect: ${names}. Do not repeat them without checking.`);
  }
  return { role: 'user', isNotice: true, content: said.join(' ') };
}

/** Ends a run whose worker was lost while it was being cancelled: nothing runs again, and every call gets a result. */
export function settle(
  standing: RecoveryState,
  stop: Pick<StopOrder, 'reason'> & Pick<StopReport, 'notUndone'>,
  now: number,
): { messages: readonly Message[]; answer: string; stop: Json } {
  const closed = standing.open.map((call) => createLostResult(call, call.started ? 'unknown' : 'not-started', now));
  const words: AssistantMessage[] =
    standing.partial === ''
      ? []
      : [{ role: 'assistant', content: [{ type: 'text', text: standing.partial }], stopReason: 'aborted' }];
  const messages = [...standing.messages, ...closed.map((result): Message => ({ role: 'tool', ...result })), ...words];
  return {
    messages,
    answer: wordsIn(messages),
    stop: reportOf(standing, closed, { ...stop, now }) as unknown as Json,
  };
}

/** Describes calls of a lost worker for the stop report. */
export function describeLost(
  calls: readonly CallResult[],
  { undone, reason }: { readonly undone: RecoveryState['undone']; readonly reason: CancelReason },
): StopReport['calls'] {
  return calls.map(({ callId, tool, state, endedAt }) => {
    const undo = undone.get(callId);
    return {
      callId,
      tool,
      state,
      afterMs: endedAt - reason.at,
      wasWaitedFor: false,
      ...(undo !== undefined && { undo }),
    };
  });
}

function reportOf(
  { undone, results }: RecoveryState,
  closed: readonly CallResult[],
  { reason, notUndone = [], now }: Pick<StopReport, 'reason' | 'notUndone'> & { readonly now: number },
): StopReport {
  const calls = describeLost([...results.filter(({ callId }) => undone.has(callId)), ...closed], { undone, reason });
  const cleanupErrors = ['its worker was lost; what it left behind was not looked for'];
  return {
    reason,
    settledAfterMs: now - reason.at,
    levels: [],
    calls,
    ...(notUndone.length > 0 && { notUndone }),
    cleanupErrors,
    isClean: false,
  };
}

/** Returns the text of the last reply in a list of messages. */
export function wordsIn(messages: readonly Message[]): string {
  const reply = messages.findLast((message) => message.role === 'assistant');
  return reply === undefined ? '' : toReplyText(reply);
}
