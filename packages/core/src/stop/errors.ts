import { type CancelReason, describeReason } from './token/reason.ts';

// Identify errors by a brand, not by class: one process may load two copies of this package.
const CANCELLED = Symbol.for('@whoa/core/cancelled');

/** Thrown by work that was asked to stop. `partial` is the result it had when it stopped. */
export class CancelledError<Partial = unknown> extends Error {
  override readonly name: string = 'CancelledError';
  readonly code: string = 'CANCELLED';
  readonly reason: CancelReason;
  readonly partial: Partial | undefined;
  /** `unknown`: the work stopped waiting, but what it started elsewhere may continue. `none`: it left no effect. */
  readonly effect: 'unknown' | 'none' | undefined;

  constructor(
    reason: CancelReason,
    options: { partial?: Partial | undefined; cause?: unknown; effect?: 'unknown' | 'none' | undefined } = {},
  ) {
    super(`Cancelled (${describeReason(reason)})`, 'cause' in options ? { cause: options.cause } : undefined);
    Object.defineProperty(this, CANCELLED, {});
    this.reason = reason;
    this.partial = options.partial;
    this.effect = options.effect;
  }
}

/**
 * Checks whether an error is a cancellation. Use this instead of `instanceof` or the error's message: one process may
 * load two copies of this package.
 *
 * @returns True for a {@link CancelledError} from any copy.
 */
export function isCancelledError(error: unknown): error is CancelledError {
  return hasBrand(error, CANCELLED);
}

function hasBrand(error: unknown, brand: symbol): boolean {
  try {
    return brand in (error as object);
  } catch {
    // Anything can be thrown. Reading a property of a revoked proxy throws.
    return false;
  }
}

const OUTCOME_UNKNOWN = Symbol.for('@whoa/core/outcome-unknown');

/** Thrown by work that cannot know whether its effect happened. Its call ends `unknown`, not `failed`. */
export class CallOutcomeUnknownError extends Error {
  override readonly name: string = 'CallOutcomeUnknownError';
  readonly code: string = 'OUTCOME_UNKNOWN';

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    Object.defineProperty(this, OUTCOME_UNKNOWN, {});
  }
}

/**
 * Checks whether an error means that the effect of the work is unknown.
 *
 * @returns True for an {@link CallOutcomeUnknownError} from any copy.
 */
export function isOutcomeUnknownError(error: unknown): error is CallOutcomeUnknownError {
  return hasBrand(error, OUTCOME_UNKNOWN);
}

/** Thrown by `guard` when work did not end within its own `timeoutMs`. `cause` is what it threw when it was asked to stop. */
export class CallTimeoutError extends Error {
  override readonly name: string = 'CallTimeoutError';
  readonly code: string = 'CALL_TIMEOUT';
  /** `interrupted`: it stopped when asked to. `unknown`: it was abandoned, and may still be running. */
  readonly state: 'interrupted' | 'unknown';

  constructor(name: string, timeoutMs: number, options: { state: 'interrupted' | 'unknown'; cause?: unknown }) {
    super(`${name} did not end within ${timeoutMs} ms; raise its timeoutMs or make it faster`, options);
    this.state = options.state;
  }
}
