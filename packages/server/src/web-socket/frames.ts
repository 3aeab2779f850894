import type { UIMessageChunk } from 'ai';
import { z } from 'zod';
import { HttpError } from '../api/http/http-error.ts';
import type { ChatStopReceipt } from '../chat/chat.ts';
import {
  type ApproveRequest,
  approveRequest,
  checked,
  type SendRequest,
  type StopRequest,
  sendRequest,
  stopRequest,
} from '../chat/chat-request.ts';

/** A frame from a page: the frames of the AI SDK's `WebSocketChatTransport`, `stop` and `approve`. */
export type ClientFrame = { readonly requestId: string } & (
  | { readonly type: 'send'; readonly id: string; readonly send: SendRequest }
  | { readonly type: 'resume'; readonly id: string; readonly headers: Readonly<Record<string, string>> }
  | { readonly type: 'abort' }
  | { readonly type: 'stop'; readonly id: string; readonly stop: StopRequest }
  | { readonly type: 'approve'; readonly id: string; readonly approve: ApproveRequest }
);

/** A frame to a page. The SDK ignores `receipt` and `ping`. */
export type ServerFrame = { readonly requestId: string } & (
  | { readonly type: 'start' | 'end' | 'no-active' | 'ping' }
  | { readonly type: 'chunk'; readonly sequence: number; readonly chunk: UIMessageChunk }
  | { readonly type: 'error'; readonly errorText: string; readonly code: string }
  | { readonly type: 'receipt'; readonly receipt: ChatStopReceipt | { readonly answer: string } }
);

const name = z.string().min(1).max(200);
const about: z.ZodType<{ type: string; requestId: string }> = z.looseObject({ type: z.string(), requestId: name });
const resume: z.ZodType<{ id: string; headers: Record<string, string> }> = z.object({
  id: name,
  headers: z.record(z.string(), z.string()).default({}),
  lastSequence: z.undefined('replies are replayed from their beginning; leave it out').optional(),
});
const body: z.ZodType<{ id: string; body?: { runId?: unknown } | undefined }> = z.looseObject({
  id: name,
  body: z.looseObject({}).optional(),
});

/** The fields of every frame that names a chat. */
const ENVELOPE: ReadonlySet<string> = new Set(['type', 'requestId', 'id']);

/** Returns the id of a frame that may be invalid otherwise: the response must name it. */
export function requestIdOf(frame: unknown): string {
  const read = about.safeParse(frame);
  return read.success ? read.data.requestId : '';
}

/** Parses a frame. Throws a refusal if it is invalid. */
export function readFrame(frame: unknown): ClientFrame {
  const { type, requestId } = checked(frame, about);
  switch (type) {
    case 'send': {
      const { id, body: more } = checked(frame, body);
      return { type, requestId, id, send: checked({ ...(frame as object), runId: more?.runId }, sendRequest) };
    }
    case 'resume':
      return { type, requestId, ...checked(frame, resume) };
    case 'stop': {
      const { id } = checked(frame, body);
      const fields = Object.entries(frame as object).filter(([field]) => !ENVELOPE.has(field));
      return { type, requestId, id, stop: checked(Object.fromEntries(fields), stopRequest) };
    }
    case 'approve':
      return { type, requestId, id: checked(frame, body).id, approve: checked(frame, approveRequest) };
    case 'abort':
      return { type, requestId };
    default:
      throw new HttpError(400, { code: 'invalid', message: 'type: expected send, resume, abort, stop or approve' });
  }
}
