// Agents with AI SDK models and tools.
export { fromAiSdk, type AiSdkModel } from './from-ai-sdk.ts';
export { fromAiSdkTools } from './from-ai-sdk-tools.ts';
export type { AiSdkTool } from './ai-sdk-tool.ts';

// For people who keep their own loop.
export { createStoppableTurn, type StoppableTurn } from './stoppable-turn.ts';
export type { SettledTurn } from './turn.ts';
export { guardAiSdkTools } from './guard-ai-sdk-tools.ts';
export { createCallLedger, type CallLedger, type CallRecord } from './call-ledger.ts';
export { closeOpenCalls } from './close-open-calls.ts';
