import { type FrameId, readFrame } from '../wire/frame.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** A message as it came, and what it says. */
export interface Message {
  /** What is passed on: the line itself, so that nothing of it changes. */
  readonly line: string;
  readonly id: FrameId | undefined;
  readonly method: string | undefined;
  readonly params: Fields;
  readonly body: Fields;
}

/** Reads a line: a message, the error response to send back, or nothing. */
export function readMessage(line: string): Message | { readonly refusal: string } | undefined {
  const frame = readFrame(line);
  if (frame.type === 'nothing') return undefined;
  if (frame.type === 'refusal') return { refusal: JSON.stringify(frame.answer) };
  const body = frame.message as unknown as Fields;
  const id = Object.hasOwn(body, 'id') ? (body['id'] as FrameId) : undefined;
  const method = Object.hasOwn(body, 'method') ? (body['method'] as string) : undefined;
  return { line, body, id, method, params: toFields(body['params']) };
}

/** The fields of a value that should be an object. */
export function toFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

export function toText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

export function toUpdate({ params }: Message): Fields {
  return toFields(params['update']);
}

export function isError({ body }: Message): boolean {
  return body['error'] !== undefined;
}

export function encode(message: object): string {
  return JSON.stringify({ jsonrpc: '2.0', ...message });
}

export function encodeUpdate(sessionId: string, update: object): string {
  return encode({ method: 'session/update', params: { sessionId, update } });
}

export function encodeWithdrawal(requestId: FrameId): string {
  return encode({ method: '$/cancel_request', params: { requestId } });
}

/** The line of a message for a session that has another id on the other side. */
export function lineFor({ line, body, params }: Message, sessionId: string | undefined): string {
  if (sessionId === undefined || params['sessionId'] === sessionId) return line;
  return JSON.stringify({ ...body, params: { ...params, sessionId } });
}

export function refuseCancelled(id: FrameId): string {
  return encode({ id, error: { code: -32800, message: 'Request cancelled' } });
}

export function failed(id: FrameId, message: string): string {
  return encode({ id, error: { code: -32603, message } });
}

/** The answer of a person who cancelled. It never allows anything. */
export function answerCancelled(method: string, id: FrameId): string {
  if (method === 'session/request_permission') return encode({ id, result: { outcome: { outcome: 'cancelled' } } });
  if (method === 'elicitation/create') return encode({ id, result: { action: 'cancel' } });
  return refuseCancelled(id);
}
