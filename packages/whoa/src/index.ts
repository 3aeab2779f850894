// The everyday names of @whoa/core and @whoa/ai-sdk in one place.

// Start here: the command's config file, and an agent for it.
export { defineConfig, type WhoaConfig } from './config/config.ts';
export { createAgent, type Agent, defineTool, type Tool } from '@whoa/core';
export { fromAiSdk, fromAiSdkTools } from '@whoa/ai-sdk';

// Runs and conversations.
export { createAgentTool, createConversations, type Run, type RunEvent, type Outcome } from '@whoa/core';

// Tools and their results.
export { createInterruptedError, toText, type ToolResult } from '@whoa/core';

// Stopping.
export { CancellationToken, formatStopReport, guard, isCancelledError } from '@whoa/core';
