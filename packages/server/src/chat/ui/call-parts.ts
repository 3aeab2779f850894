import type { Json } from '@whoa/core';
import type { DynamicToolUIPart, ToolUIPart, UIMessage } from 'ai';
import type { ChatTools } from '../reply-options.ts';

/** A call in a message. */
export type CallPart = ToolUIPart | DynamicToolUIPart;

/** Returns whether a tool has no code here, so that a page runs it. */
export type IsElsewhere = (tool: string) => boolean;

/** Leaves out what is undefined. */
export const asJson = (value: unknown): Json => JSON.parse(JSON.stringify(value)) as Json;

export function createIsElsewhere(tools: ChatTools = {}): IsElsewhere {
  return (tool) => Object.hasOwn(tools, tool) && tools[tool]!.execute === undefined;
}

// Not the SDK's own: `ai` is an optional peer, and only loaded where a reply needs it.
export function isCallPart(part: UIMessage['parts'][number]): part is CallPart {
  return part.type === 'dynamic-tool' || part.type.startsWith('tool-');
}

export function getToolName(part: CallPart): string {
  return part.type === 'dynamic-tool' ? part.toolName : part.type.slice('tool-'.length);
}

/** Returns the calls that were requested and have not ended. A call that a person denied has. */
export function findOpenCalls({ parts }: UIMessage): CallPart[] {
  return parts.filter(isCallPart).filter((part) => {
    if (part.state === 'output-available') return part.preliminary === true;
    if (part.state === 'approval-responded') return part.approval.approved;
    return part.state === 'input-available' || part.state === 'approval-requested';
  });
}

/**
 * Returns the calls that wait: for a person's answer, or for the result of a tool that a page runs. Approved calls start
 * when nothing else waits.
 */
export function findWaitingCalls(message: UIMessage, isElsewhere: IsElsewhere): readonly CallPart[] {
  const open = findOpenCalls(message);
  const isWaiting = (part: CallPart): boolean =>
    part.state === 'approval-requested'
      ? part.approval.isAutomatic !== true
      : part.providerExecuted !== true && isElsewhere(getToolName(part));
  return open.some(isWaiting) ? open.filter((part) => isWaiting(part) || part.approval !== undefined) : [];
}
