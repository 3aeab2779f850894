import type { UIMessageChunk } from 'ai';

/** A reply that this page reads. A resumed one has no name before its first chunk. */
export interface Reading {
  readonly runId?: string;
  /** The message that it continues, which the page has. */
  readonly continues?: string | undefined;
  messageId?: string;
  /** The calls that have no result yet. When the stream ends they wait for somebody, and the reply has not ended. */
  open?: Set<string>;
  stopped?: Promise<unknown> | undefined;
  /** Resolves when it has a name, or has ended. */
  readonly named: PromiseWithResolvers<void>;
  /** Resolves when the stream has ended. */
  readonly over: PromiseWithResolvers<void>;
  /** Another tab reads it and passes it on. */
  readonly isPassed?: boolean;
  /** The connection is lost and opened again. */
  isLost?: boolean;
}

/** The replies of each chat that a page reads. */
export class ReplyReadings {
  readonly #readings = new Map<string, Set<Reading>>();
  /** Chats in which replies may end that the page has left, or reads beside newer ones. */
  readonly #stale = new Set<string>();
  readonly #onChange: (chatId: string, stale?: Reading) => void;

  /** `onChange` is given the reply that has ended if the page may have missed another one. */
  constructor(onChange: (chatId: string, stale?: Reading) => void) {
    this.#onChange = onChange;
  }

  of(chatId: string): readonly Reading[] {
    return [...(this.#readings.get(chatId) ?? [])];
  }

  add(chatId: string, about: Pick<Reading, 'runId' | 'continues' | 'isPassed'>): Reading {
    const reading: Reading = { ...about, named: Promise.withResolvers(), over: Promise.withResolvers() };
    if (about.runId !== undefined) reading.named.resolve();
    const readings = this.#readings.get(chatId) ?? new Set();
    if (readings.size > 0) this.#stale.add(chatId);
    this.#readings.set(chatId, readings.add(reading));
    this.#onChange(chatId);
    return reading;
  }

  remove(chatId: string, reading: Reading, isLeft = false): void {
    const readings = this.#readings.get(chatId);
    if (readings?.delete(reading)) {
      if (isLeft) this.#stale.add(chatId);
      // Before one that the page did not ask for, others may have ended; what a tab passes on may be older than what is shown.
      const isUnasked = reading.runId === undefined;
      const isStale = !isLeft && reading.open !== undefined && (isUnasked || this.#stale.has(chatId));
      if (isStale && readings.size === 0) this.#stale.delete(chatId);
      this.#onChange(chatId, isStale ? reading : undefined);
    }
    reading.named.resolve();
    reading.over.resolve();
  }
}

interface Watcher {
  /** Called with every chunk, when the reading knows the name that it has. */
  readonly onChunk: (chunk: UIMessageChunk, isEnd: boolean) => void;
  readonly onEnd: () => void;
}

/**
 * Reads the name of a reply from its chunks. Ends a stopped reply, because the SDK ignores `abort` chunks; and tells a
 * failure last, because the SDK reads nothing after it.
 */
export function watch(reading: Reading, { onChunk, onEnd }: Watcher): TransformStream<UIMessageChunk, UIMessageChunk> {
  let reason: string | undefined;
  let failure: UIMessageChunk | undefined;
  return new TransformStream({
    transform(chunk, controller) {
      if (chunk.type === 'start' && chunk.messageId !== undefined) {
        reading.messageId = chunk.messageId;
        reading.open ??= new Set();
        reading.named.resolve();
      }
      if ('toolCallId' in chunk)
        reading.open?.[chunk.type.startsWith('tool-output') ? 'delete' : 'add'](chunk.toolCallId);
      const isEnd = chunk.type === 'finish' || chunk.type === 'abort';
      if (chunk.type === 'abort') reason = chunk.reason ?? 'stopped';
      onChunk(chunk, isEnd);
      if (isEnd) onEnd();
      if (chunk.type === 'error') failure = chunk;
      else controller.enqueue(chunk);
    },
    flush(controller) {
      onEnd();
      if (failure !== undefined) controller.enqueue(failure);
      if (reason !== undefined) throw new DOMException(reason, 'AbortError');
    },
  });
}
