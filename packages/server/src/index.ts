// Start here: a chat route with a Stop button.
export { type ChatHandler, type ChatHandlerOptions, createChatHandler } from './chat/chat-handler.ts';
export type { ChatHistory } from './chat/app-history.ts';
export { type AgUiHandler, createAgUiHandler } from './chat/ag-ui/ag-ui-handler.ts';

// Tasks over HTTP, and the page that shows them.
export { createTaskApi, type TaskApi } from './tasks/task-api.ts';
export { type ConsoleHandler, createConsoleHandler } from './observe/console/console-handler.ts';

// Who may do what.
export { type Access, type AccessOptions, createAccess } from './http/access/access.ts';
export {
  type AuditEvent,
  type Authenticate,
  type Principal,
  type Right,
  USER_RIGHTS,
} from './http/access/principal.ts';
export { createToken, createTokenAuthenticator } from './http/access/tokens.ts';
export { combineAuthenticators, createLogin, type Login } from './http/access/login.ts';

// Agents as tools of MCP hosts.
export { createMcpHandler, type McpHandler, type McpServerHandle, serveMcp } from './mcp/serve-mcp.ts';

// Node's HTTP server.
export { type ListeningServer, listen, toNodeListener } from './http/listen.ts';
