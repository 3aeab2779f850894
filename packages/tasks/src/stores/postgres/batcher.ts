interface Waiting<Request, Answer> {
  readonly request: Request;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export interface BatcherOptions<Request, Answer> {
  /** Asks for all at once; answers in the same order. `isAlone`: nothing else is under way. */
  readonly ask: (requests: readonly Request[], isAlone: boolean) => Promise<readonly Answer[]>;
  readonly maxSize?: number;
  readonly maxInFlight?: number;
}

const MAX_SIZE = 100;
const MAX_IN_FLIGHT = 3;

/**
 * Puts requests together that are made at the same time. One that comes alone is asked at once; while some are under way,
 * those that come meanwhile go together.
 */
export class Batcher<Request, Answer> {
  readonly #options: BatcherOptions<Request, Answer>;
  readonly #waiting: Waiting<Request, Answer>[] = [];
  #inFlight = 0;
  #isScheduled = false;

  constructor(options: BatcherOptions<Request, Answer>) {
    this.#options = options;
  }

  ask(request: Request): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject });
      this.#schedule();
    });
  }

  /** In the next turn: whoever is woken by the same answer asks together. */
  #schedule(): void {
    const { maxInFlight = MAX_IN_FLIGHT } = this.#options;
    if (this.#isScheduled || this.#inFlight >= maxInFlight) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#send();
    });
  }

  #send(): void {
    const batch = this.#waiting.splice(0, this.#options.maxSize ?? MAX_SIZE);
    if (batch.length === 0) return;
    const isAlone = batch.length === 1 && this.#inFlight === 0;
    this.#inFlight++;
    this.#options
      .ask(
        batch.map(({ request }) => request),
        isAlone,
      )
      .then(
        (answers) => {
          for (const [index, { resolve }] of batch.entries()) resolve(answers[index]!);
        },
        (error: unknown) => {
          for (const { reject } of batch) reject(error);
        },
      )
      .finally(() => {
        this.#inFlight--;
        if (this.#waiting.length > 0) this.#schedule();
      });
    if (this.#waiting.length > 0) this.#schedule();
  }
}
