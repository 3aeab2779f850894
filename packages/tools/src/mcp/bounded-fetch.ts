/** Longer messages are errors, because a message must be held in memory. */
const MAX_MESSAGE_BYTES = 64_000_000;

/**
 * A `fetch` that limits the size of each message in a response; in an event stream, of each event. `onFault` is called when
 * one is too long.
 */
export function createBoundedFetch(onFault: (message: string) => void): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (response.body === null) return response;
    const isEvents = response.headers.get('content-type')?.includes('text/event-stream') === true;
    const body = response.body.pipeThrough(createBound(isEvents, onFault));
    const { status, statusText, headers } = response;
    return Object.defineProperty(new Response(body, { status, statusText, headers }), 'url', { value: response.url });
  };
}

const NEWLINE = 10;

function createBound(
  isEvents: boolean,
  onFault: (message: string) => void,
): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let length = 0;
  return new TransformStream({
    transform(chunk, controller) {
      const end = isEvents ? lastEventEnd(chunk) : -1;
      length = end === -1 ? length + chunk.length : chunk.length - end;
      if (length > MAX_MESSAGE_BYTES) {
        const message = `it sent a message of more than ${MAX_MESSAGE_BYTES} bytes`;
        controller.error(new Error(message));
        onFault(message);
        return;
      }
      controller.enqueue(chunk);
    },
  });
}

/** The end of the last event in a chunk, marked by an empty line. */
function lastEventEnd(chunk: Uint8Array): number {
  for (let at = chunk.lastIndexOf(NEWLINE); at > 0; at = chunk.lastIndexOf(NEWLINE, at - 1)) {
    if (chunk[at - 1] === NEWLINE || (chunk[at - 1] === 13 && chunk[at - 2] === NEWLINE)) return at + 1;
  }
  return -1;
}
