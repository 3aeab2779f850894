export type { StopOptions, StopReceipt } from './readings.ts';
export { StoppableChatTransport } from './stoppable-chat-transport.ts';
export { type StoppableChat, type StoppableChatOptions, useStoppableChat } from './use-stoppable-chat.ts';
