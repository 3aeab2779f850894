// For pages without React.
export { stopChat } from '../client/stop-chat.ts';
export { StoppableChatTransport } from '../client/stoppable-chat-transport.ts';
export { watchChat } from '../client/watch-chat.ts';
