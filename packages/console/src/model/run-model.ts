import type { CancelReason, Content, Json, StopLevel, StopReport } from '@whoa/core';
import type { ApprovalQuestion } from '@whoa/core/approval';
import type { JournalEvent, TaskRecord } from '@whoa/tasks';
import { type ReplyEvent, toEvents } from './reply-events.ts';

type EventByType<Type extends JournalEvent['type']> = Extract<JournalEvent, { readonly type: Type }>;

/** The result of a call, as the journal keeps it. What a lost worker left open has only a state. */
export type StoredResult = Partial<Omit<CallEnd, 'callId' | 'state'>> & Pick<CallEnd, 'callId' | 'state'>;
type CallEnd = Extract<EventByType<'call-end'>, { readonly result: { readonly content: unknown } }>['result'];

/** An approval that was asked for. It is open until it was answered or its call has ended. */
export interface AskedQuestion {
  /** An answer names it. */
  readonly id: string;
  readonly at: number;
  readonly question: ApprovalQuestion;
  /** Its answer is the result of the call, as this JSON Schema says. */
  readonly answer?: { readonly schema?: { readonly [key: string]: Json | undefined } | undefined };
}

/** One call as it stands now. */
export interface CallModel {
  readonly id: string;
  tool: string;
  readonly turn: number;
  input?: unknown;
  state: 'planned' | 'waiting' | 'running' | CallEnd['state'];
  askedAt?: number;
  answeredAt?: number;
  approved?: boolean;
  question?: AskedQuestion;
  startedAt?: number;
  endedAt?: number;
  partial?: { readonly content?: Content; readonly details?: Json };
  result?: StoredResult;
  /** A stop waits for it until this moment: it must not be interrupted. */
  waitsUntil?: number;
  undo?: 'running' | 'undone' | 'failed' | 'unknown';
  /** It ended after it had been abandoned. */
  isLate?: true;
  /** The run inside this call. */
  nested?: RunModel;
}

/** One reply of the model and the calls it asked for. */
export interface TurnModel {
  readonly number: number;
  readonly startedAt: number;
  endedAt?: number;
  text: string;
  thinking: string;
  /** The reply was cut off by a stop. */
  isCut: boolean;
  readonly calls: CallModel[];
  /** What was said to the run before this turn. */
  readonly steered: string[];
  retry?: string;
}

/** A run as its journal tells it. It grows by `apply`; nothing is ever removed. */
export class RunModel {
  agent = '';
  startedAt: number | undefined;
  lastAt = 0;
  readonly turns: TurnModel[] = [];
  readonly calls = new Map<string, CallModel>();
  readonly waves: { readonly number: number; readonly startedAt: number }[] = [];
  /** The levels that a stop has reached. */
  readonly levels: { readonly level: StopLevel; readonly at: number; readonly reason: CancelReason }[] = [];
  readonly abandoned: { readonly name: string; readonly at: number }[] = [];
  /** What the journal had no room for. */
  cut: { readonly entries: number; readonly bytes: number } | undefined;
  #steered: string[] = [];

  /** The calls in the order in which they were asked for. */
  get callList(): readonly CallModel[] {
    return [...this.calls.values()];
  }

  /** Questions that wait for an answer, the oldest first, those of inner runs included. */
  get openQuestions(): readonly AskedQuestion[] {
    return this.callList.flatMap(({ state, question, nested }) => [
      ...(state === 'waiting' && question !== undefined ? [question] : []),
      ...(nested?.openQuestions ?? []),
    ]);
  }

  apply({ at, event }: { readonly at: number; readonly event: JournalEvent | ReplyEvent }): void {
    const moment = 'at' in event && typeof event.at === 'number' ? event.at : at;
    this.lastAt = Math.max(this.lastAt, moment);
    this.startedAt ??= moment;
    switch (event.type) {
      case 'run-start':
        this.agent = event.agent;
        return;
      case 'turn-start':
        this.turns.push(this.#newTurn(event.turn ?? this.turns.length + 1, moment));
        return;
      case 'text':
        this.#turn(moment).text += event.text;
        return;
      case 'thinking':
        this.#turn(moment).thinking += event.text;
        return;
      case 'turn-retry':
        this.#turn(moment).retry = event.error;
        return;
      case 'turn-postponed': {
        // Its text stays as one that was cut off: the repeated turn is another.
        const turn = this.#turn(moment);
        Object.assign(turn, { endedAt: moment, isCut: turn.text !== '' });
        return;
      }
      case 'turn-end':
        this.#endTurn(event, moment);
        return;
      case 'steer-delivered':
        this.#steered.push(toWords(event.message.content));
        return;
      case 'wave-start':
        this.waves.push({ number: this.waves.length + 1, startedAt: moment });
        return;
      case 'level-changed':
        this.levels.push({ level: event.level, at: moment, reason: event.reason });
        return;
      case 'work-abandoned':
        this.abandoned.push({ name: event.name, at: moment });
        return;
      case 'journal-truncated':
        this.cut = event;
        return;
      case 'turn-reset':
        Object.assign(this.#turn(moment), { text: '', thinking: '' });
        return;
      case 'ui-chunks':
        for (const inner of toEvents(event.chunks)) this.apply({ at: moment, event: inner });
        return;
      default:
        this.#applyToCall(event, moment);
    }
  }

  /** Takes over what only the record of an ended task says about calls and levels of an application's own loop. */
  settle({ outcome }: TaskRecord): void {
    const report = outcome?.stopReport as StopReport | undefined;
    if (report === undefined || this.levels.length > 0) return;
    const { reason } = report;
    for (const { level, afterMs } of report.levels) this.levels.push({ level, at: reason.at + afterMs, reason });
    for (const { callId, state } of report.calls) {
      const call = this.calls.get(callId);
      if (call !== undefined) call.state = state;
    }
    const last = this.turns.at(-1);
    if (last !== undefined && outcome?.isComplete === false) last.isCut = last.text !== '' && last.calls.length === 0;
  }

  #applyToCall(event: JournalEvent, moment: number): void {
    switch (event.type) {
      case 'call-planned':
      case 'call-intent':
        this.#call(event.callId, event.tool);
        return;
      case 'approval-requested':
        Object.assign(this.#call(event.callId, event.tool), { state: 'waiting', askedAt: moment });
        return;
      case 'approval-question':
      case 'question-asked': {
        const { callId, tool } = event.question;
        const call = this.#call(callId, tool);
        const answer = event.type === 'question-asked' && { answer: { schema: event.schema } };
        call.question = { id: event.id, at: moment, question: event.question, ...answer };
        // A worker that took the task over asks again.
        if (call.result === undefined) call.state = 'waiting';
        call.askedAt ??= moment;
        return;
      }
      case 'approval-answered': {
        const call = this.#call(event.callId, event.tool);
        Object.assign(call, { answeredAt: moment, approved: event.approved });
        if (call.state === 'waiting') call.state = 'planned';
        return;
      }
      case 'call-start':
        this.#startCall(event, moment);
        return;
      case 'call-update':
        this.#call(event.callId, event.tool).partial = event.partial;
        return;
      case 'call-event':
        this.#call(event.callId, event.tool).nested ??= new RunModel();
        this.#call(event.callId, event.tool).nested!.apply({ at: moment, event: event.event as JournalEvent });
        return;
      case 'call-waiting':
        this.#call(event.callId, event.tool).waitsUntil = event.until;
        return;
      case 'call-end':
        this.#endCall(event.result as StoredResult, moment);
        return;
      case 'call-ended-late':
        this.#call(event.callId, event.tool).isLate = true;
        return;
      case 'undo-start':
        this.#call(event.callId, event.tool).undo = 'running';
        return;
      case 'undo-end':
        this.#call(event.callId, event.tool).undo = event.state;
        return;
      default:
    }
  }

  #endTurn({ message }: EventByType<'turn-end'>, at: number): void {
    const turn = this.#turn(at);
    const toReplyText = (type: 'text' | 'thinking'): string =>
      message.content.flatMap((part) => (part.type === type ? [part.text] : [])).join('');
    turn.endedAt = at;
    turn.text = toReplyText('text') || turn.text;
    turn.thinking = toReplyText('thinking') || turn.thinking;
    turn.isCut = message.stopReason === 'aborted';
    for (const part of message.content) {
      if (part.type === 'call') this.#call(part.callId, part.tool).input = part.input;
    }
  }

  #startCall({ callId, tool, input }: EventByType<'call-start'>, startedAt: number): void {
    const call = this.#call(callId, tool);
    // A call that runs in a client waits for its result, even if another worker waits for it now.
    Object.assign(call, { state: call.question?.answer ? 'waiting' : 'running', startedAt, input });
  }

  #endCall(result: StoredResult, at: number): void {
    const call = this.#call(result.callId, result.tool ?? '');
    call.state = result.state;
    call.result = result;
    call.endedAt = result.endedAt ?? at;
    if (result.startedAt !== undefined) call.startedAt = result.startedAt;
  }

  #call(id: string, tool: string): CallModel {
    const known = this.calls.get(id);
    if (known !== undefined) {
      known.tool ||= tool;
      return known;
    }
    const turn = this.#turn(this.lastAt);
    const call: CallModel = { id, tool, turn: turn.number, state: 'planned' };
    turn.calls.push(call);
    this.calls.set(id, call);
    return call;
  }

  #turn(at: number): TurnModel {
    const last = this.turns.at(-1);
    if (last !== undefined) return last;
    const first = this.#newTurn(1, at);
    this.turns.push(first);
    return first;
  }

  #newTurn(number: number, startedAt: number): TurnModel {
    const steered = this.#steered;
    this.#steered = [];
    return { number, startedAt, text: '', thinking: '', isCut: false, calls: [], steered };
  }
}

function toWords(content: Content): string {
  if (typeof content === 'string') return content;
  return content.map((part) => (part.type === 'text' ? part.text : `[${part.mediaType}]`)).join('');
}
