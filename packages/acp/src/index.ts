// Serve an agent to editors.
export { serveAcp, type AcpConnection, type AcpEnd } from './serve.ts';
export type {
  AcpOptions,
  AcpSession,
  SessionSetting,
  PromptPolicy,
  PromptRunOptions,
  AuthMethod,
  McpServer,
} from './options.ts';

// Where sessions are kept.
export { createFileSessions } from './store/files.ts';
export type { SessionStore, SessionRecord, SessionSummary } from './store/store.ts';

// An agent for trying out editors.
export { serveEcho } from './echo.ts';

// Make the agents of others stop.
export { proxyAcp } from './proxy/proxy.ts';
export type { AcpProxy, ProxiedAgent, ProxyEvent, ProxyOptions } from './proxy/options.ts';
