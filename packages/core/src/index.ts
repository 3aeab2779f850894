// Stop: ask work to stop, and know when it has.
export { CancellationToken } from './stop/token/token.ts';
export { guard } from './stop/bounded/guard.ts';
export { shield } from './stop/token/shield.ts';
export { sleep } from './stop/wait.ts';
export { createLedger } from './stop/bounded/ledger.ts';
export { LADDERS, type StopMode, type StopLevel, type Ladder } from './stop/token/level.ts';
export { describeReason, type CancelReason, type CancelReasonInit } from './stop/token/reason.ts';
export type { CancelReceipt } from './stop/token/receipt.ts';

// Errors.
export { CallTimeoutError, CancelledError, isCancelledError } from './stop/errors.ts';
export { SettingsError } from './stop/settings.ts';

// Your app's data about a run: its user, tenant, locale.
export type { AppContext } from './stop/app-context.ts';

// Tools: what an agent can do.
export {
  defineTool,
  createInterruptedError,
  type Tool,
  type ToolDefinition,
  type ToolContext,
  type RawResult,
} from './tool/tool.ts';
export { createRuntime, type Runtime } from './tool/runtime.ts';
export { toText, type ToolResult, type CallResult, type Content, type Json } from './tool/result.ts';

// Agents: a model working on one input.
export { createAgent, type Agent } from './run/agent.ts';
export { createAgentTool } from './run/sub-agent.ts';
export { formatStopReport, type StopReport } from './run/report/report.ts';
export type { AgentOptions, RunOptions } from './run/setup.ts';
export type { Run } from './run/run.ts';
export type { RunEvent } from './run/report/events.ts';
export type { Outcome } from './run/report/outcome.ts';
export type { Message, Usage } from './run/history/message.ts';

// Conversations: one active run at a time, and policies for newer messages.
export { createConversations, type Conversations } from './conversation/conversations.ts';
export type { Policy } from './conversation/policy.ts';
export type { Reply } from './conversation/conversation.ts';
