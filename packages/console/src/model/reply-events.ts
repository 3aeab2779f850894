import type { JournalEvent } from '@whoa/tasks';

/** What the journal keeps of an application's own loop: chunks of the AI SDK's protocol. Unknown ones are skipped. */
export type ReplyEvent =
  | { readonly type: 'ui-chunks'; readonly chunks: readonly Chunk[] }
  /** The text of the turn is written again. */
  | { readonly type: 'turn-reset' };

interface Chunk {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Returns the events that an agent would have written, so that both kinds of replies are shown alike. */
export function toEvents(chunks: readonly Chunk[]): readonly (JournalEvent | ReplyEvent)[] {
  return chunks.flatMap((chunk) => toEvent(chunk) ?? []) as unknown as (JournalEvent | ReplyEvent)[];
}

function toEvent(chunk: Chunk): object | undefined {
  const { delta, toolCallId: callId, toolName: tool = '', input, output, errorText, approvalId } = chunk;
  switch (chunk.type) {
    case 'start-step':
      return { type: 'turn-start' };
    case 'reset-step':
      return { type: 'turn-reset' };
    case 'finish-step':
      return { type: 'turn-end', message: { content: [] } };
    case 'text-delta':
      return { type: 'text', text: delta };
    case 'reasoning-delta':
      return { type: 'thinking', text: delta };
    case 'tool-input-start':
      return { type: 'call-planned', callId, tool };
    case 'tool-input-available':
      return { type: 'call-start', callId, tool, input };
    case 'tool-input-error':
      return toCallEnd({ callId, tool, state: 'not-started', content: errorText });
    case 'tool-approval-request':
      return { type: 'approval-requested', callId, tool, id: approvalId };
    case 'tool-output-available':
      return chunk['preliminary'] === true
        ? { type: 'call-update', callId, tool, partial: { content: toContent(output) } }
        : toCallEnd({ callId, tool, state: 'finished', content: toContent(output) });
    case 'tool-output-error':
      return toCallEnd({ callId, tool, state: 'failed', content: errorText });
    case 'tool-output-denied':
      return toCallEnd({ callId, tool, state: 'not-started', content: 'A person said no.' });
    default:
      return undefined;
  }
}

function toCallEnd(result: object): object {
  return { type: 'call-end', result };
}

export function toContent(output: unknown): string {
  return typeof output === 'string' ? output : JSON.stringify(output ?? null, null, 2);
}
