// For code that builds on agents: tool kits, stores, servers, protocol adapters.

// Time and ids, which tests replace.
export { type Clock, systemClock, type World, systemWorld } from '../stop/clock.ts';

// Waiting, stopping and cleaning up.
export { waitUntilLevel } from '../stop/wait.ts';
export { createReason } from '../stop/token/reason.ts';
export type { CancelOptions } from '../stop/token/receipt.ts';
export type { Ledger } from '../stop/bounded/ledger.ts';
export { type Cleanup, type CleanupList, createCleanupList, CleanupError } from '../stop/bounded/cleanup.ts';

// The parts of tools and messages.
export type { WorkContext } from '../stop/bounded/bounded.ts';
export type { InputSchema } from '../tool/schema.ts';
export type { Effects, CallState, ContentPart } from '../tool/result.ts';
export type { CallPreview } from '../tool/tool.ts';
export type { UserMessage, AssistantMessage } from '../run/history/message.ts';
