import type { CancellationToken, CancelReason } from '@whoa/core';
import { rankLevel } from '@whoa/core/internal';
import { AwaitedPromise } from './awaited-promise.ts';
import type { CallLedger, CallRecord } from './call-ledger.ts';

/** What became of a turn. */
export interface SettledTurn {
  /** Why it was stopped, if it was. */
  readonly reason?: CancelReason;
  /** Its calls, as they stood when it settled. What comes later is in the ledger alone. */
  readonly calls: readonly CallRecord[];
}

/** The life of one turn: from its first call to the moment when it is over and none of its calls runs. */
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

  /** The token is the turn's own: it is disposed when the turn has settled. */
  constructor(token: CancellationToken, ledger: CallLedger) {
    this.token = token;
    this.#ledger = ledger;
    this.settled = new AwaitedPromise(this.#result.promise, () => {
      this.#isAwaited = true;
      this.#look();
    });
    token.onCancel((level, reason) => {
      // Words are never waited for, only calls.
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

  /** Passes a stream on, unchanged, to see when it is over. */
  watchStream(): TransformStream<unknown, unknown> {
    let isOpen = true;
    this.#streams++;
    const end = (): void => {
      if (isOpen) this.#streams--;
      isOpen = false;
      this.#isOver ||= this.#streams === 0;
      this.#look();
    };
    // `cancel` is younger than the types of Node.
    return new TransformStream({ flush: end, cancel: end } as { flush: () => void });
  }

  /**
   * Ends the turn when nothing of it is left. A stream that no one reads never ends, so `kill` ends the wait for it; without a
   * stream the loop is `generateText`, which tells of no end: whoever waits for the turn has seen it.
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
