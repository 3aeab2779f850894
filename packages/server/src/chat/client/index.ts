export { type StoppableChat, type StoppableChatOptions, useStoppableChat } from './use-stoppable-chat.ts';
