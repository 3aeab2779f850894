import { refuse } from './refusal.ts';

/** Deeper JSON would overflow the stack of code that walks it. */
const MAX_DEPTH = 100;

/** A sender may have few bodies on the way that are larger. */
const LARGE_BYTES = 16 * 1024;

/** Counts a large body until it is there, or refuses it. */
type Hold = () => Disposable | Response;

/** Reads a body up to a maximum size. Returns the request with its whole body in memory, or the refusal. */
export async function readBody(request: Request, maxBytes: number, hold: Hold): Promise<Request | Response> {
  if (request.body === null) return request;
  const message = `The body has more than ${maxBytes} bytes; send less in one request`;
  const tooLarge = () => refuse(413, { code: 'body-too-large', message });
  // The header may be wrong; the bytes are counted as they arrive.
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) return tooLarge();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  let held: Disposable | Response | undefined;
  const reader = request.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      length += value.byteLength;
      if (length > LARGE_BYTES) held ??= hold();
      const refusal = length > maxBytes ? tooLarge() : held;
      if (refusal instanceof Response) {
        await reader.cancel();
        return refusal;
      }
      chunks.push(value);
    }
  } catch {
    return refuse(400, { code: 'body-cut', message: 'The body ended early; send it again' });
  } finally {
    if (held !== undefined && !(held instanceof Response)) held[Symbol.dispose]();
  }
  const body = await new Blob(chunks).bytes();
  if (isTooDeep(body))
    return refuse(400, { code: 'body-too-deep', message: `The body is nested deeper than ${MAX_DEPTH} levels` });
  const { method, headers, signal, url } = request;
  return new Request(url, { method, headers, signal, ...(method !== 'GET' && method !== 'HEAD' && { body }) });
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d]);

function isTooDeep(json: Uint8Array): boolean {
  let depth = 0;
  let isText = false;
  for (let i = 0; i < json.length; i++) {
    const byte = json[i]!;
    if (isText && byte === BACKSLASH) i++;
    else if (byte === QUOTE) isText = !isText;
    else if (!isText && OPENING.has(byte)) depth++;
    else if (!isText && CLOSING.has(byte)) depth--;
    if (depth > MAX_DEPTH) return true;
  }
  return false;
}
