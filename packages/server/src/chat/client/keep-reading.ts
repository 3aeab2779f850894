import type { UIMessageChunk } from 'ai';
import { pause } from './pause.ts';
import { ChangedReplyError, ShownChunks } from './shown-chunks.ts';

type Chunks = ReadableStream<UIMessageChunk>;

const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 10_000;
/** A server that refuses may be starting. This long it is asked again. */
const REFUSED_MS = 60_000;

export interface KeepReadingOptions {
  /** Opens the stream again, from its start. Resolves with `null` if the reply is gone. */
  readonly reopen: () => Promise<Chunks | null>;
  /** It starts within a message, which is streamed whole when it is opened again. */
  readonly isContinued?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onConnection: (isLost: boolean) => void;
}

/**
 * Reads a reply to its end, however often the connection is lost. It is opened again after a pause that grows, and at
 * once when the browser is online again or the page comes into view.
 */
export function keepReading(first: Chunks, options: KeepReadingOptions): Chunks {
  const shown = new ShownChunks();
  let reader = first.getReader();
  let isEnded = false;
  const read = async (): Promise<UIMessageChunk | undefined> => {
    try {
      const { done, value } = await reader.read();
      if (!done || isEnded) return value;
    } catch (error) {
      if (isEnded || !(error instanceof TypeError) || options.signal?.aborted) throw error;
    }
    const again = await reconnect(options);
    if (again === null) return undefined;
    if (options.isContinued) {
      await again.cancel();
      throw new ChangedReplyError();
    }
    shown.restart();
    reader = again.getReader();
    return read();
  };
  const source = {
    async pull(controller: ReadableStreamDefaultController<UIMessageChunk>): Promise<void> {
      for (;;) {
        const chunk = await read();
        if (chunk === undefined) return controller.close();
        isEnded ||= chunk.type === 'finish' || chunk.type === 'abort';
        const fresh = shown.next(chunk);
        for (const one of fresh) controller.enqueue(one);
        if (fresh.length > 0) return undefined;
      }
    },
    cancel: (reason: unknown) => reader.cancel(reason),
  };
  // Nothing is read ahead: whoever has stopped reading needs no connection.
  return new ReadableStream(source, { highWaterMark: 0 });
}

/** Opens a stream again until the server answers. */
export async function reconnect({
  reopen,
  signal,
  onConnection,
}: Omit<KeepReadingOptions, 'isContinued'>): Promise<Chunks | null> {
  onConnection(true);
  try {
    let refusedAt: number | undefined;
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, MAX_WAIT_MS)) {
      await pause(waitMs, signal);
      signal?.throwIfAborted();
      try {
        return await reopen();
      } catch (error) {
        signal?.throwIfAborted();
        // The network failed, or was silent, which says nothing about the server.
        if (error instanceof TypeError || error instanceof DOMException) refusedAt = undefined;
        else if (Date.now() - (refusedAt ??= Date.now()) > REFUSED_MS) throw error;
      }
    }
  } finally {
    onConnection(false);
  }
}
