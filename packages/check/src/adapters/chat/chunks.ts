import type { UIMessageChunk } from 'ai';
import type { TurnLog } from '../../turn-log.ts';

/** Reads what a UI message stream says about a turn. */
export interface ChunkRecorder {
  add(chunk: UIMessageChunk): void;
  /** The stream has ended. */
  close(): void;
}

/** Records the chunks of a reply. Nothing may follow `finish` and `abort`; an `error` may be followed by `finish`. */
export function recordChunks(turn: TurnLog): ChunkRecorder {
  let hasEnded = false;
  let failure: string | undefined;
  const end = (kind: 'cancelled' | 'completed' | 'error' | 'gone', detail: string): void => {
    hasEnded = true;
    turn.end(kind, detail);
  };
  return {
    add(chunk) {
      if (chunk.type === 'text-delta') turn.record({ what: 'text', text: chunk.delta });
      else if (chunk.type === 'abort')
        end('cancelled', `abort${chunk.reason === undefined ? '' : ` (${chunk.reason})`}`);
      else if (chunk.type === 'error') failure = chunk.errorText;
      else if (chunk.type === 'finish')
        end(failure === undefined ? 'completed' : 'error', failure ?? `finish ${chunk.finishReason ?? ''}`.trim());
      else if ('toolCallId' in chunk) recordCall(turn, chunk.toolCallId, chunk);
      else turn.record({ what: 'other', detail: chunk.type });
    },
    close() {
      if (hasEnded) return;
      if (failure === undefined) end('gone', 'the stream ended without finish or abort');
      else end('error', failure);
    },
  };
}

const ENDS_A_CALL = ['tool-output-available', 'tool-output-error', 'tool-output-denied', 'tool-input-error'];

function recordCall(turn: TurnLog, id: string, chunk: UIMessageChunk): void {
  const isPreliminary = 'preliminary' in chunk && chunk.preliminary === true;
  const isOpen = !ENDS_A_CALL.includes(chunk.type) || isPreliminary;
  turn.record({ what: 'call', id, isOpen, detail: chunk.type });
}
