// Import types only: the first response is sent before the library is loaded.
import type { AnyMessage, ErrorResponse } from '@agentclientprotocol/sdk';

/** The longest line that is read, in bytes. Longer ones are skipped, and an error is sent back. */
export const MAX_FRAME_BYTES: number = 32 * 1024 * 1024;
/** Deeper messages overflow the stack of recursive code. */
const MAX_FRAME_DEPTH = 200;
export const TOO_LONG: string = `the response is longer than ${MAX_FRAME_BYTES} bytes`;
const PARSE_ERROR: ErrorResponse = { code: -32700, message: 'Parse error' };

/** The id of a request. */
export type FrameId = string | number | null;

/** A line that was read: a message to handle, a response to send immediately, or nothing. */
export type Frame =
  | { readonly type: 'message'; readonly message: AnyMessage }
  | { readonly type: 'refusal'; readonly answer: AnyMessage }
  | { readonly type: 'nothing' };

/**
 * Reads one line. Invalid messages get their error response here. Don't echo their content: it may contain secrets, and
 * may be too deep to serialize.
 */
export function readFrame(line: string): Frame {
  if (line.trim() === '') return { type: 'nothing' };
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return refuse(null, PARSE_ERROR);
  }
  if (Array.isArray(value)) return refuse(null, invalid('batches are not supported'));
  if (typeof value !== 'object' || value === null) return refuse(null, invalid());
  if (isTooDeep(value)) return refuse(null, invalid('the message is nested too deeply'));
  const { jsonrpc, id, method } = value as Record<string, unknown>;
  if (!Object.hasOwn(value, 'method')) {
    // It may be a response to one of our requests; never respond to a response.
    const isAnswer = Object.hasOwn(value, 'result') || Object.hasOwn(value, 'error') || Object.hasOwn(value, 'id');
    return isAnswer ? message(value) : refuse(null, invalid());
  }
  const isValid = jsonrpc === '2.0' && typeof method === 'string' && (!Object.hasOwn(value, 'id') || isFrameId(id));
  return isValid ? message(value) : refuse(isFrameId(id) ? id : null, invalid());
}

/** The response to a line that was too long. */
export function refuseLength(): AnyMessage {
  return refusal(null, invalid(`a message may have at most ${MAX_FRAME_BYTES} bytes`));
}

/**
 * Reads the id of a response that was too long from its beginning. Returns `undefined` if it is not a response, or does
 * not start with the id.
 */
export function answeredId(head: string): FrameId | undefined {
  const id = /^\s*\{(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"id"\s*:\s*(-?\d+|"[^"\\]*")\s*,\s*"result"/.exec(head)?.[1];
  return id === undefined ? undefined : (JSON.parse(id) as FrameId);
}

/** Creates an error response. */
export function refusal(id: FrameId, error: ErrorResponse): AnyMessage {
  return { jsonrpc: '2.0', id, error: { code: error.code, message: error.message } };
}

function invalid(why?: string): ErrorResponse {
  return { code: -32600, message: why === undefined ? 'Invalid request' : `Invalid request: ${why}` };
}

function isFrameId(value: unknown): value is FrameId {
  return value === null || typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value));
}

function message(value: object): Frame {
  return { type: 'message', message: value as AnyMessage };
}

function refuse(id: FrameId, error: ErrorResponse): Frame {
  return { type: 'refusal', answer: refusal(id, error) };
}

/** Walks with a list, not recursively, so that a deep message does not overflow the stack. */
function isTooDeep(root: object): boolean {
  let level: object[] = [root];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_FRAME_DEPTH) return true;
    const next: object[] = [];
    for (const node of level) {
      for (const value of Object.values(node)) {
        if (typeof value === 'object' && value !== null) next.push(value as object);
      }
    }
    level = next;
  }
  return false;
}
