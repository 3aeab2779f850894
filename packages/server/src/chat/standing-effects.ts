import type { UIMessageChunk } from 'ai';

interface EffectEvent {
  readonly type?: string;
  readonly result?: { readonly callId: string; readonly tool?: string; readonly state: string };
  readonly callId?: string;
  readonly state?: string;
  readonly chunks?: readonly UIMessageChunk[];
}

/** Returns the calls of a turn that may have had effects and were not undone. */
export function standingEffects(journal: readonly unknown[], readOnlyTools: ReadonlySet<string>): readonly string[] {
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
  return [...standing];
}
