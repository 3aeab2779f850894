export type { StopOptions, StopReceipt } from '../client/reply-readers.ts';
export { type AnyChat, stopChat } from '../client/stop-chat.ts';
export { StoppableChatTransport } from '../client/stoppable-chat-transport.ts';
