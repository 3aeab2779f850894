/**
 * Thrown when a store was asked for a change and its answer was lost: the change may have been made or not. Ask again.
 * Every operation can be repeated. `create` and `send` take the `nonce` of this error and then answer as the first time;
 * the others answer `already`, `too-late` or `held` to what had been done, and what is appended counts once.
 */
export class UnknownOutcomeError extends Error {
  override readonly name: string = 'UnknownOutcomeError';
  readonly code: string = 'UNKNOWN_OUTCOME';
  /** What was asked: the name of the store's method. */
  readonly operation: string;

  /** What `create` and `send` must be given when they are repeated. */
  readonly nonce: string | undefined;

  constructor(operation: string, { nonce, ...options }: { cause?: unknown; nonce?: string } = {}) {
    const advice = nonce === undefined ? 'repeating it is safe' : 'with the nonce of this error repeating it is safe';
    super(`The answer to '${operation}' was lost; it may have happened or not. Ask again: ${advice}`, options);
    this.operation = operation;
    this.nonce = nonce;
  }
}

/** Adds the nonce of a request to what is thrown when its answer was lost. */
export async function withNonce<T>(nonce: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof UnknownOutcomeError)) throw error;
    throw new UnknownOutcomeError(error.operation, { cause: error.cause, nonce });
  }
}
