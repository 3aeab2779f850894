// Replies that are being written, in the memory of this process. With several instances they are in Redis
// (`resumable-stream`), and a stop needs a way to the instance that writes.
interface Active {
  stream: ReadableStream<string>;
  readonly stop: AbortController;
}

const streams = new Map<string, Active>();

/** Keeps a reply from its beginning, and reads it to its end, whoever else does. */
export function keepStream(id: string, stream: ReadableStream<string>, stop: AbortController): void {
  const [kept, read] = stream.tee();
  streams.set(id, { stream: kept, stop });
  read.pipeTo(new WritableStream()).finally(() => streams.delete(id));
}

/** Returns a reply from its beginning. */
export function resumeStream(id: string): ReadableStream<string> | undefined {
  const active = streams.get(id);
  if (active === undefined) return undefined;
  const [kept, copy] = active.stream.tee();
  active.stream = kept;
  return copy;
}

export function stopStream(id: string): void {
  streams.get(id)?.stop.abort();
}
