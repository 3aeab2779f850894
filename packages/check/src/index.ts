// Run the checks on an agent.
export { runChecks, type CheckReport, type CheckResult, type RunOptions } from './run-checks.ts';
export { createStage, type Stage } from './stage/stage.ts';
export { GROUPS, type Check } from './check.ts';
export { CHECKS } from './checks/checks.ts';

// How to reach it.
export { createAcpAdapter } from './adapters/acp/acp.ts';
export type { AgentCommand } from './adapters/agent-process.ts';
export { PROTOCOLS, type Adapter, type Protocol } from './adapter.ts';

// Reports.
export { toBadge } from './report/badge.ts';
export { toJunit } from './report/junit.ts';
