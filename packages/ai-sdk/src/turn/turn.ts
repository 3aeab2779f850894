import type { CancellationToken, CancelReason } from '@whoa/core';
import { rankLevel } from '@whoa/core/internal';
import { AwaitedPromise } from './awaited-promise.ts';
import type { CallLedger, CallRecord } from './call-ledger.ts';

/** How a turn ended. */
export interface SettledTurn {
  /** Why it was stopped, if it was. */
  readonly reason?: CancelReason;
  /** Its calls at the time it settled. Later changes are only in the ledger. */
  readonly calls: readonly CallRecord[];
}

/** The lifetime of one turn: from its first call until it is over and none of its calls runs. */
export class Turn {
  readonly token: CancellationToken;
  readonly settled: Promise<SettledTurn>;
  readonly #ledger: CallLedger;
  readonly #callIds: string[] = [];
  readonly #result = Promise.withResolvers<SettledTurn>();
  #running = 0;
  #streams = 0;
  #isAwaited = false;
  #isOver = false;

  /** The token belongs to the turn: it is disposed when the turn has settled. */
  constructor(token: CancellationToken, ledger: CallLedger) {
    this.token = token;
    this.#ledger = ledger;
    this.settled = new AwaitedPromise(this.#result.promise, () => {
      this.#isAwaited = true;
      this.#look();
    });
    token.onCancel((level, reason) => {
      // A drain waits for calls, never for text.
      if (level === 'drain' && this.#running === 0) token.cancel(reason, { mode: 'now' });
      this.#look();
    });
  }

  watchCall(callId: string, ending: Promise<unknown>): void {
    this.#callIds.push(callId);
    this.#running++;
    const end = (): void => {
      this.#running--;
      this.#look();
    };
    ending.then(end, end);
  }

  /** Passes a stream on, unchanged, to detect its end. */
  watchStream(): TransformStream<unknown, unknown> {
    let isOpen = true;
    this.#streams++;
    const end = (): void => {
      if (isOpen) this.#streams--;
      isOpen = false;
      this.#isOver ||= this.#streams === 0;
      this.#look();
    };
    // Node's types do not include `cancel` yet.
    return new TransformStream({ flush: end, cancel: end } as { flush: () => void });
  }

  /**
   * Ends the turn when nothing of it is left. A stream that is never read never ends, so `kill` ends the wait for it.
   * Without a stream the loop is `generateText`, which does not report its end: a caller that awaits the turn has seen
   * it.
   */
  #look(): void {
    const { level } = this.token;
    const isAborted = level !== undefined && rankLevel(level) >= rankLevel('abort');
    if (this.#streams === 0 && (this.#isAwaited || isAborted)) this.#isOver = true;
    if (level === 'kill') this.#isOver = true;
    if (!this.#isOver || this.#running > 0) return;
    const { reason } = this.token;
    const mine = new Set(this.#callIds);
    const calls = this.#ledger.records().filter(({ callId }) => mine.has(callId));
    this.token[Symbol.dispose]();
    this.#result.resolve(Object.freeze({ ...(reason && { reason }), calls: Object.freeze(calls) }));
  }
}
