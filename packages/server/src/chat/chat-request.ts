import type { TaskRef } from '@whoa/tasks';
import type { UIMessage, UIMessageChunk } from 'ai';
import { z } from 'zod';
import type { Access } from '../http/access/access.ts';
import type { Principal } from '../http/access/principal.ts';
import type { ErrorBody } from '../http/access/refusal.ts';
import { invalid } from '../http/endpoint.ts';
import { describeBadBody, HttpError } from '../http/http-error.ts';
import { readAnswers } from './answers.ts';
import { continueMessage, findMissed, streamReply } from './chat.ts';
import type { ChatPageRequest } from './chat-list.ts';
import { findShown } from './chat-runs.ts';
import type { Chat, ChatAnswer, ChatAnswers, ChatMessage, StopRequest } from './chat-types.ts';
import { notAsked } from './questions.ts';
import { fromStep, replay } from './stale-answers.ts';

const name = z
  .string()
  .min(1)
  .max(200)
  .refine((text) => text.isWellFormed() && !text.includes('\0'), 'expected valid Unicode without NUL');

/** The ids in the path of a request. */
export const pathNames: z.ZodType<Readonly<Record<string, string>>> = z.record(z.string(), name);

/** Some clients send `null` for what they leave out. */
const optional = (text: z.ZodType<string>) => text.nullish().transform((given) => given ?? undefined);

/** A message as `useChat` sends it, with the name of the run. */
const sendRequest = z.looseObject({
  id: name,
  messages: z
    .array(z.looseObject({ id: name, role: z.string(), parts: z.array(z.looseObject({ type: z.string() })) }))
    .min(1),
  trigger: z.enum(['submit-message', 'regenerate-message']).default('submit-message'),
  messageId: optional(name),
  runId: optional(name),
});

/** What a user may send: words, files and data of the application. */
const userParts = z
  .array(
    z.union([
      z.looseObject({ type: z.literal('text'), text: z.string() }),
      z.looseObject({
        type: z.literal('file'),
        mediaType: z.string(),
        url: z.string().refine((url) => URL.canParse(url)),
      }),
      z.looseObject({ type: z.string().startsWith('data-') }),
    ]),
  )
  .refine((parts) => parts.some((part) => !('text' in part) || String(part.text).trim() !== ''), {
    message: 'the message is empty; send text, a file or data',
  });

// Strict: an option that is not understood must not be ignored.
export const stopRequest: z.ZodType<StopRequest> = z
  .strictObject({
    runId: optional(name),
    messageId: optional(name),
    scope: z.enum(['foreground', 'background', 'all']).default('foreground'),
    rollback: z.union([z.boolean(), z.literal('with-effects')]).default(false),
    reason: optional(z.string().max(1_000)),
  })
  .refine(({ scope, runId, messageId, rollback }) => scope !== 'background' || !(runId || messageId || rollback), {
    path: ['scope'],
    message: 'background work belongs to the chat, not to a run or turn; leave out runId, messageId and rollback',
  });

export const approveRequest: z.ZodType<Omit<ChatAnswer, 'chatId'>> = z
  .object({
    approvalId: name,
    approved: z.boolean(),
    why: optional(z.string().min(1).max(1_000)),
    remember: z.boolean().default(false),
  })
  .transform(({ approvalId, approved, why, remember }) => {
    const decision = approved ? (remember ? 'always' : 'yes') : remember ? 'never' : 'no';
    return { approvalId, decision, ...(why !== undefined && { why }) } as const;
  });

/** Which chats to list. */
export const listRequest: z.ZodType<ChatPageRequest> = z.object({
  limit: z.coerce.number().int().min(1).optional(),
  cursor: z.string().optional(),
});

/** Leaves room for the principal in the context of a task. */
const MAX_SENT_BYTES = 15 * 1024;

/** Returns the message of a request, or what a page has answered, for the chat. */
export function readSend(given: unknown, headers: Readonly<Record<string, string>>): ChatMessage | ChatAnswers {
  const { id: chatId, messages, trigger, messageId, runId, ...body } = checked(given, sendRequest);
  const sent = { body, headers };
  if (Buffer.byteLength(JSON.stringify(sent)) > MAX_SENT_BYTES) {
    const why = `The body has more than ${MAX_SENT_BYTES} bytes in addition to its messages; store them and send a reference`;
    throw new HttpError(413, { code: 'too-large', message: why });
  }
  const named = messages.find(({ id, role }) => id === messageId && role === 'assistant');
  const message = ((trigger === 'submit-message' && named) || messages.at(-1)) as unknown as UIMessage;
  if (message.role === 'assistant' && trigger === 'submit-message') {
    const steps = message.parts.filter(({ type }) => type === 'step-start').length;
    return { chatId, runId, sent, given: readAnswers(message), steps };
  }
  if (message.role !== 'user') throw notFromUser();
  checked(message.parts, userParts);
  // An edited message has its old id: everything after it is removed.
  const regenerate = trigger === 'regenerate-message' || messageId === message.id;
  return { chatId, message, runId, regenerate, sent };
}

/** Opens what continues a message. If another page was first, this one is shown how its message ended. */
export async function answerCalls(who: Principal, answers: ChatAnswers, chat: Chat): Promise<OpenReply> {
  const { ref, isOwn, message } = await continueMessage(chat, who, answers);
  if (ref === undefined && message === undefined) throw notAsked();
  if (ref !== undefined && isOwn) return (signal) => streamReply(chat, ref, { signal, isAsking: true });
  return (signal) => fromStep(ref ? streamReply(chat, ref, { signal }) : replay(message!), answers.steps);
}

/** Opens a reply for a reader. */
export type OpenReply = (signal: AbortSignal) => AsyncGenerator<UIMessageChunk, undefined>;

/** The header in which a page sends the last message it shows: its id, and whether it is complete. */
export const LAST_MESSAGE = 'whoa-last-message';

/** Returns the reply to stream to a page that opens a chat. */
export async function replyFor(
  who: Principal,
  { chatId, last: shown = '' }: { readonly chatId: string; readonly last?: string | undefined },
  chat: Chat,
): Promise<TaskRef | undefined> {
  const [last = '', partial] = shown.split(';');
  if (last === '') return findShown(chat, { tenant: who.tenant, chatId });
  return findMissed(chat, { who, chatId }, { id: decoded(last), isPartial: partial === 'partial' });
}

/** Names in headers are encoded. A name that cannot be decoded matches none of ours. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function notFromUser(): HttpError {
  const message = 'messages: the last one must be from the user; the server stores the others';
  return new HttpError(400, { code: 'invalid', message });
}

/** Returns the body of a request. Throws an `HttpError` if it is not JSON. */
export async function readJson(request: Request, access: Access): Promise<unknown> {
  if (!(request.headers.get('content-type') ?? '').startsWith('application/json'))
    throw new HttpError(415, describeBadBody(415));
  const read = await access.readBody(request);
  if (!(read instanceof Request)) throw await readError(read);
  return read.json().catch(() => {
    throw new HttpError(400, describeBadBody(400));
  });
}

/** Returns a checked value. Throws an `HttpError` if it does not match the schema. */
export function checked<T>(value: unknown, schema: z.ZodType<T>): T {
  const read = schema.safeParse(value);
  if (!read.success) throw invalid(read.error);
  return read.data;
}

/** Converts a refusal to an error. */
async function readError(response: Response): Promise<HttpError> {
  const { error } = (await response.json()) as ErrorBody;
  return new HttpError(response.status, error);
}
