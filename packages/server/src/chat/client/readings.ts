import type { UIMessageChunk } from 'ai';

/** A reply that this page reads. A resumed one has no name before its first chunk. */
export interface Reading {
  readonly runId?: string;
  /** The message that it continues, which the page has. */
  readonly continues?: string | undefined;
  messageId?: string;
  stopped?: Promise<unknown> | undefined;
  /** Resolves when it has a name, or has ended. */
  readonly named: PromiseWithResolvers<void>;
  /** Resolves when the stream has ended. */
  readonly over: PromiseWithResolvers<void>;
  /** The connection is lost and opened again. */
  isLost?: boolean;
}

/** The replies of each chat that a page reads. */
export class ReplyReadings {
  readonly #readings = new Map<string, Set<Reading>>();
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  of(chatId: string): readonly Reading[] {
    return [...(this.#readings.get(chatId) ?? [])];
  }

  add(chatId: string, about: Pick<Reading, 'runId' | 'continues'>): Reading {
    const reading: Reading = { ...about, named: Promise.withResolvers(), over: Promise.withResolvers() };
    if (about.runId !== undefined) reading.named.resolve();
    const readings = this.#readings.get(chatId) ?? new Set();
    this.#readings.set(chatId, readings.add(reading));
    this.#onChange();
    return reading;
  }

  remove(chatId: string, reading: Reading): void {
    if (this.#readings.get(chatId)?.delete(reading)) this.#onChange();
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
        reading.named.resolve();
      }
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
