// An agent that thinks with AI SDK models and works with AI SDK tools

export type { AiSdkTool, ToolBound } from './ai-sdk-tool.ts';
// For people who keep their loop
export {
  type BeginningCall,
  type CallLedger,
  type CallRecord,
  type CallTrace,
  createCallLedger,
} from './call-ledger.ts';
export type { AiSdkMessage, CallPosition } from './call-sites.ts';
export { closeOpenCalls } from './close-open-calls.ts';
export { type AiSdkModel, type AiSdkSettings, fromAiSdk } from './from-ai-sdk.ts';
export { type AiSdkToolSettings, type FromAiSdkToolsOptions, fromAiSdkTools } from './from-ai-sdk-tools.ts';
export { type GuardToolsOptions, guardAiSdkTools, type WaitedCall } from './guard-ai-sdk-tools.ts';
export { type StoppableTurn, type StoppableTurnOptions, stoppableTurn } from './stoppable-turn.ts';
export type { SettledTurn } from './turn.ts';
