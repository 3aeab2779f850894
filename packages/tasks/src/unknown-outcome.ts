/**
 * Thrown when a store was asked for a change and its answer was lost: the change may have been made or not. Ask again.
 * Every operation can be repeated: what was done already is answered with `already`, `duplicate` or `held`; a task to
 * be created needs a key for that.
 */
export class UnknownOutcomeError extends Error {
  override readonly name: string = 'UnknownOutcomeError';
  readonly code: string = 'UNKNOWN_OUTCOME';
  /** What was asked: the name of the store's method. */
  readonly operation: string;

  constructor(operation: string, options: { cause?: unknown } = {}) {
    super(
      `The answer to '${operation}' was lost; it may have happened or not. Ask again: repeating it is safe`,
      options,
    );
    this.operation = operation;
  }
}
