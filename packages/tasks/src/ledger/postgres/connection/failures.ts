import { adviceOnCertificate } from '../../../bus/untrusted.ts';
import { StoreBusyError, StoreSetupError } from '../../../errors.ts';
import { UnknownOutcomeError } from '../../../unknown-outcome.ts';
import { wrongFormat } from '../../rules/format.ts';

/** The operation that failed. */
export interface Attempt {
  /** The store's method. */
  readonly operation: string;
  /** Whether the query had been sent to the server. */
  readonly sent: boolean;
  readonly changes: boolean;
  /** The address of the database for error messages, never with a password. */
  readonly server: string;
}

/** Errors after which the server rolled back, and what its operator can do. */
const BUSY: Readonly<Record<string, string>> = {
  '25006': 'the server is read-only: a standby, or a primary that was replaced. Connect to the primary',
  '25P02': 'the connection was handed over inside a failed transaction',
  '25P03': 'the transaction was left open for too long',
  '40001': 'it collided with another transaction',
  '40P01': 'it collided with another transaction',
  '53000': 'the server is short of resources',
  '53100': 'the disk of the server is full. Free some space; nothing can be changed until then',
  '53200': 'the server is out of memory',
  '53300': 'the server has too many connections. Lower maxConnections, raise max_connections, or use a pooler',
  '53400': 'a limit of the server was reached',
  '55P03': 'a row or a table was locked for too long',
  '57014': 'it took too long',
  '57P01': 'the server is shutting down',
  '57P02': 'the server crashed and restarts',
  '57P03': 'the server is starting up, or does not accept connections yet',
  '57P05': 'the server ended the idle connection',
};

/** Errors that a retry does not fix. */
const SETUP: Readonly<Record<string, string>> = {
  '28000': 'the server does not let this user in: check the url and pg_hba.conf',
  '28P01': 'the password is wrong: check the url',
  '3D000': 'the database does not exist: create it, or check the url',
  '42501': 'this user lacks a permission: let its owner grant it',
  '57P04': 'the database was dropped',
  // Raised by our own functions: a complete message; the format of the tables.
  WH001: '',
  WH002: '',
};

const CHECK = 'check that it runs and that the url is right';

/** Nothing was done, and the connection or its server is the cause: another connection may work. */
const STALE = new Set(['25006', '25P02', '26000', '42P05', '57P03', '08P01']);

/** The prepared statement is missing or differs: a pooler sends every statement to another connection. */
const UNPREPARED = new Set(['26000', '42P05']);

/** Converts a failure: nothing happened, so try again; the outcome is unknown; or the request itself is invalid. */
export function toStoreError(error: unknown, { operation, sent, changes, server }: Attempt): unknown {
  if (error instanceof StoreSetupError || error instanceof StoreBusyError) return error;
  const code = findErrorCode(error);
  const setup = code === undefined ? undefined : SETUP[code];
  if (setup !== undefined) {
    const message = (error as Error).message;
    const words = code === 'WH002' ? `the schema ${wrongFormat(Number(message))}` : `${setup} (${message})`;
    return new StoreSetupError(`${server}: ${code === 'WH001' ? message : words}`, { cause: error });
  }
  const busy = code === undefined ? undefined : BUSY[code];
  if (isAnswer(error) || !sent || !changes) {
    if (busy !== undefined) return busyError(`${server} did not do '${operation}': ${busy}`, operation, error);
    if (isAnswer(error)) return error;
    const { message, code: systemCode } = error as { message?: string; code?: string };
    const advice = adviceOnCertificate(error, "'sslrootcert=FILE' in the url") ?? CHECK;
    return busyError(
      `${server} cannot be reached (${message || systemCode || 'no connection'}); ${advice}`,
      operation,
      error,
    );
  }
  return new UnknownOutcomeError(operation, { cause: error });
}

/** Returns whether to retry on another connection: the operation certainly had no effect, and may succeed there. */
export function isWorthAnother(error: unknown, { sent, changes }: Attempt): boolean {
  const code = findErrorCode(error);
  if (isAnswer(error)) return STALE.has(code!);
  if (code !== undefined && code in SETUP) return false;
  return sent ? !changes : STALE.has(code ?? '');
}

export function isUnprepared(error: unknown): boolean {
  return UNPREPARED.has(findErrorCode(error) ?? '');
}

/** Returns whether the connection can be used again after a failure. */
export function isSound(error: unknown): boolean {
  return isAnswer(error) && !STALE.has(error.code);
}

function busyError(message: string, operation: string, cause: unknown): StoreBusyError {
  return new StoreBusyError(`${message}. Nothing was changed; try again`, { cause, operation });
}

/**
 * Returns whether the server responded, so that the statement was certainly rolled back. A server that ends the
 * connection (`FATAL`) says nothing about the statement: it may have been committed.
 */
function isAnswer(error: unknown): error is Error & { code: string } {
  return (error as { severity?: string }).severity === 'ERROR' && findErrorCode(error) !== undefined;
}

/** Returns the server's error code. System errors (`ECONNREFUSED`) have no severity. */
function findErrorCode(error: unknown): string | undefined {
  const { severity, code } = error as { severity?: string; code?: string };
  return severity === undefined ? undefined : code;
}
