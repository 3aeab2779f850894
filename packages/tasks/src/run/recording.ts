import type { CallResult, Json, RunEvent, RunOptions } from '@whoa/core';
import type { TaskRecord } from '../task.ts';
import type { AdoptOptions } from './adopted-run.ts';
import type { ClaimHolder } from './claim-holder.ts';
import type { ProviderWaiter } from './provider-wait.ts';
import type { Parking } from './questions/parking.ts';

/** A task, and where its run is recorded. */
export interface RecordedWork {
  readonly task: TaskRecord;
  /** The earlier messages of the conversation. */
  readonly history: readonly Json[];
  readonly holder: ClaimHolder;
  readonly parking: Parking;
  /** Left out if the task does not wait for the provider of its model. */
  readonly waiter?: ProviderWaiter | undefined;
  readonly onEvent: ((event: RunEvent) => void) | undefined;
  /** Called before each turn and each wave. Cancels the token if the task must stop. */
  readonly check: () => Promise<void>;
  /** Resolves once the lease has been checked against the clock. If it may be lost, the token is cancelled by then. */
  readonly checkHeld: () => Promise<void>;
}

/** Events that are written immediately, because a crash must not lose them. So is `steer-delivered`, with its command. */
const FLUSHED_IMMEDIATELY: ReadonlySet<string> = new Set([
  'turn-end',
  'call-end',
  'history-compacted',
  'approval-requested',
  'level-changed',
  'undo-start',
  'undo-end',
]);

/** Returns what records a run in the journal of its task. */
export function record(
  work: RecordedWork,
  version?: string,
): AdoptOptions & { readonly onEvent: (event: RunEvent) => void } {
  const boundary = new WaveBoundary(work);
  return {
    onEvent(event) {
      if (event.type === 'wave-start') boundary.reach();
      for (const one of work.waiter?.filter(event) ?? [event]) {
        const isStart = one.type === 'run-start' && version !== undefined;
        if (one.type !== 'run-end') recordEvent(work, isStart ? { ...one, version } : one);
      }
      if (event.type === 'steer-delivered') work.holder.commands.delivered(event.message);
      work.onEvent?.(event);
    },
    beforeTurn: () => work.check(),
    // The `spending` event that reserves for the request is in the journal by now, but not yet in the store.
    beforeRequest: async () => {
      await work.holder.journal.flushWhole();
      await work.checkHeld();
    },
    beforeCall: boundary.beforeCall,
    answer: work.holder.questions.answerCall,
    // Wait for the flush: the `undo-start` event is in the journal by now, but not yet in the store.
    beforeUndo: () => work.holder.journal.flushWhole(),
  };
}

interface RecordedEvent {
  readonly type: string;
  /** Of the agent whose run starts. */
  readonly version?: string;
  readonly reason?: { readonly kind: string };
  readonly messages?: unknown;
  readonly message?: unknown;
  readonly callId?: string;
  readonly tool?: string;
  readonly result?: Pick<CallResult, 'callId' | 'startedAt' | 'state'>;
  /** The event of a run inside a call. */
  readonly event?: RecordedEvent;
}

/** Reasons that end the run but not the task: the worker hands the task on. */
const HANDOVER_REASONS: ReadonlySet<string> = new Set(['lease-lost', 'shutdown']);

export function recordEvent({ holder, parking }: RecordedWork, event: RecordedEvent): void {
  const { journal, activity, questions } = holder;
  activity.note(event);
  parking.record(event);
  if (isLeftToNext(event, holder)) return;
  const { type, callId = '' } = event;
  // A call that asked before waits again, under the same question. If that is about its result, it was approved before.
  if (type === 'approval-requested' && questions.isAsked(callId)) return;
  const isForResult = questions.isAsked(callId, 'answer') || questions.isAsked(callId, 'client');
  if (type === 'approval-answered' && isForResult) return;
  journal.add(withoutHistory(event));
  const answered = nestedAnswer(event);
  if (answered !== undefined) {
    journal.add(answered);
    journal.closeQuestions(questions.takeCloses(answered.callId ?? ''));
  }
  for (const close of questions.takeCloses(findNestedEnd(event))) {
    journal.add({ type: 'question-closed', ...close, callId: findNestedEnd(event) });
    journal.closeQuestions([close]);
  }
  if (event.type === 'call-end') questions.endCall(event.result!.callId);
  // Write this as a separate entry: the next one replaces it.
  if (event.type === 'history-compacted') journal.add({ type: 'history', messages: event.messages });
  if (FLUSHED_IMMEDIATELY.has(event.type)) journal.scheduleFlush();
}

/** Whether an event only says that this worker hands the task on: the stop, and calls that its next worker can start. */
function isLeftToNext({ type, reason, result }: RecordedEvent, { token, questions }: ClaimHolder): boolean {
  if (type === 'call-end') {
    if (token.reason === undefined || !HANDOVER_REASONS.has(token.reason.kind)) return false;
    const { callId = '', state, startedAt } = result ?? {};
    return startedAt === undefined || (state === 'unknown' && questions.mayBeInClient(callId));
  }
  return (
    (type === 'level-changed' || type === 'cancel-requested') &&
    reason !== undefined &&
    HANDOVER_REASONS.has(reason.kind)
  );
}

/** Returns the answer to a sub-agent's question with the call id and tool of that question. */
function nestedAnswer({ type, callId, tool, event }: RecordedEvent): RecordedEvent | undefined {
  if (type !== 'call-event' || event === undefined) return undefined;
  const answer = event.type === 'approval-answered' ? event : nestedAnswer(event);
  return answer && { ...answer, callId: `${callId}/${answer.callId}`, tool: `${tool} › ${answer.tool}` };
}

/** Returns the id of a sub-agent's call that has ended, as its question has it; otherwise an empty text. */
function findNestedEnd({ type, callId, event }: RecordedEvent): string {
  if (type !== 'call-event' || event === undefined) return '';
  const inner = event.type === 'call-end' ? event.result!.callId : findNestedEnd(event);
  return inner === '' ? '' : `${callId}/${inner}`;
}

/** Drops the history of a run inside a call: such a run is never resumed on its own. */
function withoutHistory(event: RecordedEvent): RecordedEvent {
  if (event.type === 'call-event' && event.event !== undefined) {
    return { ...event, event: withoutHistory(event.event) };
  }
  if (event.type !== 'history-compacted') return event;
  const { messages: _messages, ...rest } = event;
  return rest;
}

/** What happens between a wave and its calls: the checker runs once, and each call is written to the journal. */
export class WaveBoundary {
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
  readonly beforeCall: NonNullable<RunOptions['beforeCall']> = async ({ id, tool }, { tool: { answeredBy } }) => {
    const { parking } = this.#work;
    const { journal, token, questions } = this.#work.holder;
    await this.#checked;
    token.throwIfCancelled();
    // Nothing runs here: the question and the result are all there is to write.
    if (answeredBy !== undefined) return;
    parking.startCall(id);
    const intent = { type: 'call-intent', callId: id, tool, shown: questions.findShown(id) };
    const closes = questions.takeCloses(id);
    if (closes.length > 0) {
      // In one step: an answer that was acted on is never acted on again.
      await journal.writeWith([intent], { closes });
    } else {
      // Intents of calls that start together share one write.
      journal.add(intent);
      await journal.flushWhole();
    }
    // Check again: a process that was suspended may get the response long after the store sent it.
    await this.#work.checkHeld();
    token.throwIfCancelled();
  };
}
