import { isList, isObject, type Rule, SettingsError, safely, unexpected } from '../../stop/settings.ts';
import { cloneJson } from '../../tool/normalize.ts';
import {
  type AssistantMessage,
  isRecorded,
  type Message,
  NO_USAGE,
  recorded,
  recordMessage,
  type UserMessage,
} from './message.ts';

const CONTENT = 'a string, or a list of { type: "text", text } and { type: "image", mediaType, data }';

/** Reads the input of a user or a program: content, or a whole message. */
export const readInput: (given: unknown, field: string) => UserMessage = reader((value, field) => {
  if (!isObject(value) || Array.isArray(value)) return { role: 'user', content: content(value, field) };
  const { role, content: said } = value as { role?: unknown; content?: unknown };
  if (role !== 'user') throw unexpected(`${field}.role`, role, "'user'; an input is content or a user's message");
  content(said, `${field}.content`);
  return value;
});

/** Reads one message of a history. */
export const readMessage: (given: unknown, field: string) => Message = reader((value, field) => {
  if (!isObject(value)) throw unexpected(field, value, 'a message');
  const { role, content: said, callId, tool } = value as Record<string, unknown>;
  if (role === 'assistant') {
    if (!isReplyContent(said)) throw unexpected(`${field}.content`, said, 'the parts of a reply');
    return value;
  }
  if (role !== 'user' && role !== 'tool') throw unexpected(`${field}.role`, role, "'user', 'assistant' or 'tool'");
  content(said, `${field}.content`);
  if (role === 'tool' && (typeof callId !== 'string' || typeof tool !== 'string')) {
    throw new SettingsError(field, 'the result of a call needs a callId and a tool');
  }
  return value;
});

/** Copies before it checks: what was checked is what is recorded, even if the caller changes the original. */
function reader<Kind extends Message>(check: Rule): (given: unknown, field: string) => Kind {
  const read = safely((given, field) => check(isObject(given) && !isRecorded(given) ? cloneJson(given) : given, field));
  return (given, field) => recorded(read(given, field) as Kind);
}

/** Records a planner's reply. Throws if it is not a reply. */
export function recordReply(given: AssistantMessage): AssistantMessage {
  if (isList(given.content)) {
    const reply = recordMessage(given);
    const { role, content: said, stopReason, usage = NO_USAGE, provider, api, model } = reply;
    const isWhole = role === 'assistant' && isReplyContent(said) && typeof stopReason === 'string';
    const isCounted = Number.isFinite(usage.inputTokens) && Number.isFinite(usage.outputTokens);
    if (isWhole && isCounted && [provider, api, model].every(isTextOrNone)) return reply;
  }
  throw unexpected('message', given, "an assistant's message with its parts, stopReason and optional usage");
}

function isReplyContent(value: unknown): boolean {
  return isList(value) && value.every(isReplyPart);
}

function isTextOrNone(value: unknown): boolean {
  return value === undefined || typeof value === 'string';
}

function isReplyPart(part: unknown): boolean {
  if (!isObject(part)) return false;
  const { type, text, signature, callId, tool } = part as Record<string, unknown>;
  if (type === 'call') return typeof callId === 'string' && typeof tool === 'string';
  return (type === 'text' || (type === 'thinking' && isTextOrNone(signature))) && typeof text === 'string';
}

function content(value: unknown, field: string): unknown {
  if (typeof value === 'string') return value;
  if (!isList(value)) throw unexpected(field, value, CONTENT);
  for (const [index, part] of value.entries()) if (!isPart(part)) throw unexpected(`${field}[${index}]`, part, CONTENT);
  return value;
}

function isPart(part: unknown): boolean {
  if (!isObject(part)) return false;
  const { type, text, mediaType, data } = part as Record<string, unknown>;
  if (type === 'text') return typeof text === 'string';
  return type === 'image' && typeof mediaType === 'string' && typeof data === 'string';
}
