// An agent that thinks with AI SDK models and works with AI SDK tools

export type { AiSdkTool, ToolBound } from './ai-sdk-tool.ts';
// For people who keep their loop
export { type CallLedger, type CallRecord, createCallLedger } from './call-ledger.ts';
export { type AiSdkMessage, closeOpenCalls } from './close-open-calls.ts';
export { type AiSdkModel, type AiSdkSettings, fromAiSdk } from './from-ai-sdk.ts';
export { type AiSdkToolSettings, type FromAiSdkToolsOptions, fromAiSdkTools } from './from-ai-sdk-tools.ts';
export { type GuardToolsOptions, guardAiSdkTools } from './guard-ai-sdk-tools.ts';
