import { type Message, toText } from '@whoa/core';
import type { ContentPart, UserMessage } from '@whoa/core/embed';
import type { FileUIPart, UIDataTypes, UIMessage, UIMessagePart, UITools } from 'ai';
import { type ReplacedCall, readNotice, withReplacedCalls } from '../replaced-calls.ts';
import { toOutput } from './turn-parts.ts';

type Part = UIMessagePart<UIDataTypes, UITools>;
export type DataPart = Extract<Part, { type: `data-${string}` }>;

const isBlank = (part: Part): boolean => part.type === 'text' && part.text.trim() === '';

/** Returns the text of a message's parts. */
export function joinText(parts: readonly Part[], separator = ''): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join(separator);
}

/** Leaves out what a user has left empty, and messages of data of which the model gets nothing. Providers refuse it, and with it every later turn of the chat. */
export function withoutBlanks(messages: readonly UIMessage[], isShown: (part: DataPart) => boolean): UIMessage[] {
  return messages.flatMap((message) => {
    if (message.role !== 'user') return [message];
    const parts = message.parts.filter((part) => !isBlank(part));
    const isKept = (part: Part): boolean =>
      part.type === 'text' || part.type === 'file' || (part.type.startsWith('data-') && isShown(part as DataPart));
    return parts.some(isKept) ? [{ ...message, parts }] : [];
  });
}

/** Converts a user's message for an agent: text and images; anything else is left out. */
export function toUserMessage({ id, parts }: UIMessage): UserMessage {
  const content = parts.flatMap((part): ContentPart[] => {
    if (part.type === 'text') return isBlank(part) ? [] : [{ type: 'text', text: part.text }];
    return part.type === 'file' ? toImageParts(part) : [];
  });
  return { role: 'user', id, content };
}

function toImageParts({ url, mediaType }: FileUIPart): ContentPart[] {
  const [, data] = /^data:[^,]*;base64,(.*)$/s.exec(url) ?? [];
  return data !== undefined && mediaType.startsWith('image/') ? [{ type: 'image', mediaType, data }] : [];
}

/** Converts the history of an agent's conversation for a page: everything between two user messages is one reply. */
export function toUiMessages(history: readonly Message[], chatId: string): UIMessage[] {
  const messages: UIMessage[] = [];
  let replaced: readonly ReplacedCall[] = [];
  history.forEach((message, index) => {
    const last = messages.at(-1);
    if (message.role === 'user' && message.isNotice) {
      replaced = [...replaced, ...readNotice(message)];
      return;
    }
    if (message.role === 'user') {
      const own = { id: message.id ?? `${chatId}-${index}`, role: 'user', parts: partsOfUser(message) } as const;
      messages.push(withReplacedCalls(own, replaced));
      replaced = [];
    } else if (last?.role === 'assistant') {
      addTo(last.parts, message);
    } else {
      messages.push({ id: `${chatId}-${index}`, role: 'assistant', parts: [] });
      addTo(messages.at(-1)!.parts, message);
    }
  });
  return messages;
}

function partsOfUser({ content }: UserMessage): Part[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.map((part) =>
    part.type === 'text'
      ? { type: 'text', text: part.text }
      : { type: 'file', mediaType: part.mediaType, url: `data:${part.mediaType};base64,${part.data}` },
  );
}

function addTo(parts: Part[], message: Exclude<Message, UserMessage>): void {
  if (message.role === 'assistant') {
    parts.push({ type: 'step-start' });
    for (const part of message.content) {
      if (part.type === 'text') parts.push({ type: 'text', text: part.text, state: 'done' });
      else if (part.type === 'thinking') parts.push({ type: 'reasoning', text: part.text, state: 'done' });
      else {
        const { tool: toolName, callId: toolCallId, input } = part;
        parts.push({ type: 'dynamic-tool', toolName, toolCallId, state: 'input-available', input });
      }
    }
    return;
  }
  const { callId, state, content, details } = message;
  const index = parts.findIndex((part) => part.type === 'dynamic-tool' && part.toolCallId === callId);
  const call = parts[index];
  if (call?.type !== 'dynamic-tool') return;
  const { toolName, toolCallId, input } = call;
  const about = { type: 'dynamic-tool', toolName, toolCallId, input } as const;
  parts[index] =
    state === 'finished'
      ? { ...about, state: 'output-available', output: toOutput({ content, details }) }
      : { ...about, state: 'output-error', errorText: toText(content) || state };
}
