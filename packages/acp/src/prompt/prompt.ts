import { CancellationToken, type CancelReasonInit, type Run, type StopMode } from '@whoa/core';

export interface PromptOptions {
  readonly mode: StopMode;
  readonly previous: Prompt | undefined;
  readonly onSettled: (prompt: Prompt) => void;
  /** Why it is answered, but not worked on. */
  readonly refusal?: string | undefined;
  /** Whether it will be told when its answer is out; without, its work is all it waits for. */
  readonly waitsForAnswer?: boolean;
}

/**
 * One prompt. It is reserved the moment the prompt is read from the wire, so that whatever follows it there finds it; every
 * cancel, wherever it comes from, ends in the same token. It is settled when its work has ended and its answer is out.
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

  /** The prompt before it in the same session, unless that is settled: this one begins when it is. */
  get previous(): Prompt | undefined {
    return this.#previous;
  }

  get isSettled(): boolean {
    return this.#hasEnded && this.#isAnswered;
  }

  /** Before it runs, while it runs, twice, and after the end: all the same, and only this prompt is meant. */
  cancel(reason: CancelReasonInit, mode: StopMode = this.#mode): void {
    this.token.cancel(reason, { mode });
  }

  cancelCall(callId: string, reason: CancelReasonInit): ReturnType<Run['cancelCall']> {
    return this.#run?.cancelCall(callId, reason) ?? { answer: 'too-late' };
  }

  /** Somebody works on it from now on. Answers `false` if it is over already. */
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

  /** Its answer is out, or can never be. A prompt that nobody took by then was refused. */
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
