import type { UIMessageChunk } from 'ai';

/** What a loop of the application's own has streamed, as it stands in the journal of its task. */
export interface ReplyEvent {
  readonly type: 'ui-chunks';
  readonly chunks: readonly UIMessageChunk[];
}
