import type { UIMessage, UIMessageChunk } from 'ai';
import type { Answers } from './answers.ts';
import { isCallPart } from './ui/call-parts.ts';
import { toChunks } from './ui/message-chunks.ts';

/** Returns whether a page repeats what a message is being continued with. */
export function isRepeated(used: Answers, { answers }: Answers): boolean {
  const given = new Set(answers.map((answer) => JSON.stringify(answer)));
  return used.answers.every((answer) => given.has(JSON.stringify(answer)));
}

/** Returns whether a page answers only calls that were answered or stopped elsewhere. */
export function isStale({ parts }: UIMessage, { answers }: Answers): boolean {
  const answered = new Set(answers.map(({ toolCallId }) => toolCallId));
  const states = parts.filter(isCallPart).flatMap(({ toolCallId, state }) => (answered.has(toolCallId) ? [state] : []));
  return states.length > 0 && !states.some((state) => state === 'approval-requested' || state === 'input-available');
}

/** Returns the chunks of a message that is not being written. */
export function replay(message: UIMessage): UIMessageChunk[] {
  const last = message.parts.findLast(({ type }) => !type.startsWith('data-'));
  const isClosed = last !== undefined && isCallPart(last) && 'errorText' in last;
  // A page that sends by itself would send a message that ends in closed calls for ever.
  const end: UIMessageChunk[] = isClosed
    ? [
        { type: 'finish', finishReason: 'interrupted' },
        { type: 'abort', reason: 'Nothing waited for this answer.' },
      ]
    : [{ type: 'finish' }];
  return [{ type: 'start', messageId: message.id }, ...toChunks(message), ...end];
}

/** Streams a message to a page that has this many of its steps. The last one may have changed, and is replaced. */
export async function* fromStep(
  whole: AsyncIterable<UIMessageChunk> | Iterable<UIMessageChunk>,
  steps: number,
): AsyncGenerator<UIMessageChunk, undefined> {
  const mark = steps === 0 ? 'start' : 'start-step';
  let left = Math.max(steps, 1);
  for await (const chunk of whole) {
    if (left === 0 || ALWAYS.has(chunk.type)) yield chunk;
    if (left > 0 && chunk.type === mark && --left === 0) yield { type: 'reset-step' };
  }
  return undefined;
}

const ALWAYS: ReadonlySet<string> = new Set(['start', 'message-metadata', 'finish', 'abort', 'error']);
