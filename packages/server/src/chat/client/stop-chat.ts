import type { AbstractChat, UIMessage } from 'ai';
import type { StopOptions, StopReceipt } from './chat-stop.ts';
import type { StoppableChatTransport } from './stoppable-chat-transport.ts';
import { findWaiting } from './waiting-message.ts';

/** What the chats of the AI SDK have in common: `Chat` of Svelte and Angular, `reactive(useChat(…))` of Vue. */
export type AnyChat<Message extends UIMessage> = Pick<AbstractChat<Message>, 'id' | 'messages' | 'stop'>;

/**
 * Stops the run that a chat of the AI SDK shows, and waits until the page has its end. Use it instead of `chat.stop()`,
 * which only ends the reading.
 *
 * @returns The server's answer.
 *
 * @example
 * ```ts
 * import { Chat } from '@ai-sdk/svelte';
 * import { StoppableChatTransport, stopChat } from '@whoa/server/transport';
 *
 * const transport = new StoppableChatTransport({ api: '/api/chat' });
 * const chat = new Chat({ id: 'c1', transport });
 * export const stop = () => stopChat(chat, transport);
 * ```
 */
export async function stopChat<Message extends UIMessage>(
  chat: AnyChat<Message>,
  transport: StoppableChatTransport<Message>,
  options: StopOptions = {},
): Promise<StopReceipt<Message>> {
  const before = chat.messages.length;
  const receipt = await transport.stop(chat.id, { ...options, waiting: findWaiting(chat.messages.at(-1)) });
  if (receipt.result === 'given-up') return receipt;
  // The end of the stream contains the results of the calls and the stop report. The server bounds it.
  await transport.waitForEnd(chat.id);
  // A newer message is not stopped.
  const isSame = chat.messages.slice(before).every(({ role }) => role !== 'user');
  if (isSame) await chat.stop();
  const messages = receipt.result === 'idle' ? undefined : await transport.readMessages(chat.id).catch(() => {});
  if (messages) chat.messages = transport.toShown(chat.id, messages, chat.messages);
  return receipt;
}
