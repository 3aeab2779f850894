// Run the checks on an agent.
export { runChecks, type CheckReport, type CheckResult, type RunOptions } from './run-checks.ts';
export { createCheckHarness, type CheckHarness as Stage } from './stage/stage.ts';
export { GROUPS, type Check } from './check.ts';
export { CHECKS } from './checks/checks.ts';

// How to reach it.
export { createAcpAdapter } from './adapters/acp/acp.ts';
export { createMcpAdapter } from './adapters/mcp/mcp.ts';
export type { McpAdapterOptions } from './adapters/mcp/options.ts';
export { createA2aAdapter } from './adapters/a2a/a2a.ts';
export { createAgUiAdapter } from './adapters/ag-ui/ag-ui.ts';
export { createChatAdapter } from './adapters/chat/chat.ts';
export type { AgentCommand } from './adapters/agent-process.ts';
export type { AgentServerOptions } from './adapters/agent-server.ts';
export type { StreamServerOptions } from './adapters/streams.ts';
export { PROTOCOLS, type Adapter, type Protocol } from './adapter.ts';

// Reports.
export { toBadge } from './report/badge.ts';
export { toJunit } from './report/junit.ts';
