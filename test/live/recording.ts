// Traffic between our adapter and a provider, stored in a file without private data, and replayed by a server.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { WireFormat } from '@whoa/ai-sdk/testing';

/** One request and its answer. */
interface Exchange {
  readonly path: string;
  readonly request: unknown;
  readonly status: number;
  readonly contentType: string;
  /** The chunks of the response. */
  readonly chunks: readonly string[];
  /** The side that ended it: `client` if the run was cut off. */
  readonly closedBy: 'client' | 'server';
}

export interface Recording {
  /** `live`: from a vendor. `loopback`: from our own provider, so it proves nothing about a vendor. */
  readonly source: 'live' | 'loopback';
  readonly format: WireFormat;
  readonly model: string;
  readonly journey: string;
  readonly recordedOn: string;
  readonly exchanges: readonly Exchange[];
}

export interface Recorder extends AsyncDisposable {
  readonly url: string;
  readonly exchanges: readonly Exchange[];
  /** Resolves when every response has ended. */
  waitForIdle(): Promise<void>;
}

export interface RecorderOptions {
  /** The base URL that requests are forwarded to. */
  readonly target: string;
  /** Sent with every request, and never written down. */
  readonly headers: Readonly<Record<string, string>>;
  /** Forwards no more requests than this, which bounds the cost of a mistake. */
  readonly maxRequests: number;
  /** Rejects requests for more output than this. */
  readonly maxOutputTokens: number;
}

/** A server between an adapter and a provider that records the redacted traffic. */
export function startRecorder(options: RecorderOptions): Promise<Recorder> {
  const exchanges: Exchange[] = [];
  const open = new Set<Promise<unknown>>();
  let sent = 0;

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request);
    const path = new URL(request.url ?? '/', 'http://recorder').pathname;
    const refusal = findRefusal(body, ++sent, options);
    if (refusal !== undefined) return void response.writeHead(400, JSON_TYPE).end(refusal);
    const left = new AbortController();
    response.once('close', () => left.abort());
    const target = options.target + path.replace(/^\/v1/, '');
    const answer = await fetch(target, {
      method: 'POST',
      headers: { ...options.headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: left.signal,
    });
    const contentType = answer.headers.get('content-type') ?? '';
    response.writeHead(answer.status, { 'content-type': contentType });
    const chunks: string[] = [];
    let closedBy: Exchange['closedBy'] = 'server';
    try {
      const text = answer.body!.pipeThrough(new TextDecoderStream());
      for await (const chunk of text) {
        chunks.push(redactText(chunk));
        response.write(chunk);
      }
    } catch (error) {
      if (!left.signal.aborted) throw error;
      closedBy = 'client';
    }
    if (left.signal.aborted && !response.writableFinished) closedBy = 'client';
    response.end();
    exchanges.push({ path, request: redact(body), status: answer.status, contentType, chunks, closedBy });
  }

  return serve(
    (request, response) => {
      const answering = forward(request, response).catch((error: unknown) => response.destroy(error as Error));
      open.add(answering);
      answering.then(() => open.delete(answering)).catch(() => {});
    },
    {
      exchanges,
      waitForIdle: async () => void (await Promise.all(open)),
    },
  );
}

export interface Replay extends AsyncDisposable {
  readonly url: string;
  /** The bodies of the requests, to be compared with the recorded ones. */
  readonly requests: readonly unknown[];
}

/** Responds as recorded, request by request. A response that was cut off stays open until its client disconnects. */
export function startReplay(recording: Recording): Promise<Replay> {
  const requests: unknown[] = [];
  return serve(
    (request, response) => {
      const answer = async (): Promise<void> => {
        const exchange = recording.exchanges[requests.length];
        requests.push(await readBody(request));
        if (exchange === undefined)
          return void response.writeHead(400, JSON_TYPE).end('{"error":{"message":"not recorded"}}');
        response.writeHead(exchange.status, { 'content-type': exchange.contentType });
        for (const chunk of exchange.chunks) response.write(chunk);
        if (exchange.closedBy === 'server') response.end();
      };
      answer().catch((error: unknown) => response.destroy(error as Error));
    },
    { requests },
  );
}

const JSON_TYPE = { 'content-type': 'application/json' };

async function serve<Extra extends object>(
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
  extra: Extra,
): Promise<Extra & AsyncDisposable & { readonly url: string }> {
  const server = createServer(onRequest);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return { ...extra, url, [Symbol.asyncDispose]: close };
}

async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
}

const OUTPUT_FIELDS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'];

function findRefusal(body: Record<string, unknown>, sent: number, options: RecorderOptions): string | undefined {
  const asked = OUTPUT_FIELDS.map((name) => body[name]).find((value) => typeof value === 'number');
  const problem =
    sent > options.maxRequests
      ? `the limit of ${options.maxRequests} requests is reached`
      : asked === undefined || asked > options.maxOutputTokens
        ? `a request must ask for at most ${options.maxOutputTokens} tokens of output, this one asks for ${asked}`
        : undefined;
  return problem && JSON.stringify({ error: { type: 'invalid_request_error', message: `live: ${problem}` } });
}

/** Fields that name an account, a person or one single request. */
const PRIVATE_FIELDS = new Set([
  'user',
  'metadata',
  'safety_identifier',
  'prompt_cache_key',
  'system_fingerprint',
  'request_id',
]);
const SECRETS = /(sk-[\w-]{8,}|Bearer\s+\S+|org-\w{8,}|proj_\w{8,}|req_\w{8,})/g;

/** Returns a value without private fields and without anything that looks like a key. */
export function redact(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (name, item: unknown) => {
    if (PRIVATE_FIELDS.has(name) && item !== null) return '[redacted]';
    return typeof item === 'string' ? item.replaceAll(SECRETS, '[redacted]') : item;
  });
}

/** Redacts a chunk of an event stream. Chunks may split anywhere, so only text within one chunk can be found. */
export function redactText(text: string): string {
  const fields = [...PRIVATE_FIELDS].join('|');
  return text
    .replaceAll(SECRETS, '[redacted]')
    .replaceAll(new RegExp(`"(${fields})":\\s*"[^"]*"`, 'g'), '"$1":"[redacted]"');
}
