import { DefaultChatTransport, type UIMessage, type UIMessageChunk } from 'ai';
import { type ApprovalReply, type ChatStop, Readings } from './readings.ts';

type Send<Message extends UIMessage> = Parameters<DefaultChatTransport<Message>['sendMessages']>[0];
type Resume<Message extends UIMessage> = Parameters<DefaultChatTransport<Message>['reconnectToStream']>[0];

/** The maximum time that the next message waits for the response to a stop. */
const POST_MS = 5_000;

/**
 * A transport of `useChat` that can stop runs. `useChat` aborts the same signal when a user presses Stop, leaves the
 * page, opens another chat or mounts twice, so an abort only ends the reading. Only `stop` stops the run.
 */
export class StoppableChatTransport<Message extends UIMessage = UIMessage> extends DefaultChatTransport<Message> {
  readonly #readings = new Readings<Message>();

  /**
   * Stops the replies of a chat that this page reads. Call it before the SDK's `stop`, which ends the reading. Resolves
   * with the message whose calls waited, as it is now.
   */
  async stop(chatId: string, options: ChatStop = {}): Promise<Message | undefined> {
    let message: Message | undefined;
    await this.#readings.stop(chatId, options, async (stop) => {
      const response = await this.#post(`${encodeURIComponent(chatId)}/stop`, stop);
      if (response.ok) message = ((await response.json()) as { message?: Message }).message ?? message;
      return response.ok;
    });
    return message;
  }

  /** Answers the question of a `tool-approval-request`. Resolves with whether the answer was accepted. */
  async approve(chatId: string, answer: ApprovalReply): Promise<boolean> {
    return (await this.#post(`${encodeURIComponent(chatId)}/approve`, answer)).ok;
  }

  /** Resolves when the replies of a chat that this page reads have ended; at once if there are none. */
  ended(chatId: string): Promise<void> {
    return this.#readings.ended(chatId);
  }

  /** Sets the last message that a newly opened page shows. A reply that ended in between is streamed to it. */
  shows(chatId: string, messageId: string | undefined): void {
    this.#readings.shows(chatId, messageId);
  }

  override sendMessages(options: Send<Message>): Promise<ReadableStream<UIMessageChunk>> {
    return this.#readings.send(options, (body) => super.sendMessages({ ...options, body }));
  }

  override reconnectToStream(options: Resume<Message>): Promise<ReadableStream<UIMessageChunk> | null> {
    return this.#readings.resume(options, (headers) => super.reconnectToStream({ ...options, headers }));
  }

  async #post(path: string, body: object): Promise<Response> {
    return (this.fetch ?? globalThis.fetch)(`${this.api}/${path}`, {
      method: 'POST',
      // Sends the request even if the page is closed right after the click.
      keepalive: true,
      signal: AbortSignal.timeout(POST_MS),
      headers: { ...Object.fromEntries(new Headers(await resolve(this.headers))), 'content-type': 'application/json' },
      credentials: (await resolve(this.credentials)) ?? 'same-origin',
      body: JSON.stringify(body),
    });
  }
}

async function resolve<T>(value: T | PromiseLike<T> | (() => T | PromiseLike<T>) | undefined): Promise<T | undefined> {
  return typeof value === 'function' ? (value as () => T | PromiseLike<T>)() : value;
}
