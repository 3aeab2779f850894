// Start here: serve an agent to editors.
export { serveAcp, type AcpConnection, type AcpCloseInfo } from './serve.ts';
export type { AcpOptions, AcpSession, SessionSetting, McpServer } from './options.ts';

// Where sessions are stored.
export { createFileSessions } from './store/files.ts';
export type { SessionStore, SessionRecord, SessionSummary } from './store/store.ts';

// An agent for trying out editors.
export { serveEcho } from './echo.ts';
