import type { Principal } from '../http/access/principal.ts';
import { readMessages } from './chat-history.ts';
import type { Chat, ChatMessage } from './chat-types.ts';

/**
 * Creates a check of the messages that a page sends before its new one. The server keeps chats itself, so a chat that it
 * does not know is one that the application keeps elsewhere, and its model would not see it. Warns once.
 */
export function createUnknownWarning(chat: Chat): (who: Principal, sent: ChatMessage, given: unknown) => Promise<void> {
  let isWarned = false;
  return async (who, { chatId, message }, given) => {
    const { messages } = given as { readonly messages: readonly { readonly id: string; readonly role: string }[] };
    const earlier = messages.filter(({ id, role }) => role === 'user' && id !== message.id);
    if (isWarned || earlier.length === 0) return;
    const { tasks } = await chat.store.list({ tenant: who.tenant, conversation: chatId, limit: 1 });
    if (tasks.length > 0 || (await readMessages(chat, { who, chatId })).length > 0 || isWarned) return;
    isWarned = true;
    const where = chat.history
      ? '`history.load` returned none of them'
      : 'pass `history` to keep chats in your own database';
    const words = `A page sent ${messages.length - 1} earlier messages of a chat that this server does not know`;
    process.emitWarning(`${words}, so the model does not see them; ${where}`, { type: 'WhoaWarning' });
  };
}
