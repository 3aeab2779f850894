import { type CancelReason, describeReason } from './reason.ts';

// Two copies of this package may meet in one process, so errors are known by a brand and not by their class.
const CANCELLED = Symbol.for('@whoa/core/cancelled');

/** Thrown by work that was asked to stop. `partial` is what it had when it stopped. */
export class CancelledError<Partial = unknown> extends Error {
  override readonly name: string = 'CancelledError';
  readonly code: string = 'CANCELLED';
  readonly reason: CancelReason;
  readonly partial: Partial | undefined;
  /** `unknown`: the work let go, but what it had begun elsewhere may go on and take effect. */
  readonly effect: 'unknown' | undefined;

  constructor(
    reason: CancelReason,
    options: { partial?: Partial; cause?: unknown; effect?: 'unknown' | undefined } = {},
  ) {
    super(`Cancelled (${describeReason(reason)})`, 'cause' in options ? { cause: options.cause } : undefined);
    Object.defineProperty(this, CANCELLED, { value: true });
    this.reason = reason;
    this.partial = options.partial;
    this.effect = options.effect;
  }
}

/** Whether an error says "I was cancelled". Ask this instead of `instanceof` or the error's text. */
export function isCancelledError(error: unknown): error is CancelledError {
  return typeof error === 'object' && error !== null && CANCELLED in error;
}

/** Thrown when a call did not end within its own `timeoutMs`. */
export class CallTimeoutError extends Error {
  override readonly name: string = 'CallTimeoutError';
  readonly code: string = 'CALL_TIMEOUT';

  constructor(name: string, timeoutMs: number) {
    super(`${name} did not end within ${timeoutMs} ms; raise its timeoutMs or make it faster`);
  }
}
