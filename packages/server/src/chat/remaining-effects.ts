import type { UIMessage, UIMessageChunk } from 'ai';
import { type CallPart, isCallPart, toolOf } from './ui/call-parts.ts';

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
  const standing = new Set<string>();
  for (const event of journal as readonly EffectEvent[]) {
    if (event.type === 'call-end' && event.result !== undefined) {
      const { callId, tool = '', state } = event.result;
      if (state !== 'not-started' && !readOnlyTools.has(tool)) standing.add(callId);
    }
    if (event.type === 'undo-end' && event.state === 'undone' && event.callId !== undefined)
      standing.delete(event.callId);
    for (const chunk of event.chunks ?? [])
      if (chunk.type === 'tool-input-available' && !readOnlyTools.has(chunk.toolName)) standing.add(chunk.toolCallId);
  }
  for (const part of message?.parts.filter(isCallPart) ?? []) {
    if (isWithoutEffect(part)) standing.delete(part.toolCallId);
    else if (!readOnlyTools.has(toolOf(part))) standing.add(part.toolCallId);
  }
  return [...standing];
}

/** A person said no, or nobody said yes before it was stopped. */
function isWithoutEffect(part: CallPart): boolean {
  if (part.state === 'output-error') return part.errorText.startsWith('Not started');
  return part.state === 'output-denied' || part.approval?.approved === false;
}
