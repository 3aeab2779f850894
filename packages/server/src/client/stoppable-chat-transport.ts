import { DefaultChatTransport, type UIMessage, type UIMessageChunk } from 'ai';
import { type ApprovalReply, POST_MS, Readings, type StopOptions, type StoppableTransport } from './readings.ts';

type Send<Message extends UIMessage> = Parameters<DefaultChatTransport<Message>['sendMessages']>[0];
type Resume<Message extends UIMessage> = Parameters<DefaultChatTransport<Message>['reconnectToStream']>[0];

/**
 * A transport of `useChat` that can stop runs. `useChat` aborts the same signal when a user presses Stop, leaves the
 * page, opens another chat or mounts twice, so an abort only ends the reading. Only `stop` stops the run.
 */
export class StoppableChatTransport<Message extends UIMessage = UIMessage>
  extends DefaultChatTransport<Message>
  implements StoppableTransport<Message>
{
  readonly #readings = new Readings<Message>();

  stop(chatId: string, options: StopOptions = {}): Promise<void> {
    return this.#readings.stop(chatId, options, (stop) => this.#post(`${encodeURIComponent(chatId)}/stop`, stop));
  }

  approve(chatId: string, answer: ApprovalReply): Promise<boolean> {
    return this.#post(`${encodeURIComponent(chatId)}/approve`, answer);
  }

  ended(chatId: string): Promise<void> {
    return this.#readings.ended(chatId);
  }

  shows(chatId: string, messageId: string | undefined): void {
    this.#readings.shows(chatId, messageId);
  }

  override sendMessages(options: Send<Message>): Promise<ReadableStream<UIMessageChunk>> {
    return this.#readings.send(options, (body) => super.sendMessages({ ...options, body }));
  }

  override reconnectToStream(options: Resume<Message>): Promise<ReadableStream<UIMessageChunk> | null> {
    return this.#readings.resume(options, (headers) => super.reconnectToStream({ ...options, headers }));
  }

  async #post(path: string, body: object): Promise<boolean> {
    const { ok } = await (this.fetch ?? globalThis.fetch)(`${this.api}/${path}`, {
      method: 'POST',
      // Sends the request even if the page is closed right after the click.
      keepalive: true,
      signal: AbortSignal.timeout(POST_MS),
      headers: { ...Object.fromEntries(new Headers(await resolve(this.headers))), 'content-type': 'application/json' },
      credentials: (await resolve(this.credentials)) ?? 'same-origin',
      body: JSON.stringify(body),
    });
    return ok;
  }
}

async function resolve<T>(value: T | PromiseLike<T> | (() => T | PromiseLike<T>) | undefined): Promise<T | undefined> {
  return typeof value === 'function' ? (value as () => T | PromiseLike<T>)() : value;
}
