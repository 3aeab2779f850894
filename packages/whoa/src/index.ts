// The everyday names of @whoa/core and @whoa/ai-sdk in one place.

// Agents.
export {
  createAgent,
  createAgentTool,
  formatStopReport,
  type Agent,
  type Run,
  type RunEvent,
  type Outcome,
} from '@whoa/core';
export { fromAiSdk } from '@whoa/ai-sdk';

// Tools.
export { defineTool, createInterruptedError, toText, type Tool, type ToolResult } from '@whoa/core';
export { fromAiSdkTools } from '@whoa/ai-sdk';

// Stopping.
export { CancellationToken, guard, isCancelledError } from '@whoa/core';

// Conversations.
export { createConversations } from '@whoa/core';

// The config file of the command.
export { defineConfig, type WhoaConfig } from './config/config.ts';
