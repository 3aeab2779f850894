import type { UIMessageChunk } from 'ai';

/** What is open after some chunks of one message. */
interface Standing {
  readonly isInStep: boolean;
  /** Text that was started and not ended, and its kind. */
  readonly words: ReadonlyMap<string, 'text' | 'reasoning'>;
  /** Calls that were requested and have not ended. */
  readonly calls: ReadonlySet<string>;
  /** Calls whose request was started, and their tools. */
  readonly planned: ReadonlyMap<string, string>;
  /** The current step has requested a call. */
  readonly hasCall: boolean;
}

function standingOf(chunks: readonly UIMessageChunk[]): Standing {
  let isInStep = false;
  let hasCall = false;
  const words = new Map<string, 'text' | 'reasoning'>();
  const calls = new Set<string>();
  const planned = new Map<string, string>();
  for (const chunk of chunks) {
    switch (chunk.type) {
      case 'start-step':
        isInStep = true;
        hasCall = false;
        break;
      case 'finish-step':
        isInStep = false;
        break;
      case 'reset-step':
        words.clear();
        planned.clear();
        break;
      case 'text-start':
        words.set(chunk.id, 'text');
        break;
      case 'reasoning-start':
        words.set(chunk.id, 'reasoning');
        break;
      case 'text-end':
      case 'reasoning-end':
        words.delete(chunk.id);
        break;
      case 'tool-input-start':
        planned.set(chunk.toolCallId, chunk.toolName);
        break;
      case 'tool-input-available':
        planned.delete(chunk.toolCallId);
        calls.add(chunk.toolCallId);
        hasCall = true;
        break;
      case 'tool-input-error':
        planned.delete(chunk.toolCallId);
        break;
      case 'tool-output-available':
        if (chunk.preliminary !== true) calls.delete(chunk.toolCallId);
        break;
      case 'tool-output-error':
      case 'tool-output-denied':
        calls.delete(chunk.toolCallId);
        break;
      default:
        break;
    }
  }
  return { isInStep, words, calls, planned, hasCall };
}

export function openCallsIn(chunks: readonly UIMessageChunk[]): readonly string[] {
  return [...standingOf(chunks).calls];
}

/** Closes the text, partial calls and the step that a reply was cut off in. */
export function closingChunks(chunks: readonly UIMessageChunk[]): UIMessageChunk[] {
  const { words, planned, isInStep } = standingOf(chunks);
  const closing: UIMessageChunk[] = [...words].map(([id, kind]) => ({ type: `${kind}-end`, id }));
  for (const [toolCallId, toolName] of planned) {
    const errorText = 'Not started: the reply was cut off before it was asked for.';
    // Pages refuse a chunk without an input, and with it the rest of the reply.
    closing.push({ type: 'tool-input-error', toolCallId, toolName, input: {}, errorText });
  }
  return isInStep ? [...closing, { type: 'finish-step' }] : closing;
}

/**
 * Returns what another worker adds before it continues a reply. Text of a step without calls is generated again. A step
 * with calls stays, and the outcome of its open calls is unknown.
 */
export function resumePoint(chunks: readonly UIMessageChunk[]): UIMessageChunk[] {
  const { isInStep, hasCall, calls } = standingOf(chunks);
  if (chunks.length === 0 || !isInStep) return [];
  if (!hasCall) return [{ type: 'reset-step' }, { type: 'finish-step' }];
  const errorText = 'Outcome unknown: the process that ran it stopped before it ended. It may have taken effect.';
  const ends = [...calls].map((toolCallId): UIMessageChunk => ({ type: 'tool-output-error', toolCallId, errorText }));
  return [...ends, ...closingChunks(chunks)];
}
