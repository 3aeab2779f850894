import type { UIMessageChunk } from 'ai';

/** A call that was requested and has not ended. */
export interface OpenCall {
  readonly tool: string;
  /** The provider runs it. */
  readonly isProviders: boolean;
  /** A person is asked about it: `undefined` until they have answered. */
  readonly approval?: { readonly id: string; readonly approved?: boolean };
}

/** What is open after some chunks of one message. */
interface Standing {
  readonly isInStep: boolean;
  /** Text that was started and not ended, and its kind. */
  readonly words: ReadonlyMap<string, 'text' | 'reasoning'>;
  readonly calls: ReadonlyMap<string, OpenCall>;
  /** Calls whose request was started, and their tools. */
  readonly planned: ReadonlyMap<string, string>;
  /** The current step has requested a call. */
  readonly hasCall: boolean;
}

function standingOf(chunks: readonly UIMessageChunk[]): Standing {
  let isInStep = false;
  let hasCall = false;
  const words = new Map<string, 'text' | 'reasoning'>();
  const calls = new Map<string, OpenCall>();
  const planned = new Map<string, string>();
  const end = (toolCallId: string): void => {
    planned.delete(toolCallId);
    calls.delete(toolCallId);
  };
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
        calls.set(chunk.toolCallId, { tool: chunk.toolName, isProviders: chunk.providerExecuted === true });
        hasCall = true;
        break;
      case 'tool-approval-request': {
        const { toolCallId, approvalId: id } = chunk;
        const call = calls.get(toolCallId) ?? { tool: planned.get(toolCallId) ?? '', isProviders: false };
        planned.delete(toolCallId);
        // Where the loop answers by itself, no one is asked.
        calls.set(toolCallId, chunk.isAutomatic === true ? call : { ...call, approval: { id } });
        break;
      }
      case 'tool-approval-response':
        for (const [toolCallId, { approval, ...call }] of calls)
          if (approval?.id === chunk.approvalId)
            calls.set(toolCallId, { ...call, approval: { ...approval, approved: chunk.approved } });
        break;
      case 'tool-output-available':
        if (chunk.preliminary !== true) end(chunk.toolCallId);
        break;
      case 'tool-input-error':
      case 'tool-output-error':
      case 'tool-output-denied':
        end(chunk.toolCallId);
        break;
      default:
        break;
    }
  }
  return { isInStep, words, calls, planned, hasCall };
}

/** Returns the calls that have not ended, by id. A call that a person denied has. */
export function openCallsIn(chunks: readonly UIMessageChunk[]): ReadonlyMap<string, OpenCall> {
  const { calls } = standingOf(chunks);
  return new Map([...calls].filter(([, { approval }]) => approval?.approved !== false));
}

/**
 * Returns the calls that wait: for a person's answer, or for the result of a tool that a page runs. Approved calls start
 * when nothing else waits.
 */
export function waitingCallsIn(
  chunks: readonly UIMessageChunk[],
  isElsewhere: (tool: string) => boolean,
): ReadonlySet<string> {
  const open = [...openCallsIn(chunks)];
  const isWaiting = ({ tool, isProviders, approval }: OpenCall): boolean =>
    (approval !== undefined && approval.approved === undefined) || (!isProviders && isElsewhere(tool));
  if (!open.some(([, call]) => isWaiting(call))) return new Set();
  return new Set(open.flatMap(([id, call]) => (isWaiting(call) || call.approval ? [id] : [])));
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
 * with calls stays, and the outcome of its open calls is unknown, unless they wait for a person or a page.
 */
export function resumePoint(
  chunks: readonly UIMessageChunk[],
  isElsewhere: (tool: string) => boolean,
): UIMessageChunk[] {
  const { isInStep, hasCall } = standingOf(chunks);
  const errorText = 'Outcome unknown: the process that ran it stopped before it ended. It may have taken effect.';
  const waiting = waitingCallsIn(chunks, isElsewhere);
  const ends = [...openCallsIn(chunks).keys()]
    .filter((toolCallId) => !waiting.has(toolCallId))
    .map((toolCallId): UIMessageChunk => ({ type: 'tool-output-error', toolCallId, errorText }));
  if (!isInStep) return ends;
  return hasCall ? [...ends, ...closingChunks(chunks)] : [...ends, { type: 'reset-step' }, { type: 'finish-step' }];
}
