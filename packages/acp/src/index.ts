export { CANCEL_CALL_METHOD, META } from './capabilities.ts';
export { type EchoOptions, serveEcho } from './echo.ts';
export type {
  AcpOptions,
  AcpSession,
  AuthMethod,
  ClientFiles,
  McpServer,
  PromptPolicy,
  SessionSetting,
} from './options.ts';
export { type AcpConnection, type AcpEnd, type ServeOptions, serveAcp } from './serve.ts';
export { createFileSessions } from './store/files.ts';
export { createMemorySessions } from './store/memory.ts';
export type { SessionPage, SessionRecord, SessionStore, SessionSummary } from './store/store.ts';
