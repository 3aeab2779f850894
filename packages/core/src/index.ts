// Start here: an agent with tools, a guard for a loop of your own, conversations with a policy for newer messages.
export { createAgent, type Agent } from './run/agent.ts';
export { defineTool, type Tool } from './tool/tool.ts';
export { guard, type GuardOptions } from './stop/bounded/guard.ts';
export { CancellationToken } from './stop/token/token.ts';
export { createConversations, type Conversations } from './conversation/conversations.ts';

// Stop: how hard, why, and what it did.
export type { StopMode, StopLevel } from './stop/token/level.ts';
export type { CancelReason, CancelReasonInit } from './stop/token/reason.ts';
export { formatStopReport, type StopReport } from './run/report/report.ts';
export { sleep } from './stop/wait.ts';

// Errors.
export { CallTimeoutError, CancelledError, isCancelledError } from './stop/errors.ts';
export { SettingsError } from './stop/settings.ts';

// Agents and their runs.
export { createAgentTool } from './run/sub-agent.ts';
export type { AgentOptions, RunOptions } from './run/setup.ts';
export type { Run } from './run/run.ts';
export type { RunEvent } from './run/report/events.ts';
export type { Outcome } from './run/report/outcome.ts';
export type { Message, Usage } from './run/history/message.ts';
export type { AppContext } from './stop/app-context.ts';

// Tools and their calls.
export { createInterruptedError, type ToolContext } from './tool/tool.ts';
export { toText, type ToolResult, type CallResult, type Content, type Json } from './tool/result.ts';
export { createRuntime, type Runtime } from './tool/runtime.ts';

// Conversations.
export type { Policy } from './conversation/policy.ts';
export type { Reply } from './conversation/events.ts';
