import type { Event as CoreEvent, Message as CoreMessage } from '@ag-ui/core';
import type { FileUIPart, UIMessage } from 'ai';
import { z } from 'zod';
import type { PageAnswer } from '../answers.ts';
import { getToolName, isCallPart } from '../ui/call-parts.ts';
import { joinText } from '../ui/ui-messages.ts';

type Written<Event> = Event extends { type: infer Type extends string }
  ? { readonly [Field in keyof Event]: Field extends 'type' ? `${Type}` : Event[Field] }
  : never;

/** An event as it is written to the wire. The library's own types require its enum. */
export type AgUiEvent = Written<CoreEvent>;
export type AgUiMessage = CoreMessage;

/** What is used of a `RunAgentInput`. The page's tools and state are for agents that run in the page. */
export interface RunInput {
  readonly threadId: string;
  readonly runId: string;
  /** All messages, as the page has them. */
  readonly before: readonly AgUiMessage[];
  /** The last message, if it is from the user. */
  readonly message: UIMessage | undefined;
  /** The results of calls that ran in the page: the tool messages at the end. */
  readonly results: readonly PageAnswer[];
  /** Answers to the questions that interrupted an earlier run. */
  readonly resume: readonly ResumeAnswer[];
}

interface ResumeAnswer {
  readonly interruptId: string;
  /** A cancelled question is denied. */
  readonly status: 'resolved' | 'cancelled';
  readonly payload?: unknown;
}

/** The maximum number of questions that one run answers. */
const MAX_RESUMED = 100;

const name = z.string().min(1).max(200);
const source = z.looseObject({ type: z.string(), value: z.string(), mimeType: z.string().optional() });
const part = z.looseObject({ type: z.string(), text: z.string().optional(), source: source.optional() });
const message = z.looseObject({
  id: name,
  role: z.string(),
  content: z.union([z.string(), z.array(part)]).optional(),
  toolCallId: z.string().optional(),
  error: z.string().optional(),
});
const answer = z.looseObject({
  interruptId: name,
  status: z.enum(['resolved', 'cancelled']),
  payload: z.unknown().optional(),
});
type InputMessage = z.infer<typeof message>;

export const runInput: z.ZodType<RunInput> = z
  .looseObject({
    threadId: name,
    runId: name,
    messages: z.array(message),
    resume: z.array(answer).max(MAX_RESUMED).default([]),
  })
  .transform(({ threadId, runId, messages, resume }) => {
    const last = messages.at(-1);
    const results = messages.slice(messages.findLastIndex(({ role }) => role !== 'tool') + 1);
    return {
      threadId,
      runId,
      before: messages as unknown as readonly AgUiMessage[],
      message: last?.role === 'user' ? toUiMessage(last) : undefined,
      results: resume.length > 0 ? [] : results.map(toPageAnswer),
      resume,
    };
  });

function toPageAnswer({ toolCallId = '', content = '', error }: InputMessage): PageAnswer {
  if (error !== undefined) return { toolCallId, errorText: error };
  return { toolCallId, output: typeof content === 'string' ? content : content.map(({ text = '' }) => text).join('') };
}

/** Converts a user's message to what a chat keeps. */
function toUiMessage({ id, content = '' }: InputMessage): UIMessage {
  const given = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  const parts = given.flatMap(({ text, source: from }: z.infer<typeof part>): UIMessage['parts'] => {
    if (text !== undefined) return [{ type: 'text', text }];
    return from === undefined ? [] : [toFilePart(from)];
  });
  return { id, role: 'user', parts };
}

function toFilePart({ type, value, mimeType = 'application/octet-stream' }: z.infer<typeof source>): FileUIPart {
  return { type: 'file', mediaType: mimeType, url: type === 'data' ? `data:${mimeType};base64,${value}` : value };
}

/** Converts a chat to the messages of an AG-UI client. */
export function toAgUiMessages(messages: readonly UIMessage[]): AgUiMessage[] {
  return messages.flatMap((one): AgUiMessage[] =>
    one.role === 'user' ? [{ id: one.id, role: 'user', content: joinText(one.parts) }] : toReplyMessages(one),
  );
}

/** Each part of a reply becomes a separate message. */
function toReplyMessages({ id, parts }: UIMessage): AgUiMessage[] {
  const messages: AgUiMessage[] = [];
  for (const [index, one] of parts.entries()) {
    const messageId = `${id}-${index}`;
    if (one.type === 'text') messages.push({ id: messageId, role: 'assistant', content: one.text });
    if (one.type === 'reasoning') messages.push({ id: messageId, role: 'reasoning', content: one.text });
    if (!isCallPart(one)) continue;
    const { toolCallId, input, output, errorText } = one;
    const asked = { name: getToolName(one), arguments: JSON.stringify(input ?? {}) };
    messages.push({
      id: messageId,
      role: 'assistant',
      toolCalls: [{ id: toolCallId, type: 'function', function: asked }],
    });
    const content: string | undefined = errorText ?? (typeof output === 'string' ? output : JSON.stringify(output));
    if (content !== undefined) messages.push({ id: `${messageId}-result`, role: 'tool', toolCallId, content });
  }
  return messages;
}
