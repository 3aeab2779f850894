import { StoreBusyError } from '../../errors.ts';
import { UnknownOutcomeError } from '../../unknown-outcome.ts';

/** Thrown when the store cannot work as it was set up, however often it is tried. */
export class StoreSetupError extends Error {
  override readonly name: string = 'StoreSetupError';
  readonly code: string = 'STORE_SETUP';
}

/** What was being done when it failed. */
export interface Attempt {
  /** The store's method. */
  readonly operation: string;
  /** Whether the question had left for the server. */
  readonly sent: boolean;
  readonly changes: boolean;
}

/** Statements that the server gave up on and rolled back: too slow, in each other's way, or too many. */
const BUSY = new Set(['57014', '55P03', '40001', '40P01', '53300', '25P03']);

/** Says what a failure means: nothing happened, try again; nobody knows; or something is wrong with what was asked. */
export function failureOf(error: unknown, { operation, sent, changes }: Attempt): unknown {
  if (error instanceof StoreSetupError) return error;
  if (isAnswer(error)) {
    if (!BUSY.has(error.code)) return error;
    return new StoreBusyError(`The database could not do '${operation}' in time; nothing was changed, try again`, {
      cause: error,
    });
  }
  if (sent && changes) return new UnknownOutcomeError(operation, { cause: error });
  return new StoreBusyError(`The database cannot be reached for '${operation}'; is it running, and is the url right?`, {
    cause: error,
  });
}

/**
 * Whether the server answered, and so whether what was asked has been rolled back for certain. A server that ends the
 * connection (`FATAL`) says nothing about the statement: it may have been committed.
 */
function isAnswer(error: unknown): error is Error & { code: string } {
  const { severity, code } = error as { severity?: string; code?: string };
  return severity === 'ERROR' && code !== undefined;
}

/** Whether a connection can be used again after a failure. */
export function isSound(error: unknown): boolean {
  return isAnswer(error);
}
