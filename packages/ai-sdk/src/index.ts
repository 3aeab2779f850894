// Agents with AI SDK models and tools.
export { fromAiSdk, type AiSdkModel } from './from-ai-sdk.ts';
export { fromAiSdkTools } from './tools/from-ai-sdk-tools.ts';
export type { AiSdkTool } from './tools/ai-sdk-tool.ts';

// For callers that keep their own loop.
export { createStoppableTurn, type StoppableTurn } from './turn/stoppable-turn.ts';
export type { SettledTurn } from './turn/turn.ts';
export { guardAiSdkTools } from './tools/guard-ai-sdk-tools.ts';
export { createCallLedger, type CallLedger, type CallRecord } from './turn/call-ledger.ts';
export { closeOpenCalls } from './messages/close-open-calls.ts';
export { earlyUsage } from './messages/early-usage.ts';
