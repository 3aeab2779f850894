export type { StopOptions, StopReceipt } from './reply-readers.ts';
export { StoppableChatTransport } from './stoppable-chat-transport.ts';
export { type StoppableChat, type StoppableChatOptions, useStoppableChat } from './use-stoppable-chat.ts';
