// approval: what a person is asked before a call
export {
  type ApprovalAnswer,
  type ApprovalsOptions,
  type Ask,
  createApprovals,
  type Judge,
  judgeByEffects,
  type Ruling,
} from './approval/approvals.ts';
export {
  type ApprovalQuestion,
  callTitle,
  describeLocation,
  type QuestionField,
  questionLines,
} from './approval/question.ts';
export { inertText, visibleLine, visibleText } from './approval/visible.ts';
// stop: tokens, levels, ladders, shields

// conversation: one live run at a time, and what a newer message does to it
export type { ConversationEvent, ConversationParts, MessageOptions, Reply } from './conversation/conversation.ts';
export {
  type Conversations,
  type ConversationsOptions,
  createConversations,
  MESSAGE_RULES,
  POLICY_RULE,
} from './conversation/conversations.ts';
export { type CancelledWork, describeCancelled } from './conversation/describe.ts';
export {
  type ConversationEffect,
  type ConversationInput,
  type ConversationState,
  describeEarly,
  type EarlyStatus,
  NEW_CONVERSATION,
  type Policy,
  SEEN_MAX,
  type StopKind,
  type Transition,
  transition,
  WAITING_MAX,
} from './conversation/policy.ts';
// run: an agent at work on one input
export { type Agent, createAgent } from './run/agent.ts';
export { type Budgets, TURNS_MAX } from './run/budget.ts';
export { EVENTS_MAX } from './run/event-log.ts';
export type { RunEvent, TurnEvent } from './run/events.ts';
export type { BeforeTurn, Compact } from './run/loop.ts';
export type {
  AssistantMessage,
  AssistantPart,
  Message,
  ReplySource,
  RunInput,
  StopReason,
  ToolMessage,
  Usage,
  UserMessage,
} from './run/message.ts';
export {
  type Model,
  ModelError,
  type ModelMessage,
  type ModelPart,
  type ModelRequest,
  type ModelTool,
} from './run/model.ts';
export {
  createModelPlanner,
  MAX_REPLY_CHARACTERS,
  type ModelPlannerOptions,
  PATIENCE,
  type Patience,
} from './run/model-planner.ts';
export type { Outcome } from './run/outcome.ts';
export { callTools, type Planner, type PlannerContext, reply, type Step } from './run/planner.ts';
export { describeTools, prepareMessages } from './run/prepare.ts';
export { formatStopReport, type StoppedCall, type StopReport, type UndoState } from './run/report.ts';
export type { Run } from './run/run.ts';
export type { AgentOptions, AgentParts, RunOptions } from './run/setup.ts';
export type { SteerOptions, SteerReceipt } from './run/steering.ts';
export { type AgentToolOptions, agentTool } from './run/sub-agent.ts';
export { type BeforeUndo, UNDO_MS, type UndoneCall } from './run/undo.ts';
export type { WhenCancelled, WorkContext } from './stop/bounded.ts';
export { CLEANUP_MS, type Cleanup, CleanupError } from './stop/cleanup.ts';
export { type Clock, systemClock, systemWorld, type World, worldRule } from './stop/clock.ts';
export {
  CallTimeoutError,
  CancelledError,
  isCancelledError,
  isOutcomeUnknownError,
  OutcomeUnknownError,
} from './stop/errors.ts';
export { type GuardOptions, guard } from './stop/guard.ts';
export { createListener, createTeller, type HookError, type Hooks, reportFailure } from './stop/hooks.ts';
export { type AbandonedWork, createLedger, type LateEnd, type Ledger } from './stop/ledger.ts';
export {
  LADDERS,
  type Ladder,
  ladderMs,
  presetFrom,
  rankOf,
  type StopHow,
  type StopLevel,
  type StopSchedule,
  scheduleOf,
} from './stop/level.ts';
export type { CancelListener } from './stop/listeners.ts';
export {
  type CancelKind,
  type CancelReason,
  type CancelReasonInit,
  createReason,
  describeReason,
  type GivenReason,
} from './stop/reason.ts';
export type { CancelOptions, CancelReceipt } from './stop/receipt.ts';
export * as settings from './stop/settings.ts';
export { type Rules, SettingsError } from './stop/settings.ts';
export { SHIELD_MS_MAX, shield } from './stop/shield.ts';
export { type CancelSource, SOURCE_RULES } from './stop/source.ts';
export { CancellationToken, type TokenOptions } from './stop/token.ts';
export { sleep, type WaitEnd, waitUnder } from './stop/wait.ts';
export { boundContent, CONTENT_CHARACTERS_MAX, DETAILS_BYTES_MAX } from './tool/bounds.ts';
// tool: what an agent can do, one call, many calls
export type { ApprovalOfPreview, ApprovalReply, ApprovalRequest, Approve, BeforeCall, Call } from './tool/call.ts';
export type { CallEvent, RuntimeEvent } from './tool/events.ts';
export { ExclusiveKeys } from './tool/exclusive.ts';
export type { CallCancelReceipt } from './tool/live-call.ts';
export { describeError, isEchoOfCancel } from './tool/normalize.ts';
export type { Redact } from './tool/redact.ts';
export {
  type CallResult,
  type CallState,
  type Content,
  type ContentPart,
  type Effects,
  explain,
  type Json,
  type ToolResult,
  textOf,
} from './tool/result.ts';
export {
  createRuntime,
  type ExecuteOptions,
  type Runtime,
  type RuntimeOptions,
} from './tool/runtime.ts';
export { type InputSchema, InvalidInputError } from './tool/schema.ts';
export {
  type CallPreview,
  defineTool,
  type FileChange,
  interrupted,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type UndoContext,
} from './tool/tool.ts';
export { type Placed, PlanError, waves } from './tool/waves.ts';
