import type { UIMessage, UIMessageChunk } from 'ai';
import { type CallPart, getToolName, isCallPart } from './ui/call-parts.ts';

interface EffectEvent {
  readonly type?: string;
  readonly result?: { readonly callId: string; readonly tool?: string; readonly state: string };
  readonly callId?: string;
  readonly state?: string;
  readonly chunks?: readonly UIMessageChunk[];
}

/**
 * Returns the calls of a turn that may have had effects and were not undone. A reply of the application's own loop has
 * a message, in which earlier tasks may have written.
 */
export function findRemainingEffects(
  journal: readonly unknown[],
  message: UIMessage | undefined,
  readOnlyTools: ReadonlySet<string>,
): readonly string[] {
  const remaining = new Set<string>();
  for (const event of journal as readonly EffectEvent[]) {
    if (event.type === 'call-end' && event.result !== undefined) {
      const { callId, tool = '', state } = event.result;
      if (state !== 'not-started' && !readOnlyTools.has(tool)) remaining.add(callId);
    }
    if (event.type === 'undo-end' && event.state === 'undone' && event.callId !== undefined)
      remaining.delete(event.callId);
    for (const chunk of event.chunks ?? [])
      if (chunk.type === 'tool-input-available' && !readOnlyTools.has(chunk.toolName)) remaining.add(chunk.toolCallId);
  }
  for (const part of message?.parts.filter(isCallPart) ?? []) {
    if (isWithoutEffect(part)) remaining.delete(part.toolCallId);
    else if (!readOnlyTools.has(getToolName(part))) remaining.add(part.toolCallId);
  }
  return [...remaining];
}

/** A person said no, or no one said yes before it was stopped. */
function isWithoutEffect(part: CallPart): boolean {
  if (part.state === 'output-error') return part.errorText.startsWith('Not started');
  return part.state === 'output-denied' || part.approval?.approved === false;
}
