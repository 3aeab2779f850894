import type { UIMessageChunk } from 'ai';

interface Told {
  readonly type?: string;
  readonly result?: { readonly callId: string; readonly tool?: string; readonly state: string };
  readonly callId?: string;
  readonly state?: string;
  readonly chunks?: readonly UIMessageChunk[];
}

/** Returns the calls of a turn that may have had effects and were not undone. */
export function standingEffects(journal: readonly unknown[], readOnlyTools: ReadonlySet<string>): readonly string[] {
  const standing = new Set<string>();
  for (const told of journal as readonly Told[]) {
    if (told.type === 'call-end' && told.result !== undefined) {
      const { callId, tool = '', state } = told.result;
      if (state !== 'not-started' && !readOnlyTools.has(tool)) standing.add(callId);
    }
    if (told.type === 'undo-end' && told.state === 'undone' && told.callId !== undefined) standing.delete(told.callId);
    for (const chunk of told.chunks ?? [])
      if (chunk.type === 'tool-input-available' && !readOnlyTools.has(chunk.toolName)) standing.add(chunk.toolCallId);
  }
  return [...standing];
}
