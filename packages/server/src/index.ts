export { ACCESS_LIMITS, type Access, type AccessLimits, type AccessOptions, createAccess } from './access/access.ts';
export { combineAuthenticators, createLogin, type Login, type LoginOptions } from './access/login.ts';
export type { OriginOptions } from './access/origin.ts';
export {
  type Audit,
  type AuditEvent,
  type Authenticate,
  type Identity,
  USER_RIGHTS,
  type Principal,
  toPrincipal,
  type Right,
} from './access/principal.ts';
export type { ErrorBody as Refusal } from './access/refusal.ts';
export { createToken, createTokenAuthenticator, type TokenEntry } from './access/tokens.ts';
export { type AgUiHandler, type AgUiHandlerOptions, createAgUiHandler } from './ag-ui/ag-ui-handler.ts';
export { createTaskApi, type TaskApi, type TaskApiOptions } from './api/task-api.ts';
export { type ChatHandler, type ChatHandlerOptions, createChatHandler } from './chat/chat-handler.ts';
export type { ChatChange, ChatHistory, LoadedChat } from './chat/app-history.ts';
export type { ChatHead, ChatPage, ChatPageRequest } from './chat/chat-list.ts';
export type { ChatServiceOptions } from './chat/chat-service.ts';
export type { ChatTools, ChatReply, ReplyContext, ReplyStream } from './chat/reply-options.ts';
export {
  type FetchHandler as Listener,
  type ListeningServer as Listening,
  type ListenOptions,
  listen,
  toNodeListener,
} from './listen.ts';
export {
  createMcpHandler,
  type McpHandler,
  type McpHandlerOptions,
  type McpServerHandle,
  type ServeMcpOptions,
  serveMcp,
} from './mcp/serve-mcp.ts';
export { type ConsoleHandler, createConsoleHandler } from './console/console-handler.ts';
