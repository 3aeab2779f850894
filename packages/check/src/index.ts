// Start here: run the checks on an agent.
export { runChecks, type CheckReport, type CheckResult } from './run-checks.ts';
export { createCheckHarness, type CheckHarness } from './harness/check-harness.ts';

// The agent's protocol.
export { createAcpAdapter } from './adapters/acp/acp.ts';
export { createMcpAdapter } from './adapters/mcp/mcp.ts';
export { createA2aAdapter } from './adapters/a2a.ts';
export { createAgUiAdapter } from './adapters/ag-ui.ts';
export { createChatAdapter } from './adapters/chat.ts';
export type { AgentCommand } from './adapters/agent-process.ts';
export { PROTOCOLS, type Adapter, type Protocol } from './adapter.ts';

// The list of checks.
export { CHECKS } from './checks/checks.ts';
export { GROUPS } from './check.ts';

// Reports.
export { toBadge } from './report/badge.ts';
export { toJunit } from './report/junit.ts';
