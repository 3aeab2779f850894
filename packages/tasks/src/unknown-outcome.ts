/**
 * Thrown when the response to a change was lost, so the change may or may not have been made. Repeat the request: every
 * operation is safe to repeat. Pass the `nonce` of this error to `create`, `send` and `answer`; they then return the first
 * result. The other operations return `unchanged`, `too-late` or `held` if the change had been made. An append counts
 * once.
 */
export class UnknownOutcomeError extends Error {
  override readonly name: string = 'UnknownOutcomeError';
  readonly code: string = 'UNKNOWN_OUTCOME';
  /** The store method that was called. */
  readonly operation: string;

  /** The nonce to pass when repeating `create`, `send` or `answer`. */
  readonly nonce: string | undefined;

  constructor(operation: string, { nonce, ...options }: { cause?: unknown; nonce?: string | undefined } = {}) {
    const advice = nonce === undefined ? 'repeating it is safe' : 'with the nonce of this error repeating it is safe';
    super(`The answer to '${operation}' was lost; it may have happened or not. Ask again: ${advice}`, options);
    this.operation = operation;
    this.nonce = nonce;
  }
}

/** Adds the nonce of a request to the error that is thrown when its response was lost. */
export async function withNonce<T>(nonce: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof UnknownOutcomeError)) throw error;
    throw new UnknownOutcomeError(error.operation, { cause: error.cause, nonce });
  }
}
