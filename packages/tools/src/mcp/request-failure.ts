import { describeError } from '@whoa/core/internal';
import { LostAnswerError } from './lost-answer.ts';
import { loadClient, type OpenConnection } from './open-connection.ts';

/** Error codes that mean that a request was never sent. */
const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];

export interface FailedRequest {
  readonly server: string;
  readonly connection: Pick<OpenConnection, 'end'>;
  /** Called if the connection cannot be used any more. */
  readonly onUnusable: () => void;
}

/** Describes a failure so that a model can act on it. An error response of the server is passed on unchanged. */
export async function describeFailure(error: unknown, failed: FailedRequest): Promise<Error> {
  const { server, connection, onUnusable } = failed;
  const { ProtocolError, SdkError, SdkErrorCode } = await loadClient();
  if (ProtocolError.isInstance(error)) return error;
  const lost = (words: string): Error => new LostAnswerError(`The MCP server '${server}' ${words}`, { cause: error });
  if (SdkError.isInstance(error)) {
    if (error.code === SdkErrorCode.RequestTimeout) return error;
    if (error.code === SdkErrorCode.ConnectionClosed)
      return lost(
        `ended during the call (${connection.end ?? 'the connection was closed'}); the next call starts it again`,
      );
    if (error.code === SdkErrorCode.InvalidResult) return lost(`sent an invalid response (${describeError(error)})`);
  }
  onUnusable();
  const failure = lost(`could not be reached (${describeError(error)}); the next call tries again`);
  return isUnsent(error) ? new Error(failure.message, { cause: error }) : failure;
}

function isUnsent(error: unknown): boolean {
  for (let at = error as { code?: unknown; cause?: unknown } | undefined, depth = 0; at && depth < 5; depth++) {
    if (UNSENT.includes(at.code as string)) return true;
    at = at.cause as typeof at;
  }
  return false;
}
