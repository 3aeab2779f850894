import type * as acp from '@agentclientprotocol/sdk/experimental/v2';
import { META } from '../capabilities.ts';
import { toBlocks } from '../content.ts';
import type { CallContent, CallUpdate, PromptResult, Update } from '../updates.ts';
import { metaOfEnd, settingsV1 } from '../v1/adapter.ts';

const PLAN_ID = 'plan';
const INTERNAL_ERROR = -32603;

/** Translates an update to v2. */
export function toV2Update(update: Update): acp.SessionUpdate {
  switch (update.type) {
    case 'user':
      return { sessionUpdate: 'user_message', messageId: update.messageId, content: toBlocks(update.content) };
    case 'text':
    case 'thought': {
      const chunk = { messageId: update.messageId, content: { type: 'text' as const, text: update.text } };
      if (update.type === 'text') return { sessionUpdate: 'agent_message_chunk', ...chunk };
      return { sessionUpdate: 'agent_thought_chunk', ...chunk };
    }
    case 'call':
      return { sessionUpdate: 'tool_call_update', ...describeCallV2(update) };
    case 'plan': {
      const entries = update.entries.map((entry) => ({ ...entry }));
      return { sessionUpdate: 'plan_update', plan: { type: 'items', planId: PLAN_ID, entries } };
    }
    case 'usage':
      return { sessionUpdate: 'usage_update', used: update.used, size: update.size };
    case 'info':
      return {
        sessionUpdate: 'session_info_update',
        title: update.title,
        updatedAt: new Date(update.updatedAt).toISOString(),
      };
    case 'state':
      if (update.state === 'idle') return idle(update.end);
      if (update.state === 'running') return { sessionUpdate: 'state_update', state: 'running' };
      return { sessionUpdate: 'state_update', state: 'requires_action' };
  }
}

/** The parts of a call for an update or a question. */
export function describeCallV2(update: CallUpdate): acp.ToolCallUpdate {
  const { callId, tool, title, kind, status, content, locations, input, output, stopped, isCancellable, waitsUntil } =
    update;
  const rawOutput = stopped === undefined ? output : { ...stopped, details: output };
  return {
    toolCallId: callId,
    ...(tool !== undefined && { name: tool }),
    ...(title !== undefined && { title }),
    ...(kind !== undefined && { kind }),
    ...(status !== undefined && { status }),
    ...(content !== undefined && { content: content.flatMap(contentV2) }),
    ...(locations !== undefined && { locations: locations.map((location) => ({ ...location })) }),
    ...(input !== undefined && { rawInput: input }),
    ...(rawOutput !== undefined && { rawOutput }),
    ...(waitsUntil !== undefined && { _meta: { [META.waiting]: { until: waitsUntil } } }),
    ...(isCancellable !== undefined && { capabilities: isCancellable ? { cancel: {} } : null }),
  };
}

/** The settings of a session, with the chosen values: only their ids have another name than in v1. */
export function settingsV2(...args: Parameters<typeof settingsV1>): acp.SessionConfigOption[] {
  return settingsV1(...args).map(
    ({ id: configId, ...setting }) => ({ configId, ...setting }) as acp.SessionConfigOption,
  );
}

function idle(end: PromptResult): acp.SessionUpdate {
  const about = { sessionUpdate: 'state_update' as const, state: 'idle' as const, ...metaOfEnd(end) };
  // The compiler does not match a union of reasons with the union of updates.
  if (end.stop !== 'error') return { ...about, stopReason: end.stop } as acp.SessionUpdate;
  return { ...about, stopReason: 'error', error: { code: INTERNAL_ERROR, message: end.message ?? 'It failed' } };
}

function contentV2(content: CallContent): acp.ToolCallContent[] {
  if (content.type === 'content')
    return toBlocks(content.content).map((block) => ({ type: 'content', content: block }));
  const { path, isNew, patch } = content;
  const file = { path, fileType: 'text' };
  const change: acp.DiffChange = isNew ? { operation: 'add', ...file } : { operation: 'modify', ...file };
  return [
    {
      type: 'diff',
      changes: [change],
      ...(patch !== undefined && { patch: { format: 'git_patch', text: gitPatch(path, patch) } }),
    },
  ];
}

function gitPatch(path: string, patch: string): string {
  return `diff --git a${path} b${path}\n${patch}`;
}
