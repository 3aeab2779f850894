import type { ChatTransport, DefaultChatTransport, UIMessage, UIMessageChunk } from 'ai';
import { readChunks } from './read-chunks.ts';
import { RefusedError } from './server-link.ts';

type Chunks = ReadableStream<UIMessageChunk>;
export type Send<Message extends UIMessage> = Parameters<ChatTransport<Message>['sendMessages']>[0];
export type Resume<Message extends UIMessage> = Parameters<ChatTransport<Message>['reconnectToStream']>[0];

/** The options of the SDK's transport. */
export type HttpOptions<Message extends UIMessage> = NonNullable<
  ConstructorParameters<typeof DefaultChatTransport<Message>>[0]
>;

/** What a request has, whoever has prepared it. */
interface Base {
  readonly body: object;
  readonly headers: Record<string, string>;
  readonly credentials: RequestInit['credentials'] | undefined;
}

interface Wanted extends Omit<Base, 'body'> {
  readonly method: string;
  readonly url: string;
  readonly body?: string;
  readonly signal: AbortSignal | undefined;
}

/**
 * Sends requests as the SDK's `DefaultChatTransport` does, with its options. Nothing of `ai` is imported: where an application
 * has two copies of it, a page would load both.
 */
export class HttpTransport<Message extends UIMessage> implements ChatTransport<Message> {
  readonly resumeStreamIsReplay: boolean;
  protected readonly api: string;
  protected readonly options: HttpOptions<Message>;
  readonly #fetch: typeof fetch;

  constructor(options: HttpOptions<Message>, given: typeof fetch) {
    this.api = options.api ?? '/api/chat';
    this.options = options;
    this.#fetch = given;
    this.resumeStreamIsReplay = options.resumeStreamIsReplay ?? true;
  }

  async sendMessages({ abortSignal: signal, ...sent }: Send<Message>): Promise<Chunks> {
    const { chatId: id, messages, trigger, messageId, metadata: requestMetadata } = sent;
    const base = await this.#base(sent);
    const said = { id, messages, trigger, messageId };
    const prepared = await this.options.prepareSendMessagesRequest?.({
      api: this.api,
      ...said,
      ...base,
      requestMetadata,
    });
    const headers = prepared?.headers ? toRecord(prepared.headers) : base.headers;
    const response = await this.#request({
      method: 'POST',
      url: prepared?.api ?? this.api,
      headers: { 'content-type': 'application/json', ...headers },
      credentials: prepared?.credentials ?? base.credentials,
      body: JSON.stringify(prepared?.body ?? { ...base.body, ...said }),
      signal,
    });
    return readChunks(response);
  }

  async reconnectToStream({ chatId: id, ...options }: Resume<Message>): Promise<Chunks | null> {
    const base = await this.#base(options);
    const { api, metadata: requestMetadata } = { api: this.api, ...options };
    const prepared = await this.options.prepareReconnectToStreamRequest?.({ api, id, ...base, requestMetadata });
    const response = await this.#request({
      method: 'GET',
      url: prepared?.api ?? toUrl(this.api, `${encodeURIComponent(id)}/stream`),
      headers: prepared?.headers ? toRecord(prepared.headers) : base.headers,
      credentials: prepared?.credentials ?? base.credentials,
      signal: (options as { abortSignal?: AbortSignal }).abortSignal,
    });
    return response.status === 204 ? null : readChunks(response);
  }

  async #base({ body, headers }: Pick<Send<Message>, 'body' | 'headers'>): Promise<Base> {
    const { options } = this;
    return {
      body: { ...(await resolve(options.body)), ...body },
      headers: { ...toRecord(await resolve(options.headers)), ...toRecord(headers) },
      credentials: await resolve(options.credentials),
    };
  }

  async #request({ url, credentials, signal, ...init }: Wanted): Promise<Response> {
    const response = await this.#fetch(url, {
      ...init,
      ...(credentials && { credentials }),
      ...(signal && { signal }),
    });
    if (!response.ok)
      throw new RefusedError(response.status, (await response.text()) || 'The chat could not be fetched');
    return response;
  }
}

/** A path may have a query. */
function toUrl(api: string, path: string): string {
  const [base = '', ...query] = api.split(/(?=[?#])/);
  return [`${base.replace(/\/$/, '')}/${path}`, ...query].join('');
}

function toRecord(headers: ConstructorParameters<typeof Headers>[0]): Record<string, string> {
  return Object.fromEntries(new Headers(headers));
}

export async function resolve<T>(
  value: T | PromiseLike<T> | (() => T | PromiseLike<T>) | undefined,
): Promise<T | undefined> {
  return typeof value === 'function' ? (value as () => T | PromiseLike<T>)() : value;
}
