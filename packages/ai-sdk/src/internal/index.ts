// For Whoa's own packages. Anything here may change in any release.

export { type AiSdkTool, mustFinishRule } from '../tools/ai-sdk-tool.ts';
export type { CallRecord } from '../turn/call-records.ts';
export { earlyUsage } from '../messages/early-usage.ts';
