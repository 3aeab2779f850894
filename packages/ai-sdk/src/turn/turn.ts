import type { CancellationToken, CancelReason } from '@whoa/core';
import { rankLevel } from '@whoa/core/internal';
import { AddedMessages } from './added-messages.ts';
import { createAwaitedPromise } from './awaited-promise.ts';
import type { CallRecord, CallRecords } from './call-records.ts';
import type { AiSdkMessage } from './call-sites.ts';

/** How a turn ended. */
export interface SettledTurn<Message extends AiSdkMessage = AiSdkMessage> {
  /** Why it was stopped, if it was. */
  readonly reason?: CancelReason;
  /** Its calls at the time it settled. Later changes are only in the records. */
  readonly calls: readonly CallRecord[];
  /**
   * What the turn added to its history, ready to store, even if it was cut off. Every call has its result, except for
   * those that wait for a person or a page.
   */
  readonly messages: readonly Message[];
}

/** The lifetime of one turn: from its first call until it is over and none of its calls runs. */
export class Turn {
  readonly settled: Promise<SettledTurn>;
  readonly added: AddedMessages = new AddedMessages();
  readonly #token: CancellationToken;
  readonly #calls: CallRecords;
  readonly #close: (added: readonly AiSdkMessage[]) => readonly AiSdkMessage[];
  readonly #callIds = new Set<string>();
  readonly #result = Promise.withResolvers<SettledTurn>();
  #ended: Omit<SettledTurn, 'messages'> | undefined;
  #running = 0;
  #streams = 0;
  #isStreamed = false;
  #isAwaited = false;
  #isOver = false;

  /** The token belongs to the turn: it is disposed when the turn has settled. `close` closes what the turn has added. */
  constructor(token: CancellationToken, calls: CallRecords, close: (added: readonly AiSdkMessage[]) => AiSdkMessage[]) {
    this.#token = token;
    this.#calls = calls;
    this.#close = close;
    this.settled = createAwaitedPromise(this.#result.promise, () => {
      this.#isAwaited = true;
      this.#endIfIdle();
    });
    token.onCancel(() => {
      if (this.#running === 0) this.endDrain();
      this.#endIfIdle();
    });
  }

  /** A drain waits for calls, never for text. Without a call it is an abort. */
  endDrain(): void {
    if (this.#token.level === 'drain') this.#token.cancel({}, { mode: 'now' });
  }

  /** Returns what to call when the call has ended. */
  watchCall({ callId, toolCallId, tool: toolName, trace }: CallRecord, input: unknown): () => void {
    this.#callIds.add(callId);
    this.#running++;
    // A stream shows its calls, and what was approved is in the history.
    if (!this.#isStreamed && trace.approvalId === undefined)
      this.added.read({ type: 'tool-call', toolCallId, toolName, input });
    return () => {
      this.#running--;
      // Not immediately: the loop is about to pass on the result, and may then end by itself.
      if (this.#running === 0 && this.#token.level === 'drain') this.#token.cancelAfter(0, {}, { mode: 'now' });
      this.#endIfIdle();
    };
  }

  /** Passes a stream on, unchanged, to see what it shows and when it ends. */
  watchStream(): TransformStream<unknown, unknown> {
    let isOpen = true;
    this.#streams++;
    this.#isStreamed = true;
    // A stream that is tried again starts its step again.
    this.added.read({ type: 'start-step' });
    const end = (): void => {
      if (isOpen) this.#streams--;
      isOpen = false;
      this.#isOver ||= this.#streams === 0;
      this.#endIfIdle();
    };
    // Node's types do not include `cancel` yet.
    return new TransformStream({
      transform: (part: Record<string, unknown>, controller) => {
        this.added.read(part);
        controller.enqueue(part);
      },
      flush: end,
      cancel: end,
    } as ConstructorParameters<typeof TransformStream<Record<string, unknown>, unknown>>[0]);
  }

  /**
   * Ends the turn when nothing of it is left. A stream that is never read never ends, so `kill` ends the wait for it.
   * Without a stream the loop is `generateText`, which does not report its end: a caller that awaits the turn has seen it.
   */
  #endIfIdle(): void {
    const { level, reason } = this.#token;
    const isAborted = level !== undefined && rankLevel(level) >= rankLevel('abort');
    if (this.#streams === 0 && (this.#isAwaited || isAborted)) this.#isOver = true;
    if (level === 'kill') this.#isOver = true;
    if (!this.#isOver || this.#running > 0) return;
    const calls = this.#calls.records().filter(({ callId }) => this.#callIds.has(callId));
    this.#ended ??= { ...(reason && { reason }), calls: Object.freeze(calls) };
    this.#token[Symbol.dispose]();
    if (!this.#isStreamed && !this.#isAwaited) return;
    const messages = Object.freeze(this.#close(this.added.messages));
    this.#result.resolve(Object.freeze({ ...this.#ended, messages }));
  }
}
