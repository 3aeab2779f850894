import { hash } from 'node:crypto';
import type { UIMessage } from 'ai';
import { type ChatRef, readWhole } from './chat-history.ts';
import type { Chat, ChatMessage } from './chat-types.ts';

/** A message that is kept under another id than its sender chose. */
interface RenamedMessage extends UIMessage {
  readonly renamedFrom: string;
}

/**
 * Returns a message with an id that no other message of the chat has. Users choose the ids of their messages: one must
 * not take the place of a reply, or of what was said before. A message that is sent again gets the same id again.
 */
export async function withOwnId(
  chat: Chat,
  who: ChatRef['who'],
  { isStopped, ...sent }: ChatMessage & { readonly isStopped: boolean },
): Promise<ChatMessage> {
  const { chatId, message, runId, regenerate = false } = sent;
  const known = (await readWhole(chat, { who, chatId })).messages.find(({ id }) => id === message.id);
  const isRepeat = (runId === undefined || isStopped) && JSON.stringify(known?.parts) === JSON.stringify(message.parts);
  const isFree =
    known === undefined
      ? (await chat.store.get({ tenant: who.tenant, id: message.id.replace(/-stop$/, '') })) === undefined
      : known.role === 'user' && (regenerate || isRepeat || !chat.isReply);
  if (isFree) return sent;
  const id = hash('sha256', JSON.stringify([chatId, runId ?? '', message.id]), 'base64url').slice(0, 22);
  const renamed: RenamedMessage = { ...message, id, renamedFrom: message.id };
  return { ...sent, message: renamed, regenerate: false };
}

/** Returns the id under which a message is kept, if its sender chose another. */
export function findNewId(message: unknown): string | undefined {
  const { id, renamedFrom } = (message ?? {}) as Partial<RenamedMessage>;
  return renamedFrom === undefined ? undefined : id;
}
