import { HTTPException } from 'hono/http-exception';
import { type ErrorBody, refuse, refuseTemporarily } from './access/refusal.ts';

/** The default time before a retry. */
const RETRY_DELAY_MS = 1_000;

/** Thrown by a route that refuses a request. */
export class HttpError extends Error {
  override readonly name: string = 'HttpError';
  readonly status: number;
  readonly code: string;
  /** What the client gets. */
  readonly body: ErrorBody['error'];

  constructor(status: number, body: ErrorBody['error']) {
    super(body.message);
    this.status = status;
    this.code = body.code;
    this.body = body;
  }
}

/** Returns the same error for tasks that never existed, are no longer kept, or belong to other tenants. */
export function unknownTask(): HttpError {
  const message = 'You have no such task: it never existed, or is no longer stored';
  return new HttpError(404, { code: 'unknown-task', message });
}

/** Rejects a cursor that no page returned. */
export function refuseCursor(error: unknown): never {
  if (!(error instanceof TypeError) || !error.message.startsWith('cursor')) throw error;
  throw new HttpError(400, { code: 'invalid', message: error.message });
}

/** Converts an error to a response. Unexpected errors are reported, and their details are not sent. */
export function responseTo(error: unknown, onError: (error: unknown) => void): Response {
  if (error instanceof HttpError) {
    const { status, body } = error;
    return status === 429 || status === 503 ? refuseTemporarily(status, body, RETRY_DELAY_MS) : refuse(status, body);
  }
  if (error instanceof HTTPException) return refuse(error.status, describeBadBody(error.status));
  const code = String((error as { code?: unknown } | undefined)?.code);
  if (code === 'TASK_REJECTED')
    return refuse(409, { code: 'rejected', message: 'Another task of the conversation is running; try again later' });
  if (code === 'STORE_FULL') {
    const message = 'Too many tasks are waiting; try again later';
    return refuseTemporarily(429, { code: 'full', message }, RETRY_DELAY_MS);
  }
  const known = STORE_ERRORS[code];
  // Readers come back while a server ends: that is not a failure.
  if (code !== 'STORE_CLOSED') onError(error);
  if (known !== undefined) return refuseTemporarily(503, known, RETRY_DELAY_MS);
  return refuse(500, { code: 'internal', message: 'An internal error occurred; the log of the server has it' });
}

/** Describes a bad body by status: 415 for its type, 400 for its content. */
export function describeBadBody(status: number): ErrorBody['error'] {
  if (status === 415) return { code: 'no-json', message: 'Send JSON, with Content-Type: application/json' };
  return { code: 'invalid', message: 'The body is not valid JSON; send a JSON object' };
}

/** By code, not class: two copies of the package may be loaded. */
const STORE_ERRORS: Readonly<Record<string, ErrorBody['error']>> = {
  STORE_BUSY: { code: 'store-busy', message: 'The store did not respond in time; nothing was changed, try again' },
  UNKNOWN_OUTCOME: { code: 'unknown-outcome', message: 'The response of the store was lost; send the request again' },
  STORE_CLOSED: { code: 'closing', message: 'This server is shutting down; try again to reach another one' },
  STORE_SETUP: { code: 'store-setup', message: 'The store of this server cannot be used; see the server log' },
};
