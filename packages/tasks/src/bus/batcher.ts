interface Waiting<Request, Answer> {
  readonly request: Request;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export interface BatcherOptions<Request, Answer> {
  /** Sends all requests at the same time; responses are in the same order. */
  readonly ask: (requests: readonly Request[]) => Promise<readonly Answer[]>;
  readonly maxSize?: number;
  readonly maxInFlight?: number;
  /** At least so much time passes after several requests were sent together: who asks alone never waits. */
  readonly gapMs?: number;
}

const MAX_SIZE = 100;
const MAX_IN_FLIGHT = 3;

/**
 * Batches requests that are made at the same time. A single request is sent immediately; requests that arrive while others
 * are in progress are sent together.
 */
export class Batcher<Request, Answer> {
  readonly #options: BatcherOptions<Request, Answer>;
  readonly #waiting: Waiting<Request, Answer>[] = [];
  #inFlight = 0;
  #isScheduled = false;
  #sentAt = -Infinity;

  constructor(options: BatcherOptions<Request, Answer>) {
    this.#options = options;
  }

  ask(request: Request): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject });
      this.#schedule();
    });
  }

  /** Waits for the next turn of the event loop: callers that are woken by the same response then share a batch. */
  #schedule(): void {
    const { maxInFlight = MAX_IN_FLIGHT, gapMs = 0 } = this.#options;
    if (this.#isScheduled || this.#inFlight >= maxInFlight) return;
    this.#isScheduled = true;
    const send = (): void => {
      this.#isScheduled = false;
      this.#send();
    };
    const waitMs = this.#sentAt + gapMs - performance.now();
    if (waitMs > 0) setTimeout(send, waitMs);
    else queueMicrotask(send);
  }

  #send(): void {
    const batch = this.#waiting.splice(0, this.#options.maxSize ?? MAX_SIZE);
    if (batch.length === 0) return;
    this.#inFlight++;
    if (batch.length > 1) this.#sentAt = performance.now();
    this.#options
      .ask(batch.map(({ request }) => request))
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
