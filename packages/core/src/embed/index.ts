// For code that builds on agents: tool kits, stores, servers, protocol adapters.

// Time and ids, which tests replace.
export { type Clock, systemClock, type World, systemWorld } from '../stop/clock.ts';

// Waiting, stopping and cleaning up.
export { waitUntilLevel } from '../stop/wait.ts';
export { shield } from '../stop/token/shield.ts';
export { LADDERS } from '../stop/token/level.ts';
export { createReason, describeReason } from '../stop/token/reason.ts';
export type { CancelOptions, CancelReceipt } from '../stop/token/receipt.ts';
export { createLateResults, type LateResults } from '../stop/bounded/late-results.ts';
export { CleanupError } from '../stop/bounded/cleanup.ts';

// The parts of tools and messages.
export type { WorkContext } from '../stop/bounded/bounded.ts';
export type { InputSchema } from '../tool/schema.ts';
export type { CallState, ContentPart } from '../tool/result.ts';
export type { ToolDefinition } from '../tool/tool.ts';
export type { UserMessage } from '../run/history/message.ts';
