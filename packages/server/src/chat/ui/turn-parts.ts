import type { JournalEvent } from '@whoa/tasks';
import type { UIMessageChunk } from 'ai';

export type TurnEnd = Extract<JournalEvent, { type: 'turn-end' }>;
export type TextKind = 'text' | 'reasoning';

/** Text of the current turn that readers have seen. */
export interface Shown {
  readonly kind: TextKind;
  readonly id: string;
  text: string;
}

type Part = TurnEnd['message']['content'][number];
type TextPart = Extract<Part, { type: 'text' | 'thinking' }>;

export function isWords(part: Part): part is TextPart {
  return part.type !== 'call';
}

export function getKind(part: TextPart): TextKind {
  return part.type === 'text' ? 'text' : 'reasoning';
}

export const toDelta = ({ kind, id }: Shown, delta: string): UIMessageChunk => ({ type: `${kind}-delta`, id, delta });

/** Returns what users see of a result: the content for the model and the details for users. */
export function toOutput({ content, details }: { content: unknown; details?: unknown }): unknown {
  return { content, ...(details !== undefined && { details }) };
}
