// Start here: keep your loop, and make its turns stop.
export { createStoppableTurn, type StoppableTurn } from './turn/stoppable-turn.ts';
export type { SettledTurn } from './turn/turn.ts';

// The parts of such a turn.
export { guardAiSdkTools } from './tools/guard-ai-sdk-tools.ts';
export { createCallRecords, type CallRecords } from './turn/call-records.ts';
export { closeOpenCalls } from './messages/close-open-calls.ts';

// Agents with AI SDK models and tools.
export { fromAiSdk, type AiSdkModel } from './from-ai-sdk.ts';
export { fromAiSdkTools } from './tools/from-ai-sdk-tools.ts';
