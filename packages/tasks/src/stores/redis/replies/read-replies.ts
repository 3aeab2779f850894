import type { Json } from '@whoa/core';
import type { ConversationRecord, ConversationRef, JournalEntry } from '../../../task.ts';
import type { Reply } from '../connection/connection.ts';
import { type Flat, parseJsons } from './replies.ts';

/** Positions and entries alternate; an entry is epoch, time and event. */
export function toEntries(reply: Reply): JournalEntry[] {
  const flat = reply as Flat;
  const entries: JournalEntry[] = [];
  for (let i = 0; i < flat.length; i += 2) {
    const text = flat[i + 1]!;
    const epochEnd = text.indexOf(' ');
    const atEnd = text.indexOf(' ', epochEnd + 1);
    entries.push({
      position: Number(flat[i]),
      epoch: Number(text.slice(0, epochEnd)),
      at: Number(text.slice(epochEnd + 1, atEnd)),
      event: JSON.parse(text.slice(atEnd + 1)) as Json,
    });
  }
  return entries;
}

export function toConversation(
  reply: Reply,
  { tenant, conversation }: ConversationRef,
): ConversationRecord | undefined {
  if (reply === null) return undefined;
  const [changedAt, current, debouncing, history, waiting] = reply as [
    string,
    string | null,
    string | null,
    Flat,
    Flat,
  ];
  return {
    tenant,
    conversation,
    ...(current !== null && { current }),
    waiting,
    ...(debouncing !== null && { debouncing }),
    history: parseJsons(history),
    changedAt: Number(changedAt),
  };
}
