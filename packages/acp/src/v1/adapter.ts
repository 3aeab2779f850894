import type * as acp from '@agentclientprotocol/sdk';
import { META } from '../capabilities.ts';
import { toBlocks } from '../content.ts';
import type { SessionSetting } from '../options.ts';
import { getInitialOption } from '../session/sessions.ts';
import type { CallContent, CallStatus, CallUpdate, PromptResult, Update } from '../updates.ts';

/** Translates an update to v1. Some updates do not exist there. */
export function* toV1Updates(update: Update): Generator<acp.SessionUpdate> {
  switch (update.type) {
    case 'user': {
      // A client shows the user's input itself; only a replay repeats it.
      const { messageId } = update;
      if (update.isEcho) return;
      for (const content of toBlocks(update.content)) yield { sessionUpdate: 'user_message_chunk', messageId, content };
      return;
    }
    case 'text':
    case 'thought':
      yield {
        sessionUpdate: update.type === 'text' ? 'agent_message_chunk' : 'agent_thought_chunk',
        messageId: update.messageId,
        content: { type: 'text', text: update.text },
      };
      return;
    case 'call':
      yield callV1(update);
      return;
    case 'plan':
      // v1 has no cancelled entries: one that will not be done keeps its status.
      yield {
        sessionUpdate: 'plan',
        entries: update.entries.map((entry) => ({
          ...entry,
          status: entry.status === 'cancelled' ? 'pending' : entry.status,
        })),
      };
      return;
    case 'usage':
      yield { sessionUpdate: 'usage_update', used: update.used, size: update.size };
      return;
    case 'info':
      yield {
        sessionUpdate: 'session_info_update',
        title: update.title,
        updatedAt: new Date(update.updatedAt).toISOString(),
      };
      return;
    case 'state':
      return;
  }
}

/** The parts of a call for an update or a question. */
export function describeCallV1(update: CallUpdate): acp.ToolCallUpdate {
  const { callId, tool, title, kind, status, content, locations, input, output, stopped } = update;
  const rawOutput = stopped === undefined ? output : { cancelled: true, ...stopped, details: output };
  return {
    toolCallId: callId,
    ...(tool !== undefined && { name: tool }),
    ...(title !== undefined && { title }),
    ...(kind !== undefined && { kind }),
    ...(status !== undefined && { status: statusV1(status) }),
    ...(content !== undefined && { content: content.flatMap(contentV1) }),
    ...(locations !== undefined && { locations: locations.map((location) => ({ ...location })) }),
    ...(input !== undefined && { rawInput: input }),
    ...(rawOutput !== undefined && { rawOutput }),
    ...toMeta(update),
  };
}

/** The settings of a session, with the chosen values. */
export function settingsV1(
  settings: readonly SessionSetting[],
  chosen: Readonly<Record<string, string>>,
): acp.SessionConfigOption[] {
  return settings.map((setting) => ({
    type: 'select',
    id: setting.id,
    name: setting.name,
    currentValue: chosen[setting.id] ?? getInitialOption(setting),
    options: setting.options.map(({ description, ...option }) => ({
      ...option,
      ...(description !== undefined && { description }),
    })),
    ...(setting.description !== undefined && { description: setting.description }),
    ...(setting.category !== undefined && { category: setting.category }),
  }));
}

/** Extra data for the response to a prompt: usage and, after a cancel, the stop report. */
export function metaOfEnd({ usage, report }: PromptResult): { _meta?: Record<string, unknown> } {
  if (usage === undefined && report === undefined) return {};
  return { _meta: { ...(usage && { [META.usage]: usage }), ...(report && { [META.report]: report }) } };
}

function callV1(update: CallUpdate): acp.SessionUpdate {
  const call = describeCallV1(update);
  return update.isNew
    ? ({ ...call, sessionUpdate: 'tool_call', title: update.title ?? update.callId } as acp.SessionUpdate)
    : { ...call, sessionUpdate: 'tool_call_update' };
}

function toMeta({ stopped, isCancellable, status, waitsUntil }: CallUpdate): { _meta?: Record<string, unknown> } {
  if (waitsUntil !== undefined) return { _meta: { [META.waiting]: { until: waitsUntil } } };
  if (status === 'cancelled') return { _meta: { [META.cancelled]: stopped ?? true } };
  return isCancellable ? { _meta: { [META.cancelCall]: true } } : {};
}

/** v1 has no cancelled calls: the status is failed, and the output and `_meta` say that it was cancelled. */
function statusV1(status: CallStatus): acp.ToolCallStatus {
  return status === 'cancelled' ? 'failed' : status;
}

function contentV1(content: CallContent): acp.ToolCallContent[] {
  if (content.type === 'content')
    return toBlocks(content.content).map((block) => ({ type: 'content', content: block }));
  const { path, isNew, hunks } = content;
  return hunks.map(({ oldText, newText }) => ({ type: 'diff', path, oldText: isNew ? null : oldText, newText }));
}
