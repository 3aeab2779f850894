// For pages without React.
export { stopChat } from '../client/stop-chat.ts';
export { StoppableChatTransport } from '../client/stoppable-chat-transport.ts';
export type { StopReceipt } from '../client/chat-stop.ts';
