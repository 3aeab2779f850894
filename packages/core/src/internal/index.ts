// For Whoa's own packages. Anything here may change in any release.

// Settings: option checks, and the rules that packages share.
export * as settings from '../stop/settings.ts';
export { contextRule, toContextKey } from '../stop/app-context.ts';
export { worldRule } from '../stop/clock.ts';
export { MESSAGE_RULES, POLICY_RULE } from '../conversation/conversations.ts';
export { readCancelOptions } from '../stop/token/receipt.ts';
export { SOURCE_RULES } from '../stop/token/source.ts';

// Limits.
export { CLEANUP_MS, type Cleanup, type CleanupList, createCleanupList } from '../stop/bounded/cleanup.ts';
export { UNDO_MS, withoutUndo } from '../run/undo.ts';
export { shieldMs } from '../stop/token/shield.ts';
export { describeEarlyStatus, MAX_MERGED_MESSAGES, MAX_WAITING_MESSAGES } from '../conversation/policy.ts';
export { MAX_DETAILS_BYTES } from '../tool/bounds.ts';

// Waits.
export { waitAtMost } from '../stop/wait.ts';

// Levels and ladders.
export { type Ladder, rankLevel, toPreset, createStopSchedule } from '../stop/token/level.ts';

// Errors and how they are described.
export { CallOutcomeUnknownError } from '../stop/errors.ts';
export { describeError, isCausedByCancel } from '../tool/normalize.ts';
export { describeStoppedCall } from '../tool/result.ts';
export { describeStop, type CancelledWork } from '../conversation/describe.ts';
export type { ConversationEvent } from '../conversation/events.ts';
export { createReplySender } from '../conversation/send-replies.ts';

// Questions.
export { describeRequest } from '../approval/question.ts';

// Resuming.
export { findOutResult } from '../tool/call/find-out.ts';
export { RESUMED } from '../run/setup.ts';
export { NESTED, type NestedRecorder } from '../tool/call/nested.ts';
export type { Call } from '../tool/call/call.ts';

// Hooks.
export { type Hooks, type HookError, createHookDispatcher, createListener, reportFailure } from '../stop/hooks.ts';
export type { RuntimeEvent } from '../tool/events.ts';

// Questions and how they are shown.
export type { DecideApproval } from '../approval/approvals.ts';
export { formatCallTitle, describeLocation } from '../approval/question.ts';
export { describeSchema, parseAnswer } from '../approval/parse-answer.ts';
export { toVisibleLine, toInertText } from '../approval/visible.ts';

// The parts of previews and views.
export type { CallPreview } from '../tool/tool.ts';
export type { PlanEntry } from '../view/details-view.ts';
export type { DiffHunk } from '../view/diff.ts';

// Keys.
export { ExclusiveKeys } from '../tool/call/exclusive.ts';

// Histories.
export { CallIds } from '../run/history/call-ids.ts';
export { HistoryBuilder, type OpenCall } from '../run/history/history-builder.ts';
export { addUsage, type AssistantMessage, NO_USAGE, toReplyText } from '../run/history/message.ts';
export type { Effects } from '../tool/result.ts';
