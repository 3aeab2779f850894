import { DefaultChatTransport, type UIMessage, type UIMessageChunk } from 'ai';
import { waitForEvent } from './keep-reading.ts';
import { type ApprovalReply, type ChatStop, ReplyReaders, type StopReceipt } from './reply-readers.ts';
import type { TabEvent } from './tabs.ts';
import { findOpenQuestions } from './waiting-message.ts';

type Send<Message extends UIMessage> = Parameters<DefaultChatTransport<Message>['sendMessages']>[0];
type Resume<Message extends UIMessage> = Parameters<DefaultChatTransport<Message>['reconnectToStream']>[0];

/** The maximum time that the next message waits for the response to a stop. */
const POST_MS = 5_000;

/**
 * A transport of `useChat` that can stop runs. `useChat` aborts the same signal when a user presses Stop, leaves the
 * page, opens another chat or mounts twice, so an abort only ends the reading. Only `stop` stops the run.
 */
export class StoppableChatTransport<Message extends UIMessage = UIMessage> extends DefaultChatTransport<Message> {
  readonly #readings = new ReplyReaders<Message>();

  /** Stops the replies of a chat that this page reads. Call it before the SDK's `stop`, which ends the reading. */
  stop(chatId: string, options: ChatStop = {}): Promise<StopReceipt<Message>> {
    return this.#readings.stop(chatId, options, async (stop) => {
      try {
        const response = await this.#post(`${encodeURIComponent(chatId)}/stop`, stop);
        const isAnswer = response.ok || response.status === 409;
        return isAnswer ? ((await response.json()) as StopReceipt<Message>) : { result: 'unanswered' };
      } catch {
        return { result: 'unanswered' };
      }
    });
  }

  /** Answers the question of a `tool-approval-request`. Resolves with whether the answer was accepted. */
  async approve(chatId: string, answer: ApprovalReply): Promise<boolean> {
    return (await this.#post(`${encodeURIComponent(chatId)}/approve`, answer)).ok;
  }

  /**
   * Resolves when someone has answered what a message waits for, or closed it, in another page or program: with `true`
   * if `reconnectToStream` then reads the rest. Lost connections are opened again until the signal fires.
   */
  async waitForAnswer(chatId: string, message: Message, signal: AbortSignal): Promise<boolean> {
    const questions = findOpenQuestions(message);
    if (questions.length === 0) return false;
    const query = new URLSearchParams({ messageId: message.id });
    for (const id of questions) query.append('question', id);
    const path = `${encodeURIComponent(chatId)}/answered?${query}`;
    const isAnswered = await waitForEvent(() => this.#request(path, { signal }), signal);
    if (isAnswered) this.#readings.expectMore(chatId, message.id);
    return isAnswered;
  }

  /** Resolves when the replies of a chat that this page reads have ended; immediately if there are none. */
  waitForEnd(chatId: string): Promise<void> {
    return this.#readings.waitForEnd(chatId);
  }

  /** Whether a reply of a chat has lost its connection. It is opened again by itself, and a stop still works. */
  isReconnecting(chatId: string): boolean {
    return this.#readings.isReconnecting(chatId);
  }

  /** Calls a listener when `isReconnecting` may have changed, until the returned function is called. */
  onConnection(listener: () => void): () => void {
    return this.#readings.onConnection(listener);
  }

  /**
   * Calls a listener with what other tabs of this browser do in a chat, until the returned function is called. After
   * something was said, `reconnectToStream` reads the reply.
   */
  onOtherTab(chatId: string, listener: (event: TabEvent<Message>) => void): () => void {
    return this.#readings.tabs.listen(this.api, chatId, listener);
  }

  /** Whether another tab reads the reply that this one shows. That tab runs its tools. */
  isPassedOn(chatId: string): boolean {
    return this.#readings.isPassedOn(chatId);
  }

  /** Sets the last message that a newly opened page shows. A reply that ended in between is streamed to it. */
  setLastMessage(chatId: string, messageId: string | undefined): void {
    this.#readings.setLastMessage(chatId, messageId);
  }

  /** Sends the last message, and returns the stream of its reply. */
  override sendMessages(options: Send<Message>): Promise<ReadableStream<UIMessageChunk>> {
    const { chatId, abortSignal, metadata, messageId } = options;
    // The server has the others, and with their files they may be too large.
    const messages = options.messages.filter(({ id }, i, { length }) => i === length - 1 || id === messageId);
    const resumed = { chatId, metadata, ...(abortSignal && { abortSignal }) };
    return this.#readings.send(
      options,
      (body) => super.sendMessages({ ...options, messages, body }),
      (headers) => super.reconnectToStream({ ...resumed, headers }),
    );
  }

  /** Resumes the stream of a reply that is still running, if there is one. */
  override reconnectToStream(options: Resume<Message>): Promise<ReadableStream<UIMessageChunk> | null> {
    return this.#readings.resume(options, (headers) => super.reconnectToStream({ ...options, headers }));
  }

  #post(path: string, body: object): Promise<Response> {
    return this.#request(path, {
      method: 'POST',
      // Sends the request even if the page is closed right after the click, and before others that wait.
      keepalive: true,
      ...({ priority: 'high' } as object),
      signal: AbortSignal.timeout(POST_MS),
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  }

  async #request(path: string, init: RequestInit): Promise<Response> {
    return (this.fetch ?? globalThis.fetch)(`${this.api}/${path}`, {
      ...init,
      headers: Object.fromEntries([...new Headers(await resolve(this.headers)), ...new Headers(init.headers)]),
      credentials: (await resolve(this.credentials)) ?? 'same-origin',
    });
  }
}

async function resolve<T>(value: T | PromiseLike<T> | (() => T | PromiseLike<T>) | undefined): Promise<T | undefined> {
  return typeof value === 'function' ? (value as () => T | PromiseLike<T>)() : value;
}
