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

interface Prepared {
  readonly api?: string;
  readonly body?: object;
  readonly headers?: ConstructorParameters<typeof Headers>[0];
  readonly credentials?: RequestInit['credentials'];
}

/** What an application does with a request before it is sent. */
type Prepare = ((request: object) => Prepared | PromiseLike<Prepared>) | undefined;

interface Aborted {
  readonly abortSignal?: AbortSignal | undefined;
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

  async sendMessages(sent: Send<Message>): Promise<Chunks> {
    const { chatId: id, messages, trigger, messageId } = sent;
    const { prepareSendMessagesRequest: prepare } = this.options;
    return readChunks(
      await this.#request(sent, { prepare: prepare as Prepare, said: { id, messages, trigger, messageId } }),
    );
  }

  async reconnectToStream(asked: Resume<Message>): Promise<Chunks | null> {
    const response = await this.#request(asked, { prepare: this.options.prepareReconnectToStreamRequest as Prepare });
    return response.status === 204 ? null : readChunks(response);
  }

  /** `said`: what a message adds to the body. Without it, a reply is read. */
  async #request(
    {
      chatId: id,
      metadata: requestMetadata,
      body,
      headers,
      abortSignal: signal,
    }: Omit<Resume<Message>, 'abortSignal'> & Aborted,
    { prepare, said }: { readonly prepare: Prepare; readonly said?: object },
  ): Promise<Response> {
    const { api, options } = this;
    const base = {
      body: { ...(await resolve(options.body)), ...body },
      headers: { ...toRecord(await resolve(options.headers)), ...toRecord(headers) },
      credentials: await resolve(options.credentials),
    };
    const prepared = await prepare?.({ api, id, ...said, ...base, requestMetadata });
    const credentials = prepared?.credentials ?? base.credentials;
    const own = prepared?.headers ? toRecord(prepared.headers) : base.headers;
    const url = prepared?.api ?? (said ? api : toUrl(api, `${encodeURIComponent(id)}/stream`));
    const response = await this.#fetch(url, {
      method: said ? 'POST' : 'GET',
      headers: { ...(said && { 'content-type': 'application/json' }), ...own },
      ...(said && { body: JSON.stringify(prepared?.body ?? { ...base.body, ...said }) }),
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
