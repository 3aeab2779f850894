import { type CallResult, type StopReport, toText } from '@whoa/core';
import { describeStoppedCall } from '@whoa/core/internal';
import type { JournalEvent, TaskRecord } from '@whoa/tasks';
import type { UIMessageChunk } from 'ai';
import type { ReplyEvent } from './chunk-writer.ts';
import { findOpenTurn, passAgain } from './taken-back.ts';
import { getKind, isWords, type Shown, type TextKind, type TurnEnd, toDelta, toOutput } from './turn-parts.ts';
import { LOST_CALL } from './ui-chunks.ts';

/** The end of a call, according to the journal. */
type EndedCall = Pick<CallResult, 'callId' | 'state'> & Partial<Pick<CallResult, 'content' | 'details'>>;

type DescribeError = (error: { readonly message: string; readonly code?: string }) => string;

/** The default text for a failure: an error may contain details that users must not see. */
export const FAILED = 'Something went wrong; nothing more is running.';

/** Why is in the log: it may say something about the database. */
const UNSAVED = 'This could not be saved. It is gone when the page is loaded again.';

/**
 * Converts the journal of a task to the chunks of one UI message, the same for every reader at any time. Text comes in
 * drafts, and the end of its turn contains all of it: whatever a reader has not seen by then is added.
 */
export class UiTranslator {
  readonly #messageId: string;
  readonly #describeError: DescribeError;
  #shown: Shown[] = [];
  /** What was sent to the reader in this turn, in order: kinds of text, ids of calls. */
  #sent: string[] = [];
  #isOpen = false;
  #parts = 0;
  /** `fresh`: a step was started, and nothing is in it. */
  #step: 'none' | 'fresh' | 'used' = 'none';
  #isInTurn = false;
  #isStarted = false;
  #isErrorTold = false;
  /** How the application's own loop ended. */
  #finish: UIMessageChunk | undefined;
  /** Calls that were sent to the reader; `false` until their input has arrived. */
  readonly #calls = new Map<string, boolean>();
  readonly #ended = new Set<string>();
  /** Open questions, by the call they are about. Pages know `toolCallId`, which may be the call around it. */
  readonly #waiting = new Map<string, { readonly id: string; readonly toolCallId: string }>();

  constructor(messageId: string, options: { readonly describeError?: DescribeError | undefined } = {}) {
    this.#messageId = messageId;
    this.#describeError = options.describeError ?? (() => FAILED);
  }

  /** The open questions, if the reply waits for nothing else. */
  get awaited(): readonly string[] {
    const waiting = [...this.#waiting.values()];
    const isAsking = (callId: string): boolean => waiting.some(({ toolCallId }) => toolCallId === callId);
    const open = [...this.#calls.keys()].filter((callId) => !this.#ended.has(callId));
    return this.#isInTurn || !open.every(isAsking) ? [] : waiting.map(({ id }) => id);
  }

  /** Ends the stream while the reply waits. */
  pause(): UIMessageChunk[] {
    return [{ type: 'finish-step' }, { type: 'finish' }];
  }

  start(): UIMessageChunk[] {
    if (this.#isStarted) return [];
    this.#isStarted = true;
    return [{ type: 'start', messageId: this.#messageId }];
  }

  /** Passes the chunks of the application's own loop on. A loop does not know the id of its message, nor its end. */
  #pass(chunk: UIMessageChunk): UIMessageChunk[] {
    if (chunk.type === 'start') {
      const { messageMetadata } = chunk;
      if (!this.#isStarted) return this.start().map((start) => ({ ...chunk, ...start }));
      return messageMetadata === undefined ? [] : [{ type: 'message-metadata', messageMetadata }];
    }
    this.#isErrorTold ||= chunk.type === 'error';
    if (chunk.type !== 'finish' && chunk.type !== 'abort') return [...this.start(), chunk];
    this.#finish = chunk;
    return [];
  }

  translate(event: JournalEvent | ReplyEvent): UIMessageChunk[] {
    switch (event.type) {
      case 'ui-chunks':
        return event.chunks.flatMap((chunk) => this.#pass(chunk));
      case 'run-start':
        // A worker was lost mid-turn, and this one repeats the turn.
        return this.#isInTurn ? this.#beginTurnAnew() : [];
      case 'turn-retry':
        return this.#beginTurnAnew();
      case 'turn-start':
        return this.#startTurn();
      case 'text':
        return this.#addText('text', event.text);
      case 'thinking':
        return this.#addText('reasoning', event.text);
      case 'call-planned':
        return this.#planCall(event.callId, event.tool);
      case 'turn-end':
        return this.#endTurn(event);
      case 'call-update':
        return this.#showOutput(event.callId, toOutput(event.partial), { preliminary: true });
      case 'approval-question':
        return this.#askPerson(event);
      case 'question-asked':
        return this.#askForResult(event);
      case 'approval-answered':
        return this.#tellAnswer(event.callId, event.approved);
      case 'question-closed':
        this.#waiting.delete(event.callId);
        return [];
      case 'call-end':
        return this.#endCall(event.result as EndedCall);
      case 'steer-delivered': {
        const id = event.message.id ?? `${this.#messageId}-steer-${++this.#parts}`;
        return [{ type: 'steering-message', id, parts: [{ type: 'text', text: toText(event.message.content) }] }];
      }
      case 'turn-postponed':
        return [{ type: 'data-waiting', data: { until: event.until }, transient: true }];
      case 'level-changed':
        return [{ type: 'data-stopping', data: { level: event.level, reason: event.reason }, transient: true }];
      default:
        return [];
    }
  }

  /** Replaces what was shown of this turn, or of this step of the application's own loop, by what the journal has of it. */
  takeBack(journal: readonly (JournalEvent | ReplyEvent)[]): UIMessageChunk[] {
    if (!this.#isInTurn) return this.#step === 'none' ? passAgain(journal) : [];
    return [...this.#beginTurnAnew(), ...findOpenTurn(journal).flatMap((one) => this.translate(one))];
  }

  /** Call it when the task has ended. Closes everything that is open. */
  end({ id, status, outcome, stop }: TaskRecord): UIMessageChunk[] {
    const chunks = [
      ...this.start(),
      ...this.#closeText(),
      ...this.#refuseCalls('Not started: the reply ended before it was asked for.'),
      ...this.#endLostCalls(outcome?.stopReport as StopReport | undefined),
    ];
    if (this.#step !== 'none') chunks.push({ type: 'finish-step' });
    if (status === 'failed' && !this.#isErrorTold)
      chunks.push({ type: 'error', errorText: this.#describeError(outcome?.error ?? { message: '' }) });
    const { unsaved } = (outcome?.result ?? {}) as { unsaved?: string };
    if (unsaved !== undefined) chunks.push({ type: 'data-unsaved', id: `${id}-unsaved`, data: { message: UNSAVED } });
    const { messageMetadata } = (this.#finish ?? {}) as { messageMetadata?: unknown };
    if (status !== 'cancelled') return [...chunks, this.#finish ?? { type: 'finish' }];
    if (messageMetadata !== undefined) chunks.push({ type: 'message-metadata', messageMetadata });
    const reason = outcome?.reason ?? stop?.reason;
    if (outcome?.stopReport !== undefined)
      chunks.push({ type: 'data-stop-report', id: `${id}-stop`, data: outcome.stopReport });
    return [...chunks, { type: 'abort', reason: reason?.message ?? reason?.kind ?? 'cancelled' }];
  }

  #startTurn(): UIMessageChunk[] {
    this.#isInTurn = true;
    this.#shown = [];
    this.#sent = [];
    // A repeated turn already has its step.
    if (this.#step === 'fresh') return [];
    const chunks: UIMessageChunk[] = this.#step === 'used' ? [{ type: 'finish-step' }] : [];
    this.#step = 'fresh';
    return [...chunks, { type: 'start-step' }];
  }

  #beginTurnAnew(): UIMessageChunk[] {
    this.#shown = [];
    this.#sent = [];
    this.#isOpen = false;
    this.#isInTurn = false;
    for (const [callId, isAsked] of this.#calls) if (!isAsked) this.#calls.delete(callId);
    if (this.#step === 'none') return [];
    this.#step = 'fresh';
    return [{ type: 'reset-step' }];
  }

  #addText(kind: TextKind, text: string): UIMessageChunk[] {
    const last = this.#shown.at(-1);
    this.#step = 'used';
    if (this.#isOpen && last?.kind === kind) {
      last.text += text;
      return [toDelta(last, text)];
    }
    const chunks = this.#closeText();
    const opened: Shown = { kind, id: `${this.#messageId}-${++this.#parts}`, text };
    this.#shown.push(opened);
    this.#sent.push(kind);
    this.#isOpen = true;
    return [...chunks, { type: `${kind}-start`, id: opened.id }, toDelta(opened, text)];
  }

  #closeText(): UIMessageChunk[] {
    const last = this.#shown.at(-1);
    if (!this.#isOpen || last === undefined) return [];
    this.#isOpen = false;
    return [{ type: `${last.kind}-end`, id: last.id }];
  }

  #planCall(callId: string, tool: string): UIMessageChunk[] {
    this.#step = 'used';
    if (this.#calls.has(callId)) return [];
    this.#calls.set(callId, false);
    this.#sent.push(callId);
    return [...this.#closeText(), { type: 'tool-input-start', toolCallId: callId, toolName: tool, dynamic: true }];
  }

  #endTurn({ message }: TurnEnd): UIMessageChunk[] {
    const chunks: UIMessageChunk[] = [];
    const words = message.content.filter(isWords);
    const order = message.content.map((part) => (isWords(part) ? getKind(part) : part.callId));
    const isPrefix =
      this.#shown.every(({ text }, i) =>
        // Text can only be added to the last part, and only while nothing has followed it.
        i === this.#shown.length - 1 && this.#isOpen ? words[i]?.text.startsWith(text) : words[i]?.text === text,
      ) &&
      // Drafts of text are removed when their turn ends, plans of calls are not: a late reader gets the calls first.
      this.#sent.every((one, i) => order[i] === one || !order.includes(one));
    if (!isPrefix) chunks.push(...this.#beginTurnAnew());
    let seen = 0;
    for (const part of message.content) {
      if (part.type === 'call') {
        chunks.push(...this.#closeText(), ...this.#askCall(part));
        continue;
      }
      const shown = this.#shown[seen++];
      const rest = part.text.slice(shown?.text.length ?? 0);
      if (rest !== '') chunks.push(...this.#addText(getKind(part), rest));
    }
    chunks.push(
      ...this.#closeText(),
      ...this.#refuseCalls('Not started: the reply was cut off before it was asked for.'),
    );
    this.#isInTurn = false;
    this.#step = 'used';
    return chunks;
  }

  #askCall({ callId, tool, input }: { callId: string; tool: string; input: unknown }): UIMessageChunk[] {
    if (this.#calls.get(callId) === true) return [];
    this.#calls.set(callId, true);
    return [{ type: 'tool-input-available', toolCallId: callId, toolName: tool, input, dynamic: true }];
  }

  /** Ends calls whose request the model started and did not complete. */
  #refuseCalls(errorText: string): UIMessageChunk[] {
    const half = [...this.#calls].filter(([, isAsked]) => !isAsked).map(([callId]) => callId);
    return half.map((toolCallId) => {
      // Pages refuse a chunk without an input, and with it the rest of the reply.
      this.#calls.set(toolCallId, true);
      this.#ended.add(toolCallId);
      return { type: 'tool-input-error', toolCallId, toolName: 'unknown', input: {}, dynamic: true, errorText };
    });
  }

  /** Ends calls whose worker was lost before it wrote down how they ended. */
  #endLostCalls(stop: StopReport | undefined): UIMessageChunk[] {
    return [...this.#calls.keys()].flatMap((callId) => {
      const isNotStarted = stop?.calls?.some((call) => call.callId === callId && call.state === 'not-started');
      const content = isNotStarted === true ? describeStoppedCall('not-started', stop!.reason) : LOST_CALL;
      return this.#endCall({ callId, state: 'unknown', content });
    });
  }

  #askPerson({ id, question }: Extract<JournalEvent, { type: 'approval-question' }>): UIMessageChunk[] {
    // Pages do not know a sub-agent's calls (`outer/inner`): the question belongs to the call that they do know.
    const toolCallId = question.callId.split('/')[0]!;
    this.#waiting.set(question.callId, { id, toolCallId });
    return [{ type: 'tool-approval-request', approvalId: id, toolCallId, approvalDescriptor: question }];
  }

  #askForResult({ id, kind, question, schema }: Extract<JournalEvent, { type: 'question-asked' }>): UIMessageChunk[] {
    const { callId: toolCallId } = question;
    this.#waiting.set(toolCallId, { id, toolCallId });
    return [{ type: 'data-question', id, data: { kind, toolCallId, question, schema }, transient: true }];
  }

  #tellAnswer(callId: string, approved: boolean): UIMessageChunk[] {
    const question = this.#waiting.get(callId);
    this.#waiting.delete(callId);
    return question === undefined ? [] : [{ type: 'tool-approval-response', approvalId: question.id, approved }];
  }

  #showOutput(toolCallId: string, output: unknown, more: { preliminary?: boolean } = {}): UIMessageChunk[] {
    // Skip a call that was never sent: the reader would throw.
    if (this.#calls.get(toolCallId) !== true || this.#ended.has(toolCallId)) return [];
    return [{ type: 'tool-output-available', toolCallId, output, dynamic: true, ...more }];
  }

  #endCall({ callId: toolCallId, state, content = '', details }: EndedCall): UIMessageChunk[] {
    if (this.#calls.get(toolCallId) !== true || this.#ended.has(toolCallId)) return [];
    const chunks: UIMessageChunk[] =
      state === 'finished'
        ? this.#showOutput(toolCallId, toOutput({ content, details }))
        : [{ type: 'tool-output-error', toolCallId, errorText: toText(content) || state, dynamic: true }];
    this.#ended.add(toolCallId);
    for (const [callId, asked] of this.#waiting) if (asked.toolCallId === toolCallId) this.#waiting.delete(callId);
    return chunks;
  }
}
