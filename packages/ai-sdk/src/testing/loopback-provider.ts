import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { deliver, deliverWhole } from './delivery.ts';
import { type LoopbackRequest, RequestRecord } from './request-record.ts';
import type { ScriptedResponse } from './script.ts';
import { toFields } from './strict/strict.ts';
import { whole } from './whole.ts';
import type { Wire } from './wire/wire.ts';
import { anthropicWire } from './wire/wire-anthropic.ts';
import { chatWire } from './wire/wire-chat.ts';
import { responsesWire } from './wire/wire-responses.ts';

/** The answers: a list in order, or a function of the request. */
export type Script = readonly ScriptedResponse[] | ((request: LoopbackRequest) => ScriptedResponse);

export interface LoopbackOptions {
  readonly script: Script;
  /** Where to listen. Defaults to a free port. */
  readonly port?: number | undefined;
  /** Whether to refuse invalid histories as the vendors do. Defaults to true. */
  readonly isStrict?: boolean | undefined;
}

/** A local provider that follows a script. */
export interface LoopbackProvider extends AsyncDisposable {
  /** The base URL for a provider package: it ends in `/v1`. */
  readonly url: string;
  readonly requests: readonly LoopbackRequest[];
  /** The number of open sockets, including idle ones. */
  readonly openConnections: number;
  /** The number of answers that are being sent. */
  readonly openResponses: number;
  /** Resolves with the request of that index, once it has arrived. */
  waitForRequest(index: number): Promise<LoopbackRequest>;
  /** Resolves when no answer is being sent. */
  waitForIdle(): Promise<void>;
  /** Ends all responses and closes the server. */
  close(): Promise<void>;
}

const WIRES: readonly Wire[] = [chatWire, responsesWire, anthropicWire];

/** No request may be larger than this. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

/**
 * Starts a real HTTP server that behaves like OpenAI Chat Completions, OpenAI Responses and Anthropic Messages,
 * streaming or not, as requested. It fails where its script has a fault, and refuses histories as strictly as those
 * vendors.
 *
 * @returns The running provider, with its `url`. Dispose it to stop it.
 *
 * @example
 * ```ts
 * import { createAnthropic } from '@ai-sdk/anthropic';
 * import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
 *
 * await using provider = await startLoopbackProvider({ script: [{ parts: [{ text: ['Hello ', { stall: true }] }] }] });
 * const claude = createAnthropic({ baseURL: provider.url, apiKey: 'none' })('claude');
 * ```
 */
export async function startLoopbackProvider(options: LoopbackOptions): Promise<LoopbackProvider> {
  const loopback = new Loopback(options);
  const server = createServer((request, response) => loopback.accept(request, response));
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests: loopback.requests,
    get openConnections() {
      return sockets.size;
    },
    get openResponses() {
      return loopback.openResponses;
    },
    waitForRequest: (index) => loopback.waitForRequest(index),
    waitForIdle: () => loopback.waitForIdle(),
    close,
    [Symbol.asyncDispose]: close,
  };
}

class Loopback {
  readonly requests: RequestRecord[] = [];
  readonly #options: LoopbackOptions;
  /** Proofs of thinking issued so far; all others are forged. */
  readonly #proofs = new Set<string>();
  readonly #waiting = new Map<number, PromiseWithResolvers<LoopbackRequest>>();
  readonly #quiet = new Set<() => void>();
  #answered = 0;
  openResponses = 0;

  constructor(options: LoopbackOptions) {
    this.#options = options;
  }

  waitForRequest(index: number): Promise<LoopbackRequest> {
    const there = this.requests[index];
    if (there !== undefined) return Promise.resolve(there);
    const waiting = this.#waiting.get(index) ?? Promise.withResolvers<LoopbackRequest>();
    this.#waiting.set(index, waiting);
    return waiting.promise;
  }

  waitForIdle(): Promise<void> {
    return this.openResponses === 0 ? Promise.resolve() : new Promise((resolve) => this.#quiet.add(resolve));
  }

  accept(request: IncomingMessage, response: ServerResponse): void {
    this.openResponses++;
    response.once('close', () => {
      if (--this.openResponses > 0) return;
      for (const resolve of this.#quiet) resolve();
      this.#quiet.clear();
    });
    this.#answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const wire = WIRES.find(({ path }) => request.url?.split('?')[0]?.endsWith(path));
    const body = toFields(await readJson(request));
    if (wire === undefined) {
      const paths = WIRES.map(({ path }) => path).join(', ');
      const message = `No such path: ${request.url ?? ''}. There are ${paths}`;
      respond(response, { status: 404, body: { error: { message } } });
      return;
    }
    const record = this.#record(request, { wire, body });
    response.once('close', () => record.close(response.writableFinished ? 'server' : 'client'));
    const answer = record.refusal === undefined ? this.#nextAnswer(record) : { status: 400, ...record.refusal };
    const { status = 200, message = `Scripted ${status}`, headers } = answer;
    if (status !== 200) {
      respond(response, { status, body: wire.failure(status, { ...record.refusal, message }), headers });
      return;
    }
    const context = {
      id: String(record.index),
      model: typeof body['model'] === 'string' ? body['model'] : 'loopback',
      issue: (proof: string) => this.#proofs.add(proof),
    };
    const delivery = { answer, frames: wire.frames(answer, context), record, wire };
    if (body['stream'] === true) await deliver(response, delivery);
    else await deliverWhole(response, { ...delivery, body: whole[wire.format](answer, context) });
  }

  #record(request: IncomingMessage, { wire, body }: { wire: Wire; body: RequestRecord['body'] }): RequestRecord {
    const { isStrict = true } = this.#options;
    const isGenuine = (proof: string): boolean => this.#proofs.has(proof);
    const refusal = isStrict ? wire.validate(body, { isGenuine }) : undefined;
    const index = this.requests.length;
    const record = new RequestRecord({ index, format: wire.format, headers: request.headers, body, refusal });
    this.requests.push(record);
    this.#waiting.get(index)?.resolve(record);
    this.#waiting.delete(index);
    return record;
  }

  #nextAnswer(record: RequestRecord): ScriptedResponse {
    const { script } = this.#options;
    if (typeof script === 'function') {
      try {
        return script(record);
      } catch (error) {
        return { status: 400, message: `The script failed: ${String(error)}` };
      }
    }
    const answer = script[this.#answered++];
    return answer ?? { status: 400, message: `The script has ${script.length} answers and all of them are used up` };
  }
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new RangeError(`The request is larger than ${MAX_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return undefined;
  }
}

interface Response {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: ScriptedResponse['headers'] | undefined;
}

function respond(response: ServerResponse, { status, body, headers }: Response): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}
