import type { CallResult, Json, RunEvent, Tool } from '@whoa/core';
import type { TaskRecord } from '../task.ts';
import type { AdoptOptions } from './adopted-run.ts';
import type { ClaimHolder } from './claim-holder.ts';
import { type CallPath, toPathId, unwrapEvent, wrapEvent } from './journal/nested.ts';
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
  'undo-start',
  'undo-end',
]);
/** In addition, of the task's own run. */
const FLUSHED_OF_TASK: ReadonlySet<string> = new Set(['approval-requested', 'level-changed']);

/** Returns what records a run in the journal of its task. */
export function record(
  work: RecordedWork,
  boundary: WaveBoundary,
  about: { readonly version?: string | undefined; readonly nested?: 1 } = {},
): AdoptOptions & { readonly onEvent: (event: RunEvent) => void } {
  const { version, ...more } = about;
  const started = { ...(version !== undefined && { version }), ...more };
  return {
    onEvent(event) {
      boundary.note(event);
      for (const one of work.waiter?.filter(event) ?? [event])
        if (one.type !== 'run-end') recordEvent(work, one.type === 'run-start' ? { ...one, ...started } : one);
      if (event.type === 'steer-delivered') work.holder.commands.delivered(event.message);
      work.onEvent?.(event);
    },
    beforeTurn: () => work.check(),
    // The `spending` event that reserves for the request is in the journal by now, but not yet in the store.
    beforeRequest: async () => {
      await work.holder.journal.flushWhole();
      await work.checkHeld();
    },
    beforeCall: (call, { tool, effectKey }) => boundary.beforeCall(call, { tool, effectKey, path: [] }),
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
  readonly result?: Pick<CallResult, 'callId' | 'tool' | 'startedAt' | 'state'>;
  readonly callIds?: readonly string[];
  /** The event of a run inside a call. */
  readonly event?: RecordedEvent;
}

/** Reasons that end the run but not the task: the worker hands the task on. */
const HANDOVER_REASONS: ReadonlySet<string> = new Set(['lease-lost', 'shutdown']);

export function recordEvent({ holder, parking }: RecordedWork, event: RecordedEvent): void {
  const { journal, activity, questions } = holder;
  const { path, inner } = unwrapEvent(event);
  const id = toPathId(path, inner.result?.callId ?? inner.callId ?? '');
  activity.note(event);
  const [isAgentCall, isIntended] = [parking.hasRunIn(id), parking.isIntended(id)];
  parking.record(inner, path);
  // The call's end has the outcome of a run inside it.
  if (inner.type === 'run-end') return;
  if (isLeftToNext(inner, { id, isAgentCall, holder })) {
    // It was about to start: its next worker would not know that it had no effect.
    const { callId, tool, startedAt } = inner.result ?? {};
    if (isIntended && startedAt === undefined)
      journal.add(wrapEvent(path, { type: 'call-intent', callId, tool, withdrawn: true }));
    return;
  }
  // A call that asked before waits again, under the same question. If that is about its result, it was approved before.
  if (inner.type === 'approval-requested' && questions.isAsked(id)) return;
  const isForResult = questions.isAsked(id, 'answer') || questions.isAsked(id, 'client');
  if (inner.type === 'approval-answered' && isForResult) return;
  journal.add(wrapEvent(path, withoutHistory(inner)));
  if (path.length === 0 && inner.type === 'call-end') questions.endCall(id);
  if (path.length > 0) closeNested(inner, { id, path, holder });
  // Write this as a separate entry: the next one replaces it.
  if (inner.type === 'history-compacted') journal.add(wrapEvent(path, { type: 'history', messages: inner.messages }));
  const isUrgent = FLUSHED_IMMEDIATELY.has(inner.type) || (path.length === 0 && FLUSHED_OF_TASK.has(inner.type));
  if (isUrgent) journal.scheduleFlush();
}

interface NestedClose {
  readonly id: string;
  readonly path: CallPath;
  readonly holder: ClaimHolder;
}

/** The question of a sub-agent's call is closed with its answer or its end, where readers of questions look. */
function closeNested(inner: RecordedEvent, { id, path, holder: { journal, questions } }: NestedClose): void {
  if (inner.type === 'approval-answered') {
    const tools = [...path.map(({ tool }) => tool), inner.tool];
    journal.add({ ...inner, callId: id, tool: tools.join(' › ') });
  }
  if (inner.type !== 'call-end') return;
  for (const close of questions.takeCloses(id)) {
    journal.add({ type: 'question-closed', ...close, callId: id });
    journal.closeQuestions([close]);
  }
}

interface LeftTo {
  readonly id: string;
  /** An agent runs in the call. */
  readonly isAgentCall: boolean;
  readonly holder: ClaimHolder;
}

/** Whether an event only says that this worker hands the task on: the stop, and calls that its next worker continues. */
function isLeftToNext(
  { type, reason, result }: RecordedEvent,
  { id, isAgentCall, holder: { token, questions } }: LeftTo,
): boolean {
  if (type === 'call-end') {
    if (token.reason === undefined || !HANDOVER_REASONS.has(token.reason.kind)) return false;
    const { state, startedAt } = result ?? {};
    return startedAt === undefined || isAgentCall || (state === 'unknown' && questions.mayBeInClient(id));
  }
  return (
    (type === 'level-changed' || type === 'cancel-requested') &&
    reason !== undefined &&
    HANDOVER_REASONS.has(reason.kind)
  );
}

/** Drops the history of a compaction: it has an entry of its own. */
function withoutHistory(event: RecordedEvent): RecordedEvent {
  if (event.type !== 'history-compacted') return event;
  const { messages: _messages, ...rest } = event;
  return rest;
}

/** A call that is about to start. */
interface StartingCall {
  readonly tool: Pick<Tool, 'answeredBy'>;
  readonly effectKey: string;
  /** The calls that it is inside of. */
  readonly path: CallPath;
}

/** What happens between a wave and its calls: the checker runs once, and each call is written to the journal. */
export class WaveBoundary {
  readonly #work: RecordedWork;
  /** By the id of the call that the run is in. */
  readonly #checked = new Map<string, Promise<void>>();

  constructor(work: RecordedWork) {
    this.#work = work;
  }

  /** Checks at the start of a wave, so that a pending approval does not delay a stop. */
  note(event: RecordedEvent): void {
    const { path, inner } = unwrapEvent(event);
    if (inner.type === 'wave-start') this.#checked.set(toPathId(path, ''), this.#work.check());
    if (inner.type === 'run-end') this.#checked.delete(toPathId(path, ''));
  }

  /** Don't let a call start before its intent is stored: after a crash nothing would show that it may have run. */
  readonly beforeCall = async (
    { id: callId, tool: name }: { readonly id: string; readonly tool: string },
    { tool: { answeredBy }, effectKey, path }: StartingCall,
  ): Promise<void> => {
    const { parking } = this.#work;
    const { journal, token, questions } = this.#work.holder;
    await this.#checked.get(toPathId(path, ''));
    token.throwIfCancelled();
    // Nothing runs here: the question and the result are all there is to write.
    if (answeredBy !== undefined) return;
    const id = toPathId(path, callId);
    parking.startCall(callId, path);
    const shown = questions.findShown(id);
    const intent = wrapEvent(path, { type: 'call-intent', callId, tool: name, shown, effectKey });
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
