import type { CallResult, CancelReason, Json, Message, StopReport, Tool } from '@whoa/core';
import type { AssistantMessage, UserMessage } from '@whoa/core/embed';
import type { JournalEntry, StopOrder } from '../task.ts';
import { isCut } from './cut.ts';

/** A call of the last turn that has no result in the journal. */
export interface OpenCall {
  readonly id: string;
  readonly tool: string;
  readonly input: unknown;
  /** It was written down that it would begin; it may have taken effect. */
  readonly begun: boolean;
  /** Its input was too large for the journal, so it cannot be run again. */
  readonly isCut: boolean;
}

/** Where a run stood when its worker was lost, as far as it was written down. */
export interface Standing {
  /** What the run had added to the history: its input, whole turns, results. */
  readonly messages: readonly Message[];
  readonly open: readonly OpenCall[];
  readonly results: readonly CallResult[];
  /** Words of a reply that was cut off. */
  readonly partial: string;
  /** The run had said its last word. */
  readonly complete: boolean;
  readonly undone: ReadonlyMap<string, 'undone' | 'failed' | 'unknown'>;
  /** What each call was asked. */
  readonly inputs: ReadonlyMap<string, unknown>;
  /** The messages are the whole history, not only what the run added: it had made it shorter. */
  readonly isWhole: boolean;
  /** Calls of which the journal has only a part. */
  readonly cut: ReadonlySet<string>;
}

interface Reading {
  readonly messages: Message[];
  readonly open: Map<string, OpenCall>;
  readonly results: CallResult[];
  readonly undone: Map<string, 'undone' | 'failed' | 'unknown'>;
  readonly inputs: Map<string, unknown>;
  readonly cut: Set<string>;
  partial: string;
  isWhole: boolean;
}

type Event = { readonly type?: string } & Readonly<Record<string, unknown>>;

/** Reads a journal from its beginning. */
export function standingOf(journal: readonly JournalEntry[]): Standing {
  const reading: Reading = {
    messages: [],
    open: new Map(),
    results: [],
    undone: new Map(),
    inputs: new Map(),
    cut: new Set(),
    partial: '',
    isWhole: false,
  };
  for (const { event } of journal) take(reading, event as Event);
  const { messages, open, results, undone, inputs, cut, partial, isWhole } = reading;
  const last = messages.at(-1);
  const complete = open.size === 0 && last?.role === 'assistant' && last.stopReason === 'stop' && partial === '';
  return { messages, open: [...open.values()], results, undone, inputs, cut, partial, complete, isWhole };
}

function take(reading: Reading, event: Event): void {
  switch (event.type) {
    case 'run-start':
      // A run that got no further than its input was started anew.
      if (reading.messages.length === 1 && !reading.isWhole) reading.messages.pop();
      reading.messages.push(event['input'] as UserMessage);
      reading.partial = '';
      break;
    case 'history':
      reading.messages.splice(0, Infinity, ...(event['messages'] as readonly Message[]));
      reading.isWhole = true;
      break;
    case 'steer-delivered':
      reading.messages.push(event['message'] as UserMessage);
      break;
    case 'turn-start':
      reading.partial = '';
      break;
    case 'text':
      reading.partial += event['text'] as string;
      break;
    case 'turn-end':
      takeTurn(reading, event['message'] as AssistantMessage);
      break;
    case 'call-intent':
      takeIntent(reading, event['callId'] as string);
      break;
    case 'call-end':
      if (event['cut'] !== undefined) reading.cut.add((event['result'] as CallResult).callId);
      takeResult(reading, event['result'] as CallResult);
      break;
    case 'undo-start':
      reading.undone.set(event['callId'] as string, 'unknown');
      break;
    case 'undo-end':
      reading.undone.set(event['callId'] as string, event['state'] as 'undone');
      break;
    default:
      break;
  }
}

function takeTurn(reading: Reading, message: AssistantMessage): void {
  reading.partial = '';
  // A reply that failed or was cut off is asked for again; what it said stays in the journal.
  if (message.content.length === 0 || message.stopReason === 'error') return;
  reading.messages.push(message);
  for (const part of message.content) {
    if (part.type === 'call') {
      const { callId, tool, input } = part;
      if (isCut(input)) reading.cut.add(callId);
      reading.inputs.set(callId, input);
      reading.open.set(callId, { id: callId, tool, input, begun: false, isCut: isCut(input) });
    }
  }
}

function takeIntent({ open }: Reading, callId: string): void {
  const call = open.get(callId);
  if (call !== undefined) open.set(callId, { ...call, begun: true });
}

function takeResult({ open, messages, results }: Reading, result: CallResult): void {
  if (!open.delete(result.callId)) return;
  messages.push({ role: 'tool', ...result });
  results.push(result);
}

/** What becomes of an open call after a crash: it runs again, or gets a truthful result without running. */
export function fateOf(call: OpenCall, tools: readonly Tool[]): 'again' | 'unknown' | 'not-started' {
  const tool = tools.find(({ name }) => name === call.tool);
  if (tool?.replay === 'safe' && !call.isCut) return 'again';
  return call.begun ? 'unknown' : 'not-started';
}

const LOST_WORDS = {
  unknown: 'Outcome unknown: the process that ran it stopped before it ended. It may have taken effect.',
  'not-started': 'Not started: the process that should have run it stopped first. It had no effect.',
};

/** The result of a call whose worker was lost. */
export function lostResult(call: OpenCall, state: 'unknown' | 'not-started', endedAt: number): CallResult {
  return { callId: call.id, tool: call.tool, state, content: LOST_WORDS[state], isError: true, endedAt };
}

/** What a model is told when it goes on after a crash. */
export function resumeNotice(unknown: readonly CallResult[]): UserMessage {
  const said = ['The process you ran in was restarted; go on from where you were.'];
  if (unknown.length > 0) {
    const names = unknown.map(({ tool, callId }) => `${tool} (${callId})`).join(', ');
    said.push(`It is not known whether these took effect: ${names}. Do not repeat them without checking.`);
  }
  return { role: 'user', content: said.join(' ') };
}

/** Ends a run whose worker was lost while it was being cancelled: nothing runs again, everything gets its result. */
export function settle(
  standing: Standing,
  stop: Pick<StopOrder, 'reason'>,
  now: number,
): { messages: readonly Message[]; answer: string; stop: Json } {
  const closed = standing.open.map((call) => lostResult(call, call.begun ? 'unknown' : 'not-started', now));
  const words: AssistantMessage[] =
    standing.partial === ''
      ? []
      : [{ role: 'assistant', content: [{ type: 'text', text: standing.partial }], stopReason: 'aborted' }];
  const messages = [...standing.messages, ...closed.map((result): Message => ({ role: 'tool', ...result })), ...words];
  return {
    messages,
    answer: wordsIn(messages),
    stop: reportOf(standing, closed, { reason: stop.reason, now }) as unknown as Json,
  };
}

function reportOf(
  { undone, results }: Standing,
  closed: readonly CallResult[],
  { reason, now }: { reason: CancelReason; now: number },
): StopReport {
  const calls = [...results.filter(({ callId }) => undone.has(callId)), ...closed].map((result) => {
    const undo = undone.get(result.callId);
    const { callId, tool, state, endedAt } = result;
    return { callId, tool, state, afterMs: endedAt - reason.at, waitedFor: false, ...(undo !== undefined && { undo }) };
  });
  const cleanupErrors = ['its worker was lost; what it left behind was not looked for'];
  return {
    reason,
    settledAfterMs: now - reason.at,
    levels: [],
    calls,
    cleanupErrors,
    clean: false,
  };
}

/** The words of the last reply in some messages. */
export function wordsIn(messages: readonly Message[]): string {
  const reply = messages.findLast((message) => message.role === 'assistant');
  return reply === undefined ? '' : reply.content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}
