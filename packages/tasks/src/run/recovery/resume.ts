import type { CallResult, CancelReason, Message, RunEvent, StopReport, Tool } from '@whoa/core';
import { HistoryBuilder, toReplyText } from '@whoa/core/internal';
import type { JournalEntry, ProviderWait } from '../../task.ts';
import type { PostponedTurn } from '../journal/journal-event.ts';
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
  /** The calls that must have succeeded before it starts. */
  readonly dependsOn?: readonly string[];
  /** The digest of what was shown to the user who approved it. */
  readonly shown?: string | undefined;
  /** The key of its effect, if it may have started. */
  readonly effectKey?: string | undefined;
  readonly startedAt?: number | undefined;
}

/** How an undo ended, and why it failed. */
export interface UndoEnd {
  readonly state: NonNullable<StopReport['calls'][number]['undo']>;
  readonly error?: string | undefined;
}

/** The state of a run when its worker was lost, according to the journal. */
export interface RecoveryState {
  /** What the run added to the history: its input, whole turns, results. */
  readonly messages: readonly Message[];
  readonly open: readonly OpenCall[];
  readonly results: readonly CallResult[];
  /** The text of a reply that was cut off. */
  readonly partial: string;
  /** The run had given its final reply. */
  readonly isComplete: boolean;
  readonly undone: ReadonlyMap<string, UndoEnd>;
  /** The input of each call. */
  readonly inputs: ReadonlyMap<string, unknown>;
  /** The keys of the effects of calls that may have started. */
  readonly effectKeys: ReadonlyMap<string, string>;
  /** The messages are the whole history, not only what the run added: it had compacted the history. */
  readonly isWhole: boolean;
  /** Calls that the journal has only in part. */
  readonly cut: ReadonlySet<string>;
  /** The version of the agent that ran it last. */
  readonly version?: string | undefined;
  /** The last wait for the provider, if there was no complete reply since. */
  readonly wait?: ProviderWait | undefined;
  /** The runs inside its calls, by call. */
  readonly nested: ReadonlyMap<string, RecoveryState>;
  /** Its worker recorded the calls of runs inside calls before they started, so that those can be continued. */
  readonly isNestedRecorded: boolean;
  /** Its beginning is not whole, so it cannot be continued. */
  readonly isCut: boolean;
  /** When each call ended, in the order of all ends of the task. */
  readonly order: ReadonlyMap<string, number>;
  /** What it has used, without the runs inside its calls. */
  readonly spent: { readonly turns: number; readonly calls: number; readonly tokens: number };
}

class Reading {
  readonly nested = new Map<string, Reading>();
  readonly order = new Map<string, number>();
  readonly spent = { turns: 0, calls: 0, tokens: 0 };
  isNestedRecorded: boolean = false;
  /** What it started with is not whole. */
  isCut: boolean = false;
  readonly history = new HistoryBuilder();
  readonly undone = new Map<string, UndoEnd>();
  readonly inputs = new Map<string, unknown>();
  readonly cut = new Set<string>();
  readonly needs = new Map<string, readonly string[] | undefined>();
  readonly shown = new Map<string, string | undefined>();
  readonly effectKeys = new Map<string, string>();
  readonly startedAt = new Map<string, number>();
  /** How many workers have started each call, or were about to. */
  readonly intents = new Map<string, number>();
  isWhole: boolean = false;
  version?: string | undefined;
  wait?: ProviderWait | undefined;
}

/** Events in a journal that do not come from a run. */
type OwnEvent =
  | PostponedTurn
  | { readonly type: 'history'; readonly messages: readonly Message[] }
  | {
      readonly type: 'call-intent';
      readonly callId: string;
      readonly tool: string;
      readonly shown?: string;
      readonly effectKey?: string;
      /** The call did not start: its worker was told to hand the task on. */
      readonly withdrawn?: boolean;
    }
  | { readonly type: 'undo-start'; readonly callId: string }
  | ({ readonly type: 'undo-end'; readonly callId: string } & UndoEnd);

/** Reads a journal from the start. */
export function readRecoveryState(journal: readonly JournalEntry[]): RecoveryState {
  const reading = new Reading();
  for (const { event, position, at } of journal)
    read(reading, event as unknown as RunEvent | OwnEvent, { position, time: at });
  return toState(reading);
}

function toState(reading: Reading): RecoveryState {
  const { history, undone, inputs, cut, isWhole, version, wait } = reading;
  const { messages, results } = history;
  const open = [...history.openCalls].map(({ callId: id, tool, input, isStarted: started }): OpenCall => {
    const dependsOn = reading.needs.get(id);
    const kept = {
      shown: reading.shown.get(id),
      effectKey: reading.effectKeys.get(id),
      startedAt: reading.startedAt.get(id),
    };
    const more = { ...kept, ...(dependsOn && { dependsOn }) };
    return { id, tool, input, started, isTruncated: isTruncated(input), ...more };
  });
  const partial = toReplyText({ content: history.partial });
  const last = messages.at(-1);
  const isComplete = open.length === 0 && last?.role === 'assistant' && last.stopReason === 'stop' && partial === '';
  const { order, spent, isNestedRecorded, effectKeys } = reading;
  const nested = new Map([...reading.nested].map(([callId, one]) => [callId, toState(one)]));
  const more = { nested, isNestedRecorded, isCut: reading.isCut, order, spent, effectKeys };
  const known = { undone, inputs, cut, isWhole, version, wait, ...more };
  return { messages, open, results, partial, isComplete, ...known };
}

interface ReadAt {
  readonly position: number;
  readonly time: number;
  /** The entry is not whole. */
  readonly isCut?: boolean;
}

function read(reading: Reading, event: RunEvent | OwnEvent, at: ReadAt): void {
  const { history, undone } = reading;
  const isCut = at.isCut === true || 'cut' in event;
  switch (event.type) {
    case 'call-event': {
      const inner = reading.nested.get(event.callId) ?? new Reading();
      // Any tool may nest, and its events may only look like ours.
      if (event.event.type === 'run-start') reading.nested.set(event.callId, inner);
      if (reading.nested.has(event.callId)) read(inner, event.event as RunEvent, { ...at, isCut });
      break;
    }
    case 'run-start':
      reading.isNestedRecorded = (event as { readonly nested?: number }).nested === 1;
      reading.isCut ||= isCut;
      // A run that got no further than its input was started again.
      if (history.messages.length === 1 && !reading.isWhole) history.replace([]);
      history.dropPartial();
      history.apply(event);
      reading.version = (event as { readonly version?: string }).version;
      break;
    case 'history':
      history.replace(event.messages);
      reading.isWhole = true;
      reading.isCut ||= isCut;
      break;
    case 'turn-end':
      // A reply that failed or was cut off is requested again. Its text stays in the journal.
      if (event.message.stopReason === 'error') history.dropPartial();
      else readReply(reading, event);
      break;
    case 'turn-postponed':
      reading.wait = event;
      break;
    case 'call-intent':
      noteIntent(reading, event, at.time);
      break;
    case 'call-end':
      if (isCut) reading.cut.add(event.result.callId);
      reading.order.set(event.result.callId, at.position);
      history.apply(event);
      break;
    case 'undo-start':
      undone.set(event.callId, { state: 'unknown' });
      break;
    case 'undo-end':
      undone.set(event.callId, event);
      break;
    // The messages of a compaction are in `history`. A call counts as started only if its intent was written before.
    case 'history-compacted':
    case 'call-start':
      break;
    default:
      history.apply(event);
  }
}

function noteIntent(reading: Reading, event: Extract<OwnEvent, { type: 'call-intent' }>, time: number): void {
  const { history, intents, inputs, shown, effectKeys } = reading;
  const { callId, tool, effectKey } = event;
  const count = (intents.get(callId) ?? 0) + (event.withdrawn ? -1 : 1);
  intents.set(callId, count);
  if (!event.withdrawn) shown.set(callId, event.shown);
  if (effectKey !== undefined) effectKeys.set(callId, effectKey);
  reading.startedAt.set(callId, time);
  if (count > 0) history.startCall(callId);
  // An earlier worker may have started it. If none has, it had no effect.
  else if (history.isOpen(callId)) history.openCall({ callId, tool, input: inputs.get(callId) });
}

function readReply(reading: Reading, event: Extract<RunEvent, { type: 'turn-end' }>): void {
  const { history, inputs, cut, needs, spent } = reading;
  const { inputTokens = 0, outputTokens = 0 } = event.message.usage ?? {};
  spent.turns++;
  spent.tokens += inputTokens + outputTokens;
  history.apply(event);
  if (event.message.stopReason !== 'aborted') reading.wait = undefined;
  for (const part of event.message.content) {
    if (part.type !== 'call') continue;
    spent.calls++;
    inputs.set(part.callId, part.input);
    needs.set(part.callId, part.dependsOn);
    if (isTruncated(part.input)) cut.add(part.callId);
  }
}

/** Returns those of some calls that can still start: all that they depend on succeeded, or is among them. */
export function findStartable(calls: readonly OpenCall[], results: readonly CallResult[]): readonly OpenCall[] {
  const succeeded = new Set(results.filter(({ isError }) => !isError).map(({ callId }) => callId));
  const ids = new Set(calls.map(({ id }) => id));
  const canStart = ({ dependsOn = [] }: OpenCall): boolean =>
    dependsOn.every((need) => succeeded.has(need) || ids.has(need));
  const startable = calls.filter(canStart);
  if (startable.length < calls.length) return findStartable(startable, results);
  return calls.map(({ dependsOn = [], ...call }) => {
    const needs = dependsOn.filter((need) => ids.has(need));
    return needs.length === 0 ? call : { ...call, dependsOn: needs };
  });
}

/** Decides about an open call after a crash: run it again, or give it a truthful result without running it. */
export function decideRecovery(call: OpenCall, tools: readonly Tool[]): 'again' | 'unknown' | 'not-started' {
  if (!call.started) return 'not-started';
  const tool = tools.find(({ name }) => name === call.tool);
  return tool?.replay === 'safe' && !call.isTruncated ? 'again' : 'unknown';
}

const LOST_CALL_TEXT = {
  unknown: 'Outcome unknown: the process that ran it stopped before it ended. It may have taken effect.',
  'not-started': 'Not started: the process that should have run it stopped first. It had no effect.',
};

/** The result of a call whose worker was lost. */
export function createLostResult(
  call: Pick<OpenCall, 'id' | 'tool'>,
  state: 'unknown' | 'not-started',
  endedAt: number,
): CallResult {
  return { callId: call.id, tool: call.tool, state, content: LOST_CALL_TEXT[state], isError: true, endedAt };
}

/** Describes calls of a lost worker for the stop report. */
export function describeLost(
  calls: readonly CallResult[],
  { undone, reason }: { readonly undone: RecoveryState['undone']; readonly reason: CancelReason },
): StopReport['calls'] {
  return calls.map(({ callId, tool, state, endedAt }) => {
    const undo = undone.get(callId);
    const about = { callId, tool, state, afterMs: Math.round(endedAt - reason.at), wasWaitedFor: false };
    if (undo === undefined) return about;
    return { ...about, undo: undo.state, ...(undo.error !== undefined && { undoError: undo.error }) };
  });
}

/** Returns the text of the last reply in a list of messages. */
export function joinWords(messages: readonly Message[]): string {
  const reply = messages.findLast((message) => message.role === 'assistant');
  return reply === undefined ? '' : toReplyText(reply);
}
