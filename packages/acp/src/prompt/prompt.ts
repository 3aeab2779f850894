import { CancellationToken, type CancelReasonInit, type Run, type StopMode } from '@whoa/core';

export interface PromptOptions {
  readonly mode: StopMode;
  readonly previous: Prompt | undefined;
  readonly onSettled: (prompt: Prompt) => void;
  /** Why it gets a response without being run. */
  readonly refusal?: string | undefined;
  /** Whether `answered` will be called when its response is sent. Otherwise it waits only for its work. */
  readonly waitsForAnswer?: boolean;
}

/**
 * One prompt. It is reserved as soon as it is read from the wire, so that every later message finds it. Every cancel,
 * from any source, reaches the same token. It is settled when its work has ended and its response is sent.
 */
export class Prompt {
  readonly token: CancellationToken;
  readonly settled: Promise<void>;
  readonly refusal: string | undefined;
  readonly #mode: StopMode;
  readonly #end = Promise.withResolvers<void>();
  readonly #onSettled: (prompt: Prompt) => void;
  #previous: Prompt | undefined;
  #run: Run | undefined;
  #isTaken = false;
  #hasEnded = false;
  #isAnswered = false;

  constructor(parent: CancellationToken, options: PromptOptions) {
    const { mode, previous, onSettled, refusal, waitsForAnswer = true } = options;
    this.token = new CancellationToken({ parent, name: 'prompt' });
    this.refusal = refusal;
    this.#mode = mode;
    this.#onSettled = onSettled;
    this.#isAnswered = !waitsForAnswer;
    this.#previous = previous?.isSettled === false ? previous : undefined;
    this.settled = this.#end.promise;
  }

  /** The previous prompt in the same session, unless that is settled: this one starts after it. */
  get previous(): Prompt | undefined {
    return this.#previous;
  }

  get isSettled(): boolean {
    return this.#hasEnded && this.#isAnswered;
  }

  /** Cancels only this prompt. May be called before it runs, while it runs, twice, and after the end. */
  cancel(reason: CancelReasonInit, mode: StopMode = this.#mode): void {
    this.token.cancel(reason, { mode });
  }

  cancelCall(callId: string, reason: CancelReasonInit): ReturnType<Run['cancelCall']> {
    return this.#run?.cancelCall(callId, reason) ?? { result: 'too-late' };
  }

  /** Marks it as being worked on. Returns `false` if it is already over. */
  take(): boolean {
    if (this.#isTaken || this.isSettled) return false;
    this.#isTaken = true;
    return true;
  }

  running(run: Run): void {
    this.#run = run;
  }

  ended(): void {
    this.#hasEnded = true;
    this.#run = undefined;
    this.#settle();
  }

  /** Called when its response is sent, or can never be. A prompt that was not taken by then was refused. */
  answered(): void {
    this.#isAnswered = true;
    if (!this.#isTaken) this.#hasEnded = true;
    this.#settle();
  }

  #settle(): void {
    if (!this.isSettled) return;
    this.token[Symbol.dispose]();
    this.#previous = undefined;
    this.#onSettled(this);
    this.#end.resolve();
  }
}
