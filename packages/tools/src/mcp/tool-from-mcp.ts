import type { Tool as McpTool, ToolAnnotations } from '@modelcontextprotocol/client';
import { createInterruptedError, defineTool, isCancelledError, type Tool, type ToolResult } from '@whoa/core';
import type { InputSchema } from '@whoa/core/embed';
import type { Effects } from '@whoa/core/internal';
import { CallOutcomeUnknownError } from '@whoa/core/internal';
import type { McpConnection } from './connection.ts';
import { TaskCancelledError, TaskFailedError } from './follow-task.ts';
import { LostAnswerError } from './lost-answer.ts';
import { describeProgress, resultFromMcp } from './result-from-mcp.ts';
import { callOrFollow, type McpApprove } from './task-requests.ts';

export interface McpToolOptions {
  /** The name the model sees. */
  readonly name: string;
  readonly connection: McpConnection;
  readonly trustHints: boolean;
  readonly callTimeoutMs: number;
  readonly approve: McpApprove | undefined;
  readonly sendsEffectKeys: boolean;
}

/** Converts a server's tool to one of ours. The server validates the input. */
export function toolFromMcp(tool: McpTool, options: McpToolOptions): Tool {
  const { name, connection, trustHints, callTimeoutMs, approve } = options;
  const hints = trustHints ? (tool.annotations ?? {}) : {};
  return defineTool<Record<string, unknown>>({
    name,
    description: tool.description ?? tool.title ?? tool.name,
    inputSchema: anyObject,
    inputJsonSchema: tool.inputSchema,
    effects: toEffects(hints),
    replay: hints.readOnlyHint === true || hints.idempotentHint === true ? 'safe' : 'never',
    timeoutMs: callTimeoutMs,
    async execute(args, { token, update, effectKey }) {
      let shown: ToolResult | undefined;
      try {
        const onProgress = (progress: Parameters<typeof describeProgress>[0]): void =>
          update((shown = describeProgress(progress)));
        const onStatus = (content: string): void => update((shown = { content }));
        const call = { name: tool.name, args, onProgress, token, ...(options.sendsEffectKeys && { effectKey }) };
        return resultFromMcp(await callOrFollow(connection, call, { approve, onStatus }));
      } catch (error) {
        if (!token.isCancelled) {
          // If the response was lost, it is unknown whether the work was done.
          const isLost = error instanceof LostAnswerError && hints.readOnlyHint !== true;
          throw isLost ? new CallOutcomeUnknownError(error.message, { cause: error }) : error;
        }
        // It was never sent, or its task failed.
        if (isCancelledError(error) || error instanceof TaskFailedError) throw error;
        if (error instanceof TaskCancelledError) throw createInterruptedError(token, stoppedResult(shown, CONFIRMED));
        // Without a task, servers do not acknowledge a cancel, so it is unknown whether the work has stopped.
        const effect = hints.readOnlyHint === true ? undefined : 'unknown';
        throw createInterruptedError(token, stoppedResult(shown, 'The server was told to stop.'), { effect });
      }
    },
  }) as Tool;
}

function toEffects({ readOnlyHint, destructiveHint }: ToolAnnotations): Effects {
  if (readOnlyHint === true) return 'read';
  return destructiveHint === false ? 'write' : 'execute';
}

const CONFIRMED = 'The server confirmed that its task was cancelled.';

function stoppedResult(shown: ToolResult | undefined, end: string): ToolResult {
  const progress = typeof shown?.content === 'string' ? `${shown.content}\n` : '';
  return { ...shown, content: `${progress}${end}` };
}

const anyObject: InputSchema<Record<string, unknown>> = {
  '~standard': {
    version: 1,
    vendor: 'whoa',
    validate: (value) =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? { value: value as Record<string, unknown> }
        : { issues: [{ message: 'expected an object' }] },
  },
};
