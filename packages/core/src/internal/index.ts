// For Whoa's own packages. Anything here may change in any release.

// Settings: option checks, and the rules that packages share.
export * as settings from '../stop/settings.ts';
export { worldRule } from '../stop/clock.ts';
export { MESSAGE_RULES, POLICY_RULE } from '../conversation/conversations.ts';
export { SOURCE_RULES } from '../stop/token/source.ts';

// Limits.
export { CLEANUP_MS } from '../stop/bounded/cleanup.ts';
export { UNDO_MS } from '../run/undo.ts';
export { MAX_SHIELD_MS } from '../stop/token/shield.ts';
export { MAX_WAITING_MESSAGES } from '../conversation/policy.ts';
export { MAX_DETAILS_BYTES } from '../tool/bounds.ts';

// Levels and ladders.
export { rankLevel, toPreset, createStopSchedule } from '../stop/token/level.ts';

// Errors and how they are described.
export { CallTimeoutError, OutcomeUnknownError } from '../stop/errors.ts';
export { describeError, isEchoOfCancel } from '../tool/normalize.ts';
export { describeStoppedCall } from '../tool/result.ts';
export { describeCancelled, type CancelledWork } from '../conversation/describe.ts';
export { describeEarlyStatus } from '../conversation/policy.ts';

// Hooks.
export { type Hooks, type HookError, createHookDispatcher, createListener, reportFailure } from '../stop/hooks.ts';
export type { RuntimeEvent } from '../tool/events.ts';

// Keys.
export { ExclusiveKeys } from '../tool/call/exclusive.ts';

// Histories.
export { HistoryBuilder, type OpenCall } from '../run/history/history-builder.ts';
export { addUsage, NO_USAGE, wordsOf } from '../run/history/message.ts';
