import { type CancelReason, describeReason } from './token/reason.ts';

// Two copies of this package may meet in one process, so errors are known by a brand and not by their class.
const CANCELLED = Symbol.for('@whoa/core/cancelled');

/** Thrown by work that was asked to stop. `partial` is what it had when it stopped. */
export class CancelledError<Partial = unknown> extends Error {
  override readonly name: string = 'CancelledError';
  readonly code: string = 'CANCELLED';
  readonly reason: CancelReason;
  readonly partial: Partial | undefined;
  /** `unknown`: the work let go, but what it had begun elsewhere may go on. `none`: it is sure to have left no trace. */
  readonly effect: 'unknown' | 'none' | undefined;

  constructor(
    reason: CancelReason,
    options: { partial?: Partial; cause?: unknown; effect?: 'unknown' | 'none' | undefined } = {},
  ) {
    super(`Cancelled (${describeReason(reason)})`, 'cause' in options ? { cause: options.cause } : undefined);
    Object.defineProperty(this, CANCELLED, {});
    this.reason = reason;
    this.partial = options.partial;
    this.effect = options.effect;
  }
}

/**
 * Tells whether an error says "I was cancelled". Use this instead of `instanceof` or the error's text: two copies of this
 * package may meet.
 *
 * @returns True for a {@link CancelledError} of any copy.
 */
export function isCancelledError(error: unknown): error is CancelledError {
  return hasBrand(error, CANCELLED);
}

function hasBrand(error: unknown, brand: symbol): boolean {
  try {
    return brand in (error as object);
  } catch {
    // Anything can be thrown: what is no object, or a revoked proxy, cannot even be asked.
    return false;
  }
}

const OUTCOME_UNKNOWN = Symbol.for('@whoa/core/outcome-unknown');

/** Thrown by work that lost sight of its own effect: it may have happened or not. Its call ends `unknown`, not `failed`. */
export class OutcomeUnknownError extends Error {
  override readonly name: string = 'OutcomeUnknownError';
  readonly code: string = 'OUTCOME_UNKNOWN';

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    Object.defineProperty(this, OUTCOME_UNKNOWN, {});
  }
}

/**
 * Tells whether an error says that the effect of the work is unknown.
 *
 * @returns True for an {@link OutcomeUnknownError} of any copy.
 */
export function isOutcomeUnknownError(error: unknown): error is OutcomeUnknownError {
  return hasBrand(error, OUTCOME_UNKNOWN);
}

/** Thrown when a call did not end within its own `timeoutMs`. */
export class CallTimeoutError extends Error {
  override readonly name: string = 'CallTimeoutError';
  readonly code: string = 'CALL_TIMEOUT';

  constructor(name: string, timeoutMs: number) {
    super(`${name} did not end within ${timeoutMs} ms; raise its timeoutMs or make it faster`);
  }
}
