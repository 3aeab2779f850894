import type { AbstractChat, UIMessage } from 'ai';
import type { ChatState } from './chat-watch.ts';
import type { StoppableChatTransport } from './stoppable-chat-transport.ts';

type ReadingChat<Message extends UIMessage> = Pick<AbstractChat<Message>, 'id' | 'messages' | 'resumeStream'>;

/**
 * Reads the reply in progress, and shows what other tabs, browsers and programs change in a chat of the AI SDK.
 *
 * @returns A function that ends the watching.
 *
 * @example
 * ```ts
 * import { Chat } from '@ai-sdk/svelte';
 * import { StoppableChatTransport, watchChat } from '@whoa/server/transport';
 *
 * const transport = new StoppableChatTransport({ api: '/api/chat' });
 * const chat = new Chat({ id: 'c1', transport });
 * export const leave = watchChat(chat, transport);
 * ```
 */
export function watchChat<Message extends UIMessage>(
  chat: ReadingChat<Message>,
  transport: StoppableChatTransport<Message>,
): () => void {
  let last: ChatState | undefined;
  const show = async (state: ChatState): Promise<void> => {
    last = state;
    if (!transport.isShown(chat.id, state)) {
      const messages = await transport.readMessages(chat.id);
      chat.messages = transport.toShown(chat.id, messages, chat.messages);
    }
    await transport.waitForEnd(chat.id);
    if (last !== state || !transport.isMissed(chat.id, state, chat.messages.at(-1))) return;
    transport.setOwn(chat.id);
    await chat.resumeStream();
  };
  chat.resumeStream().catch(() => {});
  return transport.watch(chat.id, (state) => void show(state).catch(() => {}));
}
