import type { UIMessageChunk } from 'ai';

/** What the application's own loop has streamed, as an event in the journal of its task. */
export interface ReplyEvent {
  readonly type: 'ui-chunks';
  readonly chunks: readonly UIMessageChunk[];
}
