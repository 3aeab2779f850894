import type { UIMessage, UIMessageChunk } from 'ai';
import { findOpenCalls, findWaitingCalls, getToolName, type IsElsewhere, isCallPart } from './call-parts.ts';

/** A message that is being written, and the chunks that it was formed from. */
export interface Draft {
  readonly message: UIMessage;
  readonly chunks: readonly UIMessageChunk[];
}

/** The text for a call whose end no one has seen. */
export const LOST_CALL = 'Outcome unknown: the process that ran it stopped before it ended. It may have taken effect.';

const STEPS: ReadonlySet<string> = new Set(['start-step', 'finish-step']);

function isInStep(chunks: readonly UIMessageChunk[]): boolean {
  return chunks.findLast(({ type }) => STEPS.has(type))?.type === 'start-step';
}

/** Closes the text, partial calls and the step that a reply was cut off in. */
export function closingChunks({ message, chunks }: Draft): UIMessageChunk[] {
  const words = new Map<string, UIMessageChunk>();
  for (const chunk of chunks) {
    if (chunk.type === 'reset-step') words.clear();
    if (chunk.type === 'text-start') words.set(chunk.id, { type: 'text-end', id: chunk.id });
    if (chunk.type === 'reasoning-start') words.set(chunk.id, { type: 'reasoning-end', id: chunk.id });
    if (chunk.type === 'text-end' || chunk.type === 'reasoning-end') words.delete(chunk.id);
  }
  const errorText = 'Not started: the reply was cut off before it was asked for.';
  const planned = message.parts.filter(isCallPart).filter(({ state }) => state === 'input-streaming');
  const refused = planned.map((part): UIMessageChunk => {
    // Pages refuse a chunk without an input, and with it the rest of the reply.
    return { type: 'tool-input-error', toolCallId: part.toolCallId, toolName: getToolName(part), input: {}, errorText };
  });
  return [...words.values(), ...refused, ...(isInStep(chunks) ? [{ type: 'finish-step' } as const] : [])];
}

/**
 * Returns what another worker adds before it continues a reply. Text of a step without calls is generated again. A step
 * with calls stays, and the outcome of its open calls is unknown, unless they wait for a person or a page.
 */
export function resumePoint(draft: Draft, isElsewhere: IsElsewhere): UIMessageChunk[] {
  const { message, chunks } = draft;
  const waiting = findWaitingCalls(message, isElsewhere);
  const ends = findOpenCalls(message)
    .filter((part) => !waiting.includes(part))
    .map(({ toolCallId }): UIMessageChunk => ({ type: 'tool-output-error', toolCallId, errorText: LOST_CALL }));
  if (!isInStep(chunks)) return ends;
  const step = message.parts.slice(message.parts.findLastIndex(({ type }) => type === 'step-start'));
  const hasCall = step.some((part) => isCallPart(part) && part.state !== 'input-streaming');
  return hasCall ? [...ends, ...closingChunks(draft)] : [...ends, { type: 'reset-step' }, { type: 'finish-step' }];
}
